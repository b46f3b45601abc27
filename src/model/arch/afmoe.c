/* Arcee's Trinity: norms before and after attention and feed-forward, norms of heads, a gate per value
 * of attention's output, windows in three of four layers, and experts beside a shared expert. Every
 * fourth layer has no RoPE, whichever layers have windows. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    enum { PERIOD = 4 };
    decoder *d = &r->out->decoder;
    model_scale_embedding(r);
    d->attention_gate = ATTENTION_GATE_VALUES;
    model_windows(r, model_required_number(r, "attention.sliding_window"), PERIOD);
    for (int64_t l = PERIOD - 1; l < d->layers; l += PERIOD)
        d->at[l].unturned = 1;
}

const architecture arch_afmoe[] = {
    {
        .name = "afmoe",
        .rope_style = ROPE_NEOX,
        .rope_base = 10000,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS,
        .gating = GATING_SIGMOID,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(QK_NORMS, POST_NORMS, TENSOR_EXP_PROBS_B),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
