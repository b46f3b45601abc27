/* Arcee's AFM: a llama layer whose feed-forward has no gate but the square of relu. */
#include "model/from_gguf/architecture.h"

const architecture arch_arcee[] = {
    {
        .name = "arcee",
        .activation = ACTIVATION_RELU2,
        .features = FEATURE_NO_GATES,
        .optional = TENSOR_LIST(TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS,
                                TENSOR_ATTN_QKV_BIAS, TENSOR_ROPE_FREQS),
        .void_keys = KEY_LIST("attention.scale"),
    },
    ARCHITECTURE_END,
};
