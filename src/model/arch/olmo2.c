/* OLMo 2 and 3: RMS norms after attention and feed-forward only, and of whole rows of q and k. OLMo 3
 * has windows in three of four layers. These have neither YaRN nor its factor of cos and sin. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    enum { PERIOD = 4 };
    decoder *d = &r->out->decoder;
    model_windows(r, model_number(r, "attention.sliding_window", 0, 0), PERIOD);
    d->rope[1] = model_plain_rope(ROPE_NEOX, d->rope[0].dims);
    d->rope[1].base = d->rope[0].base;
    if (!d->window)
        d->rope[1] = d->rope[0];
}

const architecture arch_olmo2[] = {
    {
        .name = "olmo2",
        .rope_style = ROPE_NEOX,
        .qk_norm = QK_NORM_ROW,
        .features = FEATURE_NO_PRE_NORMS | FEATURE_OWN_OUTPUT,
        .required = TENSOR_LIST(QK_NORMS, POST_NORMS),
        .void_keys = KEY_LIST("attention.scale", "rope.freq_base_swa"),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
