/* SmolLM3: a llama layer; every fourth layer has no RoPE. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    enum { PERIOD = 4 };
    decoder *d = &r->out->decoder;
    for (int64_t l = PERIOD - 1; l < d->layers; l += PERIOD)
        d->at[l].unturned = 1;
}

const architecture arch_smollm3[] = {
    {
        .name = "smollm3",
        .optional = model_biases,
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
