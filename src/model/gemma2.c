/* Gemma 2: norms behind attention and ffn too, caps on scores and logits, and a window of 4096 in
 * every other layer. */
#include <math.h>

#include "model/gemma.h"

enum { LAYERS_OF_27B = 46, USUAL_WINDOW = 4096, PERIOD = 2 };

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
    d->attention_softcap = model_required_real(r, "attn_logit_softcapping");
    d->final_softcap = model_required_real(r, "final_logit_softcapping");
    model_windows(r, model_number(r, "attention.sliding_window", 0, USUAL_WINDOW), PERIOD);
}

const architecture model_gemma2 = {
    .name = "gemma2",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_GELU,
    .required = required,
    .adapt = adapt,
};
