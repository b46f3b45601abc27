/* Arcee's AFM: a llama layer whose feed-forward has no gate but the square of relu. */
#include "model/from_gguf/architecture.h"

const architecture arch_arcee[] = {
    {
        .name = "arcee",
        .activation = ACTIVATION_RELU2,
        .features = FEATURE_NO_GATES,
        .optional = TENSOR_LIST(QKV_BIASES, TENSOR_ROPE_FREQS),
        .void_keys = KEY_LIST("attention.scale"),
    },
    ARCHITECTURE_END,
};
