/* InternLM 2: a llama layer. The output matrix is never the embedding. */
#include "model/from_gguf/architecture.h"

const architecture arch_internlm2[] = {
    {
        .name = "internlm2",
        .features = FEATURE_OWN_OUTPUT,
        .optional = model_biases,
        .void_keys = KEY_LIST("attention.scale"),
    },
    ARCHITECTURE_END,
};
