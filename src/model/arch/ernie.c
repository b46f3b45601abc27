/* ERNIE 4.5: a llama layer, dense or with experts. Files may have a bias of attn_output, which is not
 * added, as in llama.cpp. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    model_ignore_tensor(r, TENSOR_ATTN_OUTPUT_BIAS);
}

static void adapt_experts(model_reader *r)
{
    adapt(r);
    model_required_number(r, "interleave_moe_layer_step");
    model_require_same(r, "interleave_moe_layer_step", 1,
                       "all layers from leading_dense_block_count on have experts");
}

const architecture arch_ernie[] = {
    {
        .name = "ernie4_5",
        .optional = TENSOR_LIST(QKV_BIASES),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt,
    },
    {
        .name = "ernie4_5-moe",
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OWN,
        .optional = TENSOR_LIST(QKV_BIASES, TENSOR_EXP_PROBS_B),
        .void_keys = KEY_LIST("attention.scale", "expert_gating_func", "expert_weights_norm",
                              "expert_weights_scale", "expert_shared_count"),
        .adapt = adapt_experts,
    },
    ARCHITECTURE_END,
};
