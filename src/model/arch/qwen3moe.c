/* Qwen3 with experts: as qwen3 but for the feed-forward, without a shared expert. */
#include "model/arch/architecture.h"

static const uint8_t required[] = { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM, TENSOR_COUNT };

const architecture model_qwen3moe = {
    .name = "qwen3moe",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_SILU,
    .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS,
    .gating = GATING_SOFTMAX,
    .experts_normed = true,
    .expert_rows = EXPERT_ROWS_SHARED_OUT,
    .required = required,
};
