/* LFM2: layers without KV heads have a short convolution instead of attention. The norm before the
 * output is named token_embd_norm. lfm2moe has experts behind some dense layers. */
#include "model/from_gguf/architecture.h"

static void adapt_layers(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->recurrence = RECURRENCE_SHORT_CONV;
    d->conv_kernel = model_required_number(r, "shortconv.l_cache");
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].recurs = !d->at[l].attends;
        if (d->at[l].attends && d->at[l].num_heads * d->at[l].head_dim != d->hidden) {
            model_bad_key(r,
                          "attention.head_count = %lld heads of %lld values do not have "
                          "embedding_length = %lld values",
                          (long long)d->at[l].num_heads, (long long)d->at[l].head_dim,
                          (long long)d->hidden);
            return;
        }
    }
}

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->renamed[TENSOR_OUTPUT_NORM] = 1;
    if (!d->experts)
        d->window = model_number(r, "attention.sliding_window", 0, 0);
    for (int64_t l = 0; l < d->layers; l++)
        d->at[l].windowed = d->window && d->at[l].attends;
}

const architecture arch_lfm2[] = {
    {
        .name = "lfm2",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_RECURRENT | FEATURE_MIXED,
        .required = TENSOR_LIST(QK_NORMS),
        .adapt_layers = adapt_layers,
        .adapt = adapt,
    },
    {
        .name = "lfm2moe",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_RECURRENT | FEATURE_MIXED | FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS |
                    FEATURE_GATING_KEY,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(QK_NORMS, TENSOR_EXP_PROBS_B),
        .adapt_layers = adapt_layers,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
