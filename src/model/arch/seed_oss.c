/* Seed-OSS: a llama layer with optional biases on q, k and v. The norm before the feed-forward is
 * named post_attention_norm. */
#include "model/from_gguf/architecture.h"

const architecture arch_seed_oss[] = {
    {
        .name = "seed_oss",
        .rope_style = ROPE_NEOX,
        .required = TENSOR_LIST(TENSOR_PRE_FFN_NORM),
        .optional = TENSOR_LIST(QKV_BIASES),
    },
    ARCHITECTURE_END,
};
