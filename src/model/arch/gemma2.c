/* Gemma 2: norms behind attention and ffn too, caps on scores and logits, and a window of 4096 in
 * every other layer. */
#include <math.h>

#include "model/arch/gemma.h"

/* Files of the first weeks have no keys of the caps and the window. */
enum {
    LAYERS_OF_27B = 46,
    USUAL_WINDOW = 4096,
    USUAL_ATTENTION_CAP = 50,
    USUAL_FINAL_CAP = 30,
    PERIOD = 2
};

static const uint8_t required[] = { TENSOR_POST_ATTENTION_NORM, TENSOR_POST_FFW_NORM,
                                    TENSOR_COUNT };

void gemma_scales(model_reader *r, int64_t layers_of_largest)
{
    decoder *d = &r->out->decoder;
    d->embedding_scale = sqrt((double)d->hidden);
    if (d->layers == layers_of_largest && d->attention_scale <= 0)
        d->attention_scale = 1 / sqrt((double)d->hidden / (double)d->num_heads);
}

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    gemma_scales(r, LAYERS_OF_27B);
    d->attention_softcap = model_real(r, "attn_logit_softcapping", USUAL_ATTENTION_CAP);
    d->final_softcap = model_real(r, "final_logit_softcapping", USUAL_FINAL_CAP);
    model_windows(r, model_number(r, "attention.sliding_window", 0, USUAL_WINDOW), PERIOD);
}

const architecture model_gemma2 = {
    .name = "gemma2",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_GELU,
    .rope_base = 10000,
    .required = required,
    .adapt = adapt,
};
