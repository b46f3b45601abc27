/* DeepSeek V2 and V3, GLM-4.7-Flash, Mistral 4: multi-head latent attention, and experts in all but
 * the first layers. Attention is absorbed: the cache row of a position, shared by all heads, is the
 * latent and a RoPE part. A file's key_length and value_length are those of that row. In files of
 * 2024, which lack the keys that end with _mla, they are those of a head, and attn_kv_b has the
 * matrices of k and v.
 *
 * YaRN scales scores by (1 + m ln factor)^2, where m = yarn_log_multiplier is 0.1 mscale_all_dim,
 * and leaves cos and sin unscaled. Without that key cos and sin have YaRN's default magnitude s = 1
 * + 0.1 ln factor. Scores are then scaled by s^2, as in llama.cpp. In mistral4 cos and sin are
 * always scaled by s / (1 + m ln factor), and scores by s^2. */
#include <math.h>

#include "model/from_gguf/architecture.h"

static void read_heads(model_reader *r)
{
    static const char key[] = "attention.key_length", key_mla[] = "attention.key_length_mla";
    static const char kv_heads[] = "attention.head_count_kv";
    bool by_head = !model_find_key(r, key_mla);
    const char *head = by_head ? key : key_mla;
    decoder *d = &r->out->decoder;
    d->latent = model_required_number(r, "attention.kv_lora_rank");
    int64_t dims = model_required_number(r, "rope.dimension_count");
    int64_t heads = model_required_number(r, "attention.head_count");
    int64_t size = model_required_number(r, head);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].num_heads = heads;
        d->at[l].num_kv_heads = 1;
        d->at[l].head_dim = size;
    }
    d->q_rank = model_number(r, "attention.q_lora_rank", 0, 0);
    if (by_head) {
        d->value_dim = model_required_number(r, "attention.value_length");
        model_require_same(r, kv_heads, heads, "attn_kv_b has k and v of each head");
    } else {
        model_required_number(r, kv_heads);
        d->value_dim = model_required_number(r, "attention.value_length_mla");
        model_require_same(r, kv_heads, 1, "all heads share one cache row");
        model_require_same(r, key, d->latent + dims, "kv_lora_rank + rope.dimension_count");
        model_require_same(r, "attention.value_length", d->latent, "the value of kv_lora_rank");
    }
    if (dims >= size)
        model_bad_key(r, "rope.dimension_count = %lld leaves no part of %s = %lld without RoPE",
                      (long long)dims, head, (long long)size);
}

/* Reads the temperature, and YaRN's scales of scores and RoPE. divides: cos and sin are divided by
 * the factor of scores that yarn_log_multiplier states. */
static void read_scales(model_reader *r, bool divides)
{
    decoder *d = &r->out->decoder;
    model_read_temperature(r);
    if (d->rope[0].scaling != ROPE_YARN)
        return;
    bool extends = d->rope[0].extension > 0;
    double multiplier = model_real(r, "rope.scaling.yarn_log_multiplier", 0);
    double growth = d->rope[0].factor > 1 ? log(d->rope[0].factor) : 0;
    double magnitude = model_real(r, "rope.scaling.attn_factor", 1);
    double score = 1 + multiplier * growth;
    if (!extends) {
        magnitude *= model_real(r, "rope.scaling.yarn_attn_factor", 1);
        score *= 1 + 0.1 * growth;
    } else if (divides || multiplier <= 0) {
        magnitude *= (1 + 0.1 * growth) / score;
    }
    score *= magnitude;
    for (int i = 0; i < 2; i++)
        d->rope[i].magnitude = magnitude < 1 || magnitude > 1 ? magnitude : 0;
    if (d->attention_scale <= 0 && (score < 1 || score > 1))
        d->attention_scale = score * score / sqrt((double)d->at[0].head_dim);
}

static void adapt_deepseek2(model_reader *r)
{
    enum { LAYERS_OF_FLASH = 47, TOKENS_OF_FLASH = 154880 };
    decoder *d = &r->out->decoder;
    /* Files of V2 lack expert_gating_func and use softmax. Early files of GLM-4.7-Flash lack it,
     * too, and use sigmoid: layers and vocabulary identify them. */
    int64_t further = d->layers - LAYERS_OF_FLASH;
    if (!model_number(r, "expert_gating_func", 0, 0) && (further == 0 || further == 1)) {
        const gguf_key *tokens = gguf_find_key(r->file, "tokenizer.ggml.tokens");
        int64_t listed = tokens && tokens->is_array ? (int64_t)tokens->count : 0;
        if (model_number(r, "vocab_size", 0, listed) == TOKENS_OF_FLASH)
            d->gating = GATING_SIGMOID;
    }
    read_scales(r, false);
}

static void adapt_mistral4(model_reader *r)
{
    read_scales(r, true);
}

const architecture arch_deepseek2[] = {
    {
        .name = "deepseek2",
        .rope_base = 10000,
        .features = FEATURE_EXPERTS | FEATURE_LATENT | FEATURE_NEXTN | FEATURE_YARN_LOG,
        .expert_rows = EXPERT_ROWS_OWN,
        .may_fuse_experts = true,
        .optional = TENSOR_LIST(TENSOR_EXP_PROBS_B),
        .read_heads = read_heads,
        .adapt = adapt_deepseek2,
    },
    {
        .name = "mistral4",
        .rope_base = 10000,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_LATENT | FEATURE_NEXTN |
                    FEATURE_YARN_LOG,
        .expert_rows = EXPERT_ROWS_OWN,
        .may_fuse_experts = true,
        .optional = TENSOR_LIST(TENSOR_EXP_PROBS_B),
        .read_heads = read_heads,
        .adapt = adapt_mistral4,
    },
    ARCHITECTURE_END,
};
