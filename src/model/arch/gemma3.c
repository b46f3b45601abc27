/* Gemma 3: as Gemma 2 without caps, with norms of q's and k's heads, and a window in five of six
 * layers, whose RoPE has a base of its own and is not scaled. */
#include "model/arch/gemma.h"

enum { LAYERS_OF_27B = 62, PERIOD = 6 };

static const uint8_t required[] = { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM,
                                    TENSOR_POST_ATTENTION_NORM, TENSOR_POST_FFW_NORM,
                                    TENSOR_COUNT };

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    gemma_scales(r, LAYERS_OF_27B);
    d->final_softcap = model_real(r, "final_logit_softcapping", 0);
    model_windows(r, model_number(r, "attention.sliding_window", 0, 0), PERIOD);
    if (!d->window)
        return;
    rope_options *windowed = &d->rope[1];
    windowed->base = model_real(r, "rope.freq_base_swa", 10000);
    windowed->scaling = ROPE_UNSCALED;
    windowed->magnitude = 0;
}

const architecture model_gemma3 = {
    .name = "gemma3",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_GELU,
    .required = required,
    .adapt = adapt,
};
