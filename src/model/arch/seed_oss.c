/* Seed-OSS: a llama layer with optional biases on q, k and v. The norm before the feed-forward is
 * named post_attention_norm. */
#include "model/from_gguf/architecture.h"

const architecture arch_seed_oss[] = {
    {
        .name = "seed_oss",
        .rope_style = ROPE_NEOX,
        .required = TENSOR_LIST(TENSOR_PRE_FFN_NORM),
        .optional = TENSOR_LIST(TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS,
                                TENSOR_ATTN_QKV_BIAS),
    },
    ARCHITECTURE_END,
};
