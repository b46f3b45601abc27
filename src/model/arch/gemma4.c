/* Gemma 4: norms before and after attention and feed-forward, norms of the heads of q, k and v, scores
 * without a scale, and a factor of each layer's output. Five of six layers have a window, with other
 * numbers and sizes of heads and a RoPE of their own; those with full context may lack attn_v, as V
 * is K then. The E models have per-layer embeddings, and last layers that read the caches of earlier
 * ones. The largest has experts beside the dense feed-forward.
 *
 * A file's rope_freqs leave most pairs of full-context layers unrotated. */
#include <math.h>

#include "model/from_gguf/architecture.h"

/* The last layers read the caches of the last layer of their kind before them. */
static void share_caches(model_reader *r)
{
    static const uint8_t unused[] = { TENSOR_ATTN_K, TENSOR_ATTN_V, TENSOR_ATTN_K_NORM,
                                      TENSOR_ATTN_K_SCALE, TENSOR_ATTN_V_SCALE };
    decoder *d = &r->out->decoder;
    int64_t shared = model_number(r, "attention.shared_kv_layers", 0, 0);
    int64_t full = d->layers - shared - 1;
    if (!shared)
        return;
    if (full < 1 || !d->at[full - 1].windowed || d->at[full].windowed) {
        model_bad_key(r,
                      "attention.shared_kv_layers = %lld needs a window layer, then a layer "
                      "without a window before them",
                      (long long)shared);
        return;
    }
    for (int64_t l = full + 1; l < d->layers; l++) {
        d->at[l].cache = d->at[l].windowed ? full - 1 : full;
        for (size_t i = 0; i < sizeof unused; i++)
            model_ignore_in_layer(r, unused[i], l);
    }
}

static void read_heads(model_reader *r)
{
    static const char one_size[] = "k and v of a layer have the same head size";
    decoder *d = &r->out->decoder;
    int64_t heads[DECODER_MOST_LAYERS], kv_heads[DECODER_MOST_LAYERS];
    model_numbers(r, "attention.head_count", 1, 0, heads);
    model_numbers(r, "attention.head_count_kv", 1, heads[0], kv_heads);
    int64_t size = model_number(r, "attention.key_length", 1, d->hidden / heads[0]);
    int64_t windowed_size = model_required_number(r, "attention.key_length_swa");
    model_require_same(r, "attention.value_length", size, one_size);
    model_require_same(r, "attention.value_length_swa", windowed_size, one_size);
    static const char pattern[] = "attention.sliding_window_pattern";
    const gguf_key *key = model_find_key(r, pattern);
    int64_t window = model_required_number(r, "attention.sliding_window");
    if (!key || !key->is_array)
        model_bad_key(r, "%s is %s; it lists the layers with a window", pattern,
                      key ? "no array" : "missing");
    else
        model_windows(r, window, 1);

    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].num_heads = heads[l];
        d->at[l].num_kv_heads = kv_heads[l];
        d->at[l].head_dim = d->at[l].windowed ? windowed_size : size;
    }
    share_caches(r);
    for (int64_t l = 0; l < d->layers; l++)
        d->at[l].v_from_k = d->at[l].cache == l && !model_find_tensor(r, TENSOR_ATTN_V, l);
}

static void adapt_layers(model_reader *r)
{
    decoder *d = &r->out->decoder;
    model_route_by_tensors(r);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].is_dense = 1;
        d->at[l].is_routed &= d->experts > 0;
    }
}

static void adapt(model_reader *r)
{
    static const char *const of_media[] = { "v.", "a.", "mm." };
    static const char per_layer[] = "embedding_length_per_layer_input";
    decoder *d = &r->out->decoder;
    model_scale_embedding(r);
    /* Scaling and factors are for layers with full context. */
    int64_t size = model_number(r, "attention.key_length", 1, d->hidden / d->at[0].num_heads);
    d->rope[0].dims = model_number(r, "rope.dimension_count", 2, size);
    d->rope[1] = model_plain_rope(ROPE_NEOX,
                                  model_number(r, "rope.dimension_count_swa", 2, d->rope[0].dims));
    d->rope[1].base = model_real(r, "rope.freq_base_swa", d->rope[1].base);
    d->factor_dims = d->rope[0].dims == size ? 0 : size;
    d->attention_scale = 1;
    d->v_norm = 1;
    d->final_softcap = model_real(r, "final_logit_softcapping", 30);
    if (!model_find_key(r, per_layer))
        model_bad_key(r, "%s is missing", per_layer);
    d->per_layer = model_number(r, per_layer, 0, 0);
    if (decoder_first_layer(d, PART_EXPERTS) >= 0) {
        d->has[TENSOR_ROUTER_NORM] = 1;
        d->router_scale = 1 / sqrt((double)d->hidden);
    }
    for (size_t i = 0; i < sizeof of_media / sizeof *of_media; i++)
        model_ignore_prefix(r, of_media[i]);
}

const architecture arch_gemma4[] = {
    {
        .name = "gemma4",
        .rope_style = ROPE_NEOX,
        .rope_base = 10000,
        .activation = ACTIVATION_GELU,
        .features = FEATURE_EXPERTS | FEATURE_FULL_FACTORS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OWN,
        .may_fuse_experts = true,
        .required = TENSOR_LIST(TENSOR_ROPE_FREQS, QK_NORMS, POST_NORMS),
        .optional = TENSOR_LIST(TENSOR_LAYER_OUTPUT_SCALE, TENSOR_FFN_DOWN_EXPS_SCALE),
        .void_keys = KEY_LIST("attention.scale", "attn_logit_softcapping", "embedding_scale",
                              "expert_gating_func", "expert_weights_norm", "expert_weights_scale",
                              "vision.*", "audio.*"),
        .read_heads = read_heads,
        .adapt_layers = adapt_layers,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
