/* Ministral 3: a llama with YaRN whose queries grow with their position, q *= 1 + scale
 * ln(1 + floor(position / length)). */
#include "model/architecture.h"

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    double scale = model_real(r, "attention.temperature_scale", 0);
    double length = (double)model_number(r, "attention.temperature_length", 0, 0);
    if (scale <= 0)
        return;
    if (length <= 0)
        length = d->rope[0].original_context;
    if (length <= 0)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "mistral3.attention.temperature_scale goes with temperature_length or "
                    "rope.scaling.original_context_length");
    for (int i = 0; i < 2; i++) {
        d->rope[i].temperature_scale = scale;
        d->rope[i].temperature_length = length;
    }
}

const architecture model_mistral3 = {
    .name = "mistral3",
    .rope_style = ROPE_NORM,
    .activation = ACTIVATION_SILU,
    .optional = model_biases,
    .adapt = adapt,
};
