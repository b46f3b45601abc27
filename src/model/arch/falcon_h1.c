/* Falcon-H1: attention and Mamba-2 side by side in every layer. The model's multipliers are folded
 * into the weights. */
#include "model/from_gguf/architecture.h"

static void adapt_layers(model_reader *r)
{
    decoder *d = &r->out->decoder;
    for (int64_t l = 0; l < d->layers; l++)
        d->at[l].recurs = 1;
}

static void adapt(model_reader *r)
{
    r->out->decoder.renamed[TENSOR_FFN_NORM] = 1;
    model_read_mamba2(r);
}

const architecture arch_falcon_h1[] = {
    {
        .name = "falcon-h1",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_RECURRENT,
        .optional = TENSOR_LIST(TENSOR_SSM_NORM),
        .adapt_layers = adapt_layers,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
