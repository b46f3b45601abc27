/* DeepSeek V2, V3 and what is made like them: latent attention, and experts in all but the first
 * layers. A file's keys are those of absorbed attention: k and v of all heads are one row of the
 * latent and what RoPE turns. YaRN's magnitude is in the scale of the scores, squared, and not in
 * cos and sin: 1 + multiplier ln(factor), where the key has 0.1 of the model's multiplier. */
#include <math.h>

#include "model/architecture.h"

static const uint8_t optional[] = { TENSOR_EXP_PROBS_B, TENSOR_COUNT };

static void read_heads(model_reader *r)
{
    static const char head[] = "attention.key_length_mla";
    decoder *d = &r->out->decoder;
    d->latent = model_required_number(r, "attention.kv_lora_rank");
    int64_t dims = model_required_number(r, "rope.dimension_count");
    if (!model_has_key(r, head)) {
        model_error(
            r, DIAG_BAD_MODEL_KEY,
            "deepseek2.%s is missing, so that the file has attn_kv_b; a llama.cpp from April "
            "2025 on makes files with attn_k_b and attn_v_b in its place, which are read "
            "here",
            head);
        return;
    }
    d->num_kv_heads = model_required_number(r, "attention.head_count_kv");
    d->head_dim = model_required_number(r, head);
    d->value_dim = model_required_number(r, "attention.value_length_mla");
    d->q_rank = model_number(r, "attention.q_lora_rank", 0, 0);
    model_require_same(r, "attention.head_count_kv", 1, "there is one row for all heads");
    model_require_same(r, "attention.key_length", d->latent + dims,
                       "it is kv_lora_rank + rope.dimension_count");
    model_require_same(r, "attention.value_length", d->latent, "it is kv_lora_rank");
    if (dims >= d->head_dim)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "deepseek2.rope.dimension_count = %lld leaves nothing of %s = %lld that does "
                    "not turn",
                    (long long)dims, head, (long long)d->head_dim);
}

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    if (d->rope[0].scaling != ROPE_YARN)
        return;
    double magnitude = model_real(r, "rope.scaling.attn_factor", 1);
    double multiplier = model_required_real(r, "rope.scaling.yarn_log_multiplier");
    double growth = d->rope[0].factor > 1 ? log(d->rope[0].factor) : 0;
    double score = magnitude * (1 + multiplier * growth);
    for (int i = 0; i < 2; i++)
        d->rope[i].magnitude = magnitude < 1 || magnitude > 1 ? magnitude : 0;
    if (d->attention_scale <= 0 && (score < 1 || score > 1))
        d->attention_scale = score * score / sqrt((double)d->head_dim);
}

const architecture model_deepseek2 = {
    .name = "deepseek2",
    .rope_style = ROPE_NORM,
    .activation = ACTIVATION_SILU,
    .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_LATENT,
    .gating = GATING_SOFTMAX, /* of files of V2, which have no key */
    .expert_rows = EXPERT_ROWS_OWN,
    .may_fuse_experts = true,
    .optional = optional,
    .read_heads = read_heads,
    .adapt = adapt,
};
