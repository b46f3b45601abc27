/* Step 3.5: layers with full context and layers with windows differ in heads and RoPE. Full layers
 * rotate half of each head, with factors and scaling. A gate per head scales attention's output.
 * SwiGLU is clamped in some layers. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t head = d->at[0].head_dim;
    d->attention_gate = ATTENTION_GATE_HEADS;
    d->shared_ff = model_required_number(r, "expert_shared_feed_forward_length");
    if (!model_find_key(r, "attention.sliding_window_pattern"))
        model_bad_key(r, "attention.sliding_window_pattern is missing");
    model_windows(r, model_required_number(r, "attention.sliding_window"), 1);
    d->rope[0].dims = head / 2;
    d->factor_dims = head;
    d->rope[1] = model_plain_rope(ROPE_NEOX, model_number(r, "rope.dimension_count_swa", 2, head));
    d->rope[1].base = model_real(r, "rope.freq_base_swa", 10000);
    const double none = 0;
    double experts[DECODER_MOST_LAYERS], shared[DECODER_MOST_LAYERS];
    model_reals(r, "swiglu_clamp_exp", &none, experts);
    model_reals(r, "swiglu_clamp_shexp", &none, shared);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].expert_limit = d->at[l].is_routed ? experts[l] : 0;
        d->at[l].shared_limit = shared[l];
    }
}

const architecture arch_step35[] = {
    {
        .name = "step35",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_NEXTN | FEATURE_OWN_OUTPUT |
                    FEATURE_FULL_FACTORS,
        .gating = GATING_SIGMOID,
        .expert_rows = EXPERT_ROWS_OWN,
        .optional = TENSOR_LIST(QK_NORMS, TENSOR_EXP_PROBS_B, TENSOR_ROPE_FREQS),
        .void_keys = KEY_LIST("attention.scale", "moe_every_n_layers"),
        .adapt_layers = model_route_by_tensors,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
