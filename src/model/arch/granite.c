/* Granite 3 and 4, dense or with experts: a llama layer whose embeddings, branch outputs, attention
 * scores and logits are scaled by factors of the file. In hybrids, layers without KV heads have
 * Mamba-2 instead of attention. Files of models without such layers or experts have their keys. */
#include "model/from_gguf/architecture.h"

static void scale(model_reader *r, double divisor)
{
    decoder *d = &r->out->decoder;
    d->logit_scale = divisor > 0 && (divisor < 1 || divisor > 1) ? 1 / divisor : 0;
    d->residual_scale = model_real(r, "residual_scale", 0);
    d->embedding_scale = model_real(r, "embedding_scale", 0);
    if (!model_flag(r, "rope.scaling.finetuned", true))
        d->rope[0] = d->rope[1] = model_plain_rope(ROPE_NONE, d->at[0].head_dim);
}

static void adapt(model_reader *r)
{
    scale(r, model_required_real(r, "logit_scale"));
}

static void adapt_layers(model_reader *r)
{
    decoder *d = &r->out->decoder;
    for (int64_t l = 0; l < d->layers; l++)
        d->at[l].recurs = !d->at[l].attends;
}

static void adapt_hybrid(model_reader *r)
{
    decoder *d = &r->out->decoder;
    scale(r, model_real(r, "logit_scale", 1));
    model_read_mamba2(r);
    model_require_same(r, "ssm.inner_size", 2 * d->hidden, "2 * embedding_length");
}

const architecture arch_granite[] = {
    {
        .name = "granite",
        .rope_base = 10000,
        .optional = model_biases,
        .void_keys = KEY_LIST("ssm.*", "expert_shared_feed_forward_length", "deepstack_mapping"),
        .adapt = adapt,
    },
    {
        .name = "granitemoe",
        .rope_base = 10000,
        .features = FEATURE_EXPERTS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OF_ALL,
        .optional = model_biases,
        .void_keys = KEY_LIST("ssm.*", "deepstack_mapping"),
        .adapt = adapt,
    },
    {
        .name = "granitehybrid",
        .rope_base = 10000,
        .features = FEATURE_RECURRENT | FEATURE_MIXED | FEATURE_EXPERTS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OF_ALL,
        .required = TENSOR_LIST(TENSOR_SSM_NORM),
        .optional = model_biases,
        .adapt_layers = adapt_layers,
        .adapt = adapt_hybrid,
    },
    ARCHITECTURE_END,
};
