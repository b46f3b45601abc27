/* Qwen3-Next: three of four layers are gated delta nets, in which each value head has an alpha, a
 * beta and a state. The other layers have attention with a sigmoid gate per value of o. All layers
 * have experts and a gated shared expert. The norm before them is named post_attention_norm.
 *
 * Qwen3.5 (dense or with experts) tiles value heads over key heads, and has separate matrices for
 * betas and alphas. Its RoPE chooses for each pair one of four positions of a token. In text the
 * first three are equal, so that it is plain NEOX RoPE. */
#include "model/from_gguf/architecture.h"

enum { USUAL_INTERVAL = 4 };

/* Reads which layers are delta nets: from a list, or all but the last of an interval. */
static void read_recurrent_layers(model_reader *r)
{
    static const char list[] = "attention.recurrent_layers", name[] = "full_attention_interval";
    decoder *d = &r->out->decoder;
    int64_t interval = model_number(r, name, 1, USUAL_INTERVAL), recurrent = 0;
    const gguf_key *key = model_find_key(r, list) ? model_use_key(r, list) : NULL;
    for (int64_t l = 0; l < d->layers; l++) {
        int64_t is = (l + 1) % interval != 0;
        if (key && !gguf_get_i64(key, (uint64_t)l, &is)) {
            model_error(r, DIAG_BAD_MODEL_KEY, "%s has no value for layer %lld", key->name,
                        (long long)l);
            return;
        }
        d->at[l].recurs = is != 0;
        d->at[l].attends = is == 0;
        recurrent += is != 0;
    }
    if (key && (!recurrent || recurrent == d->layers))
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s marks %s of %lld layers as recurrent; some must be recurrent and some have "
                    "attention",
                    key->name, recurrent ? "all" : "none", (long long)d->layers);
    if (!key && (interval < 2 || interval > d->layers))
        model_bad_key(r,
                      "%s = %lld is out of range; 2 to the number of layers, %lld, leave layers of "
                      "both kinds",
                      name, (long long)interval, (long long)d->layers);
}

/* Reads delta nets and gated attention, which all these architectures have. */
static void adapt_qwen3next(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->delta_layout = DELTA_GROUPED;
    d->delta_key_heads = model_required_number(r, "ssm.group_count");
    d->delta_value_heads = model_required_number(r, "ssm.time_step_rank");
    d->delta_head_dim = model_required_number(r, "ssm.state_size");
    model_required_number(r, "ssm.conv_kernel");
    model_require_same(r, "ssm.conv_kernel", DELTA_CONV, "the length of a delta net's convolution");
    model_require_same(r, "ssm.inner_size", d->delta_value_heads * d->delta_head_dim,
                       "ssm.time_step_rank * ssm.state_size");
    if (d->delta_value_heads % d->delta_key_heads)
        model_bad_key(r, "ssm.time_step_rank = %lld is not a multiple of ssm.group_count = %lld",
                      (long long)d->delta_value_heads, (long long)d->delta_key_heads);
    d->attention_gate = ATTENTION_GATE_OF_Q;
    model_required_number(r, "rope.dimension_count"); /* RoPE rotates part of a head */
    if (d->experts && !d->shared_ff)
        d->shared_ff = model_required_number(r, "feed_forward_length");
}

static void adapt_tiled(model_reader *r)
{
    adapt_qwen3next(r);
    r->out->decoder.delta_layout = DELTA_TILED;
    model_read_sections(r);
}

#define OF_EXPERTS                                                                            \
    .rope_style = ROPE_NEOX, .experts_normed = true, .may_fuse_experts = true,                \
    .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_RECURRENT | FEATURE_NEXTN, \
    .expert_rows = EXPERT_ROWS_SHARED_OUT, .adapt_layers = read_recurrent_layers,             \
    .required = TENSOR_LIST(QK_NORMS, TENSOR_PRE_FFN_NORM, TENSOR_FFN_GATE_INP_SHEXP)

const architecture arch_qwen3next[] = {
    { .name = "qwen3next", OF_EXPERTS, .adapt = adapt_qwen3next },
    {
        .name = "qwen35",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_RECURRENT | FEATURE_NEXTN,
        .required = TENSOR_LIST(QK_NORMS, TENSOR_PRE_FFN_NORM),
        .adapt_layers = read_recurrent_layers,
        .adapt = adapt_tiled,
    },
    { .name = "qwen35moe", OF_EXPERTS, .adapt = adapt_tiled },
    ARCHITECTURE_END,
};
