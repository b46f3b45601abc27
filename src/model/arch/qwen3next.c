/* Qwen3-Next: three of four layers are gated delta nets, whose heads of v have an alpha, a beta and
 * a state each; the attention of the others has a gate by value, and all have a shared expert that
 * is gated. The norm ahead of the experts is named post_attention_norm. */
#include "model/arch/architecture.h"

static const uint8_t required[] = { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM, TENSOR_PRE_FFN_NORM,
                                    TENSOR_FFN_GATE_INP_SHEXP, TENSOR_COUNT };

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    model_read_delta_nets(r, DELTA_GROUPED);
    d->attention_gate = 1;
    model_required_number(r, "rope.dimension_count"); /* a part of a head turns */
    if (!d->shared_ff)
        d->shared_ff = model_required_number(r, "feed_forward_length");
}

const architecture model_qwen3next = {
    .name = "qwen3next",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_SILU,
    .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_RECURRENT | FEATURE_NEXTN,
    .gating = GATING_SOFTMAX,
    .experts_normed = true,
    .expert_rows = EXPERT_ROWS_SHARED_OUT,
    .may_fuse_experts = true,
    .required = required,
    .adapt = adapt,
};
