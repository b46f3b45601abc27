/* Qwen2 and 2.5: a llama layer with biases on q, k and v. Qwen3: RMS norm of each head of q and k
 * before RoPE, dense or with experts but no shared expert. */
#include "model/from_gguf/architecture.h"

const architecture arch_qwen[] = {
    {
        .name = "qwen2",
        .rope_style = ROPE_NEOX,
        .required = TENSOR_LIST(TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS),
        .optional = TENSOR_LIST(TENSOR_OUTPUT_BIAS),
    },
    {
        .name = "qwen3",
        .rope_style = ROPE_NEOX,
        .required = TENSOR_LIST(TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM),
    },
    {
        .name = "qwen3moe",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_SHARED_OUT,
        .required = TENSOR_LIST(TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM),
    },
    ARCHITECTURE_END,
};
