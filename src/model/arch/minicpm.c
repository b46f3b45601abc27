/* MiniCPM: Granite's scales with values of its own where the file has none, and RoPE as of Phi-3. */
#include <math.h>

#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    double divisor = model_real(r, "logit_scale", 256 / (double)d->hidden);
    d->embedding_scale = model_real(r, "embedding_scale", 12);
    d->residual_scale = model_real(r, "residual_scale", 1.4 / sqrt((double)d->layers));
    d->logit_scale = divisor > 0 && (divisor < 1 || divisor > 1) ? 1 / divisor : 0;
    model_choose_factors(r);
}

const architecture arch_minicpm[] = {
    {
        .name = "minicpm",
        .rope_base = 10000,
        .optional = model_biases_and_factors,
        .void_keys = KEY_LIST("attention.scale"),
        .has_long_factors = true,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
