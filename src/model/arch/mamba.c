/* Mamba and Mamba-2: layers with a recurrence only. Files name no heads: attention.head_count is 0. */
#include "model/from_gguf/architecture.h"

static void adapt_layers(model_reader *r)
{
    decoder *d = &r->out->decoder;
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].attends = d->at[l].is_dense = 0;
        d->at[l].recurs = 1;
    }
}

static void adapt_mamba(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->recurrence = RECURRENCE_MAMBA;
    d->conv_kernel = model_required_number(r, "ssm.conv_kernel");
    d->inner = model_required_number(r, "ssm.inner_size");
    d->state_size = model_required_number(r, "ssm.state_size");
    d->dt_rank = model_required_number(r, "ssm.time_step_rank");
    d->dt_b_c_norm = model_flag(r, "ssm.dt_b_c_rms", false);
}

const architecture arch_mamba[] = {
    {
        .name = "mamba",
        .rope_style = ROPE_NONE,
        .rope_base = 10000,
        .features = FEATURE_RECURRENT | FEATURE_MIXED,
        .adapt_layers = adapt_layers,
        .adapt = adapt_mamba,
    },
    {
        .name = "mamba2",
        .rope_style = ROPE_NONE,
        .rope_base = 10000,
        .features = FEATURE_RECURRENT | FEATURE_MIXED,
        .required = TENSOR_LIST(TENSOR_SSM_NORM),
        .adapt_layers = adapt_layers,
        .adapt = model_read_mamba2,
    },
    ARCHITECTURE_END,
};
