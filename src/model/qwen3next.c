/* Qwen3-Next: three of four layers are gated delta nets, whose heads of v have an alpha, a beta and
 * a state each; the attention of the others has a gate by value, and all have a shared expert that
 * is gated. The norm ahead of the experts is named post_attention_norm. */
#include "model/architecture.h"

enum { USUAL_INTERVAL = 4 };

static const uint8_t required[] = { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM, TENSOR_PRE_FFN_NORM,
                                    TENSOR_FFN_GATE_INP_SHEXP, TENSOR_COUNT };

static void read_delta_nets(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->delta_key_heads = model_required_number(r, "ssm.group_count");
    d->delta_value_heads = model_required_number(r, "ssm.time_step_rank");
    d->delta_head_dim = model_required_number(r, "ssm.state_size");
    model_required_number(r, "ssm.conv_kernel");
    model_require_same(r, "ssm.conv_kernel", DELTA_CONV, "the inputs that a convolution is over");
    model_require_same(r, "ssm.inner_size", d->delta_value_heads * d->delta_head_dim,
                       "it is ssm.time_step_rank * ssm.state_size");
    if (d->delta_value_heads % d->delta_key_heads)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "qwen3next.ssm.time_step_rank = %lld is not a multiple of ssm.group_count = "
                    "%lld",
                    (long long)d->delta_value_heads, (long long)d->delta_key_heads);
}

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t interval = model_number(r, "full_attention_interval", 1, USUAL_INTERVAL);
    for (int64_t l = 0; l < d->layers; l++)
        d->recurrent[l] = (l + 1) % interval != 0;
    if (interval < 2 || interval > d->layers)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "qwen3next.full_attention_interval = %lld is not from 2 to block_count = %lld: "
                    "there are layers of both kinds",
                    (long long)interval, (long long)d->layers);
    read_delta_nets(r);
    d->attention_gate = 1;
    if (!d->shared_ff)
        d->shared_ff = model_required_number(r, "feed_forward_length");
}

const architecture model_qwen3next = {
    .name = "qwen3next",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_SILU,
    .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_RECURRENT,
    .gating = GATING_SOFTMAX,
    .experts_normed = true,
    .expert_rows = EXPERT_ROWS_SHARED_OUT,
    .may_fuse_experts = true,
    .required = required,
    .adapt = adapt,
};
