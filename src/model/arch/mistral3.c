/* Ministral 3: a llama with YaRN whose queries grow with their position. */
#include "model/arch/architecture.h"

const architecture model_mistral3 = {
    .name = "mistral3",
    .rope_style = ROPE_NORM,
    .activation = ACTIVATION_SILU,
    .optional = model_biases,
    .adapt = model_read_temperature,
};
