/* Gemma: a llama layer with gelu gates. Embeddings are scaled by sqrt(hidden), here and in the others.
 *
 * Gemma 2: RMS norms before and after attention and feed-forward, and gelu gates. Scores and logits
 * have soft caps. Every other layer has a 4096-token window. Gemma 3 has no cap on scores, but RMS
 * norms of q's and k's heads. Five of six layers have a window, with a RoPE base of their own and
 * no scaling. */
#include <math.h>

#include "model/from_gguf/architecture.h"

/* Early files of Gemma 2 lack the keys of caps and window: these are the model's values. */
enum {
    LAYERS_OF_2_27B = 46,
    LAYERS_OF_3_27B = 62,
    USUAL_WINDOW = 4096,
    USUAL_ATTENTION_CAP = 50,
    USUAL_FINAL_CAP = 30,
    PERIOD_OF_2 = 2,
    PERIOD_OF_3 = 6
};

/* Sets the scale of scores: (hidden / num_heads)^-0.5 in a generation's largest model, found by
 * its layers; otherwise head_dim^-0.5. */
static void set_scales(decoder *d, int64_t layers_of_largest)
{
    if (d->layers == layers_of_largest)
        d->attention_scale = 1 / sqrt((double)d->hidden / (double)d->at[0].num_heads);
}

static void adapt_gemma2(model_reader *r)
{
    decoder *d = &r->out->decoder;
    model_scale_embedding(r);
    set_scales(d, LAYERS_OF_2_27B);
    d->attention_softcap = model_real(r, "attn_logit_softcapping", USUAL_ATTENTION_CAP);
    d->final_softcap = model_real(r, "final_logit_softcapping", USUAL_FINAL_CAP);
    model_windows(r, model_number(r, "attention.sliding_window", 0, USUAL_WINDOW), PERIOD_OF_2);
}

static void adapt_gemma3(model_reader *r)
{
    decoder *d = &r->out->decoder;
    model_scale_embedding(r);
    set_scales(d, LAYERS_OF_3_27B);
    d->final_softcap = model_real(r, "final_logit_softcapping", 0);
    model_windows(r, model_number(r, "attention.sliding_window", 0, 0), PERIOD_OF_3);
    if (!d->window)
        return;
    rope_options *windowed = &d->rope[1];
    windowed->base = model_real(r, "rope.freq_base_swa", 10000);
    windowed->scaling = ROPE_UNSCALED;
    windowed->magnitude = 0;
}

const architecture arch_gemma[] = {
    {
        .name = "gemma",
        .rope_style = ROPE_NEOX,
        .activation = ACTIVATION_GELU,
        .rope_base = 10000,
        .void_keys = KEY_LIST("attention.scale", "final_logit_softcapping"),
        .adapt = model_scale_embedding,
    },
    {
        .name = "gemma2",
        .rope_style = ROPE_NEOX,
        .activation = ACTIVATION_GELU,
        .rope_base = 10000,
        .required = TENSOR_LIST(POST_NORMS),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt_gemma2,
    },
    {
        .name = "gemma3",
        .rope_style = ROPE_NEOX,
        .activation = ACTIVATION_GELU,
        .required = TENSOR_LIST(QK_NORMS, POST_NORMS),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt_gemma3,
    },
    ARCHITECTURE_END,
};
