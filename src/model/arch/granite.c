/* Granite 3, dense or with experts: a llama layer whose embeddings, branch outputs, attention
 * scores and logits are scaled by factors of the file. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    double divisor = model_required_real(r, "logit_scale");
    d->logit_scale = divisor > 0 && (divisor < 1 || divisor > 1) ? 1 / divisor : 0;
    d->residual_scale = model_real(r, "residual_scale", 0);
    d->embedding_scale = model_real(r, "embedding_scale", 0);
    if (!model_flag(r, "rope.scaling.finetuned", true))
        d->rope[0] = d->rope[1] = model_plain_rope(ROPE_NONE, d->at[0].head_dim);
}

const architecture arch_granite[] = {
    {
        .name = "granite",
        .rope_base = 10000,
        .optional = model_biases,
        .adapt = adapt,
    },
    {
        .name = "granitemoe",
        .rope_base = 10000,
        .features = FEATURE_EXPERTS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OF_ALL,
        .optional = model_biases,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
