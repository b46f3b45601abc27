/* Command R7B, Command A: attention and feed-forward both read one LayerNorm. Three of four layers
 * have windows, and RoPE in those only. With experts, leading layers have RoPE, too, the shared
 * expert and the mixture are averaged, and the norm may be an RMS norm. */
#include "model/from_gguf/architecture.h"

static const double MEAN_OF_TWO = 0.5;

static void adapt(model_reader *r)
{
    enum { PERIOD = 4 };
    r->out->decoder.logit_scale = model_required_real(r, "logit_scale");
    model_windows(r, model_required_number(r, "attention.sliding_window"), PERIOD);
    model_turn_windowed(r);
}

/* Reads windows: a list, or with a period p all layers but 0, p, 2 p, ... */
static void adapt_experts(model_reader *r)
{
    static const char pattern[] = "attention.sliding_window_pattern";
    enum { PERIOD = 4 };
    decoder *d = &r->out->decoder;
    d->logit_scale = model_required_real(r, "logit_scale");
    int64_t leading = model_number(r, "leading_dense_block_count", 0, 0);
    const gguf_key *key = model_find_key(r, pattern);
    model_windows(r, model_required_number(r, "attention.sliding_window"), PERIOD);
    int64_t period = key && !key->is_array ? model_number(r, pattern, 1, PERIOD) : 0;
    for (int64_t l = 0; l < d->layers; l++) {
        if (period)
            d->at[l].windowed = l % period != 0;
        d->at[l].unturned = !d->at[l].windowed && l >= leading;
    }
    if (!d->shared_ff)
        return;
    d->experts_scale = MEAN_OF_TWO * (d->experts_scale > 0 ? d->experts_scale : 1);
    d->shared_scale = MEAN_OF_TWO;
}

const architecture arch_cohere2[] = {
    {
        .name = "cohere2",
        .features = FEATURE_LAYER_NORM | FEATURE_PARALLEL,
        .optional = TENSOR_LIST(QKV_BIASES),
        .void_keys = KEY_LIST("attention.scale", "rope.freq_base_swa"),
        .adapt = adapt,
    },
    {
        .name = "cohere2moe",
        .features = FEATURE_LAYER_NORM | FEATURE_NORM_BY_KEY | FEATURE_PARALLEL | FEATURE_EXPERTS |
                    FEATURE_EXPERTS_ALWAYS | FEATURE_NEXTN,
        .gating = GATING_SIGMOID,
        .expert_rows = EXPERT_ROWS_OWN,
        .may_fuse_experts = true,
        .void_keys = KEY_LIST("attention.scale", "rope.freq_base_swa"),
        .adapt = adapt_experts,
    },
    ARCHITECTURE_END,
};
