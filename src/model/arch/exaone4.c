/* EXAONE 4: RMS norms after attention and feed-forward only, and of q's and k's heads. The model of 64
 * layers has windows in three of four layers, and RoPE in those only. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    enum { LAYERS_WITH_WINDOWS = 64, USUAL_WINDOW = 4096, PERIOD = 4 };
    if (r->out->decoder.layers != LAYERS_WITH_WINDOWS) {
        model_ignore_key(r, "attention.sliding_window");
        model_ignore_key(r, "attention.sliding_window_pattern");
        return;
    }
    model_windows(r, model_number(r, "attention.sliding_window", 0, USUAL_WINDOW), PERIOD);
    model_turn_windowed(r);
}

const architecture arch_exaone4[] = {
    {
        .name = "exaone4",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_NO_PRE_NORMS | FEATURE_NEXTN,
        .required = TENSOR_LIST(QK_NORMS, POST_NORMS),
        .optional = TENSOR_LIST(TENSOR_ROPE_FREQS),
        .void_keys = KEY_LIST("attention.scale", "rope.freq_base_swa"),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
