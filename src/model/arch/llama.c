/* Llama 2 and 3, Mistral, SmolLM, Mixtral and other models of architecture llama: RMS norm,
 * attention with RoPE on neighbouring pairs, RMS norm, SwiGLU feed-forward or experts. mistral3
 * (Ministral 3) adds YaRN and a query scale that grows with the position. */
#include "model/from_gguf/architecture.h"

const architecture arch_llama[] = {
    {
        .name = "llama",
        .rope_base = 10000,
        .features = FEATURE_EXPERTS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OF_ALL,
        .optional = TENSOR_LIST(TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS,
                                TENSOR_ATTN_QKV_BIAS, TENSOR_ATTN_OUTPUT_BIAS, TENSOR_FFN_GATE_BIAS,
                                TENSOR_FFN_UP_BIAS, TENSOR_FFN_DOWN_BIAS, TENSOR_ROPE_FREQS),
    },
    {
        .name = "mistral3",
        .optional = model_biases,
        .adapt = model_read_temperature,
    },
    ARCHITECTURE_END,
};
