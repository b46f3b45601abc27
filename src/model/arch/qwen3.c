/* Qwen3: heads of q and k are RMS-normed ahead of RoPE. */
#include "model/arch/architecture.h"

static const uint8_t required[] = { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM, TENSOR_COUNT };

const architecture model_qwen3 = {
    .name = "qwen3",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_SILU,
    .required = required,
};
