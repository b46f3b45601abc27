/* Nemotron-H: a layer has one branch, which reads attn_norm: Mamba-2 (0 KV heads and a feed-forward
 * of 0 rows), attention without RoPE (0 rows), or a feed-forward without a gate, dense or of
 * experts. Such branches in parallel are branches in turn. */
#include "model/from_gguf/architecture.h"

static void adapt_layers(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t ff[DECODER_MOST_LAYERS];
    model_numbers(r, "feed_forward_length", 0, 0, ff);
    for (int64_t l = 0; l < d->layers; l++) {
        decoder_layer *at = &d->at[l];
        at->recurs = !at->attends && !ff[l];
        at->attends = at->attends && !ff[l];
        at->is_routed = d->experts && ff[l];
        at->is_dense = !d->experts && ff[l];
    }
}

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    model_read_mamba2(r);
    d->rope[0] = d->rope[1] = model_plain_rope(ROPE_NONE, d->rope[0].dims);
    int64_t latent = model_number(r, "moe_latent_size", 0, 0);
    if (latent)
        model_bad_key(
            r,
            "moe_latent_size = %lld is not supported: experts would work on a latent; use "
            "a model whose experts read the hidden states",
            (long long)latent);
}

const architecture arch_nemotron[] = {
    {
        .name = "nemotron_h",
        .rope_style = ROPE_NONE,
        .rope_base = 10000,
        .activation = ACTIVATION_RELU2,
        .features = FEATURE_RECURRENT | FEATURE_MIXED | FEATURE_NO_GATES | FEATURE_PARALLEL |
                    FEATURE_TWO_EPSILONS,
        .required = TENSOR_LIST(TENSOR_SSM_NORM),
        .optional = model_biases,
        .adapt_layers = adapt_layers,
        .adapt = adapt,
    },
    {
        .name = "nemotron_h_moe",
        .rope_style = ROPE_NONE,
        .rope_base = 10000,
        .activation = ACTIVATION_RELU2,
        .features = FEATURE_RECURRENT | FEATURE_MIXED | FEATURE_NO_GATES | FEATURE_PARALLEL |
                    FEATURE_TWO_EPSILONS | FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_NEXTN,
        .gating = GATING_SIGMOID,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(TENSOR_SSM_NORM, TENSOR_EXP_PROBS_B),
        .optional = model_biases,
        .adapt_layers = adapt_layers,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
