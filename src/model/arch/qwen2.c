/* Qwen2 and Qwen2.5: biases of q, k and v. */
#include "model/arch/architecture.h"

static const uint8_t required[] = { TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS,
                                    TENSOR_COUNT };
static const uint8_t optional[] = { TENSOR_OUTPUT_BIAS, TENSOR_COUNT };

const architecture model_qwen2 = {
    .name = "qwen2",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_SILU,
    .required = required,
    .optional = optional,
};
