#include "gen/rows/rope_keys.h"

#include <math.h>

const choice rope_style_choices[] = {
    [ROPE_NORM] = { "norm", "_norm" },
    [ROPE_NEOX] = { "neox", "_neox" },
    [ROPE_NONE] = { "none", "" },
    { NULL, NULL },
};
const choice rope_scaling_choices[] = {
    [ROPE_UNSCALED] = { "none", "" },
    [ROPE_LINEAR] = { "linear", "_linear" },
    [ROPE_YARN] = { "yarn", "_yarn" },
    { NULL, NULL },
};
const choice rope_factors_choices[] = { { "none", "" }, { "divide", "_factors" }, { NULL, NULL } };

const char *check_rope(const instance *in, arena *a, const char **blamed)
{
    const rope_options *o = &in->options.rope;
    if (o->scaling == ROPE_YARN && !(o->original_context >= 1)) {
        *blamed = "rope_scaling";
        return "rope_scaling = yarn needs rope_original_context: the positions that the model was "
               "trained for";
    }
    if (o->temperature_length > floor(o->temperature_length)) {
        *blamed = "temperature_length";
        return arena_format(a, "temperature_length = %g is no whole number of positions",
                            o->temperature_length);
    }
    return NULL;
}
