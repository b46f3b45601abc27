/* DeepSeek V2 and V3, GLM-4.7-Flash: multi-head latent attention, and experts in all but the first
 * layers. Attention is absorbed: the cache row of a position, shared by all heads, is the latent
 * and a RoPE part. A file's key_length and value_length are those of that row.
 *
 * YaRN scales scores by (1 + m ln factor)^2, where m = yarn_log_multiplier is 0.1 mscale_all_dim,
 * and leaves cos and sin unscaled. Without that key cos and sin have YaRN's default magnitude s = 1
 * + 0.1 ln factor. Scores are then scaled by s^2, as in llama.cpp. */
#include <math.h>

#include "model/from_gguf/architecture.h"

static void read_heads(model_reader *r)
{
    static const char head[] = "attention.key_length_mla";
    decoder *d = &r->out->decoder;
    d->latent = model_required_number(r, "attention.kv_lora_rank");
    int64_t dims = model_required_number(r, "rope.dimension_count");
    if (!model_find_key(r, head)) {
        model_bad_key(r,
                      "%s is missing: the file has the old layout with attn_kv_b; convert the "
                      "model again with a llama.cpp of April 2025 or newer",
                      head);
        return;
    }
    int64_t heads = model_required_number(r, "attention.head_count");
    int64_t size = model_required_number(r, head);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].num_heads = heads;
        d->at[l].num_kv_heads = 1;
        d->at[l].head_dim = size;
    }
    d->value_dim = model_required_number(r, "attention.value_length_mla");
    d->q_rank = model_number(r, "attention.q_lora_rank", 0, 0);
    model_required_number(r, "attention.head_count_kv");
    model_require_same(r, "attention.head_count_kv", 1, "all heads share one cache row");
    model_require_same(r, "attention.key_length", d->latent + dims,
                       "kv_lora_rank + rope.dimension_count");
    model_require_same(r, "attention.value_length", d->latent, "the value of kv_lora_rank");
    if (dims >= size)
        model_bad_key(r, "rope.dimension_count = %lld leaves no part of %s = %lld without RoPE",
                      (long long)dims, head, (long long)size);
}

static void adapt(model_reader *r)
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
    } else if (multiplier <= 0) {
        magnitude *= 1 + 0.1 * growth;
    }
    score *= magnitude;
    for (int i = 0; i < 2; i++)
        d->rope[i].magnitude = magnitude < 1 || magnitude > 1 ? magnitude : 0;
    if (d->attention_scale <= 0 && (score < 1 || score > 1))
        d->attention_scale = score * score / sqrt((double)d->at[0].head_dim);
}

const architecture arch_deepseek2[] = {
    {
        .name = "deepseek2",
        .rope_base = 10000,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_LATENT | FEATURE_NEXTN,
        .expert_rows = EXPERT_ROWS_OWN,
        .may_fuse_experts = true,
        .optional = TENSOR_LIST(TENSOR_EXP_PROBS_B),
        .read_heads = read_heads,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
