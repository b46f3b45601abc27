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
        .optional = model_biases_and_factors,
    },
    {
        .name = "mistral3",
        .features = FEATURE_YARN_LOG,
        .optional = model_biases,
        .adapt = model_read_temperature,
    },
    ARCHITECTURE_END,
};
