/* Apertus: a llama layer with norms of heads and a feed-forward with xIELU and without a gate. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    double alpha_n[DECODER_MOST_LAYERS], alpha_p[DECODER_MOST_LAYERS], beta[DECODER_MOST_LAYERS],
        eps[DECODER_MOST_LAYERS];
    model_reals(r, "xielu.alpha_n", NULL, alpha_n);
    model_reals(r, "xielu.alpha_p", NULL, alpha_p);
    model_reals(r, "xielu.beta", NULL, beta);
    model_reals(r, "xielu.eps", NULL, eps);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].xielu_alpha_n = alpha_n[l];
        d->at[l].xielu_alpha_p = alpha_p[l];
        d->at[l].xielu_beta = beta[l];
        d->at[l].xielu_eps = eps[l];
    }
}

const architecture arch_apertus[] = {
    {
        .name = "apertus",
        .rope_style = ROPE_NEOX,
        .activation = ACTIVATION_XIELU,
        .features = FEATURE_NO_GATES | FEATURE_OWN_OUTPUT,
        .required = TENSOR_LIST(QK_NORMS),
        .optional = TENSOR_LIST(QKV_BIASES, TENSOR_ATTN_OUTPUT_BIAS, TENSOR_ROPE_FREQS),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
