/* Hunyuan, dense or with experts: norms of q's and k's heads after RoPE. Hy3: before it, and a choice
 * bias that files name exp_probs_b. */
#include <math.h>

#include "model/from_gguf/architecture.h"

/* Raises the base of RoPE by the scaling alpha. */
static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    double alpha = model_real(r, "rope.scaling.alpha", 0), dims = (double)d->at[0].head_dim;
    if (alpha > 0)
        d->rope[0].base *= pow(alpha, dims / (dims - 2));
    d->rope[1] = d->rope[0];
}

static void adapt_experts(model_reader *r)
{
    decoder *d = &r->out->decoder;
    if (!d->shared_ff)
        d->shared_ff = d->expert_ff;
}

static void adapt_hy_v3(model_reader *r)
{
    r->out->decoder.renamed[TENSOR_EXP_PROBS_B] = 1;
}

const architecture arch_hunyuan[] = {
    {
        .name = "hunyuan-dense",
        .rope_style = ROPE_NEOX,
        .qk_norm = QK_NORM_HEAD_AFTER,
        .required = TENSOR_LIST(QK_NORMS),
        .optional = TENSOR_LIST(QKV_BIASES),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt,
    },
    {
        .name = "hunyuan-moe",
        .rope_style = ROPE_NEOX,
        .qk_norm = QK_NORM_HEAD_AFTER,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OF_ALL,
        .required = TENSOR_LIST(QK_NORMS),
        .optional = TENSOR_LIST(QKV_BIASES),
        .void_keys = KEY_LIST("attention.scale", "expert_gating_func", "expert_weights_norm",
                              "expert_weights_scale", "expert_feed_forward_length",
                              "expert_shared_count", "rope.scaling.alpha"),
        .adapt = adapt_experts,
    },
    {
        .name = "hy_v3",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_NEXTN,
        .gating = GATING_SIGMOID,
        .expert_rows = EXPERT_ROWS_OWN,
        .may_fuse_experts = true,
        .required = TENSOR_LIST(QK_NORMS),
        .optional = TENSOR_LIST(QKV_BIASES, TENSOR_EXP_PROBS_B),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt_layers = model_route_by_tensors,
        .adapt = adapt_hy_v3,
    },
    ARCHITECTURE_END,
};
