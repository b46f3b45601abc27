#include <stdarg.h>

#include "model/section/decoder_keys.h"

PRINTF_LIKE(4, 5)
static void report(const reader *r, diag_code code, const char *key_name, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    diag_error(r->diags, code, reader_blame(r, key_name), "%s",
               arena_vformat(r->arena, text, args));
    va_end(args);
}

static void check_heads(const reader *r)
{
    const decoder *d = r->out;
    if (!d->head_dim)
        report(r, DIAG_MISSING_KEY, "num_heads",
               "num_heads = %lld does not divide hidden = %lld; decoder requires the key "
               "'head_dim'",
               (long long)d->num_heads, (long long)d->hidden);
    else if (!reader_entry(r, "head_dim") && (d->head_dim % 4 || d->head_dim > 256))
        report(r, DIAG_OUT_OF_RANGE, "num_heads",
               "head_dim = hidden / num_heads = %lld is not a multiple of 4 from 4 to 256; set "
               "head_dim",
               (long long)d->head_dim);
    if (d->num_heads % d->num_kv_heads)
        report(r, DIAG_CONFLICT, "num_kv_heads",
               "num_heads = %lld is not a multiple of num_kv_heads = %lld", (long long)d->num_heads,
               (long long)d->num_kv_heads);
    if (d->latent && d->num_kv_heads != 1)
        report(r, DIAG_CONFLICT, "num_kv_heads",
               "num_kv_heads = %lld does not go with latent, whose cache rows are shared by all "
               "heads; use 1",
               (long long)d->num_kv_heads);
    if (d->latent && d->num_heads > PROBLEM_MOST_LATENT_HEADS)
        report(r, DIAG_OUT_OF_RANGE, "num_heads",
               "num_heads = %lld is too large with latent; the largest is %d",
               (long long)d->num_heads, PROBLEM_MOST_LATENT_HEADS);
    if (d->kv_type == KV_Q8_0 && !d->latent && d->head_dim % Q8_0_VALUES)
        report(r, DIAG_CONFLICT, "kv_type",
               "kv_type = q8_0 needs a head_dim that is a multiple of %d, not %lld; use f16",
               Q8_0_VALUES, (long long)d->head_dim);
}

static void check_rope(const reader *r)
{
    const decoder *d = r->out;
    static const char *const names[] = { "rope_dims", "rope_dims.window" };
    for (int i = 0; i < 2; i++)
        if (d->head_dim && d->rope[i].dims > d->head_dim && reader_entry(r, names[i]))
            report(r, DIAG_CONFLICT, names[i], "%s = %lld is more than head_dim = %lld", names[i],
                   (long long)d->rope[i].dims, (long long)d->head_dim);
    if (d->latent && d->rope[0].style == ROPE_NONE)
        report(r, DIAG_CONFLICT, "rope",
               "rope = none does not go with latent, which rotates the last values of each head; "
               "use norm or neox");
    else if (d->latent && d->rope[0].dims == d->head_dim)
        report(r, DIAG_CONFLICT, "rope_dims",
               "rope_dims = %lld equals head_dim; with latent it must be smaller, e.g. 64 of 192",
               (long long)d->rope[0].dims);
    else if (d->latent && (d->head_dim - d->rope[0].dims) % 8)
        report(r, DIAG_NOT_A_MULTIPLE, "head_dim",
               "head_dim - rope_dims = %lld is not a multiple of 8, as latent requires",
               (long long)(d->head_dim - d->rope[0].dims));
    else if (d->latent &&
             (d->rope[0].dims % PROBLEM_LATENT_UNIT || d->rope[0].dims > PROBLEM_MOST_LATENT_ROPE))
        report(r, DIAG_OUT_OF_RANGE, "rope_dims",
               "rope_dims = %lld does not go with latent; use a multiple of %d up to %d",
               (long long)d->rope[0].dims, PROBLEM_LATENT_UNIT, PROBLEM_MOST_LATENT_ROPE);
    if (!d->rope[1].factors)
        return;
    if (!d->rope[0].factors)
        report(r, DIAG_CONFLICT, "rope_factors.window",
               "rope_factors.window = tensor needs rope_factors");
    else if (d->rope[1].dims != d->rope[0].dims)
        report(r, DIAG_CONFLICT, "rope_dims.window",
               "rope_dims.window differs from rope_dims, and the tensor of rope_factors has "
               "rope_dims/2 = %lld values; set rope_factors.window = none",
               (long long)d->rope[0].dims / 2);
}

static void check_experts(const reader *r)
{
    const decoder *d = r->out;
    if (d->experts_used > d->experts)
        report(r, DIAG_CONFLICT, "experts_used", "experts_used = %lld is more than experts = %lld",
               (long long)d->experts_used, (long long)d->experts);
    if (d->experts && d->dense_layers >= d->layers)
        report(r, DIAG_CONFLICT, "dense_layers",
               "dense_layers = %lld leaves none of %lld layers with experts",
               (long long)d->dense_layers, (long long)d->layers);
    if (!d->expert_groups)
        return;
    int64_t in_group = d->experts / d->expert_groups;
    if (d->experts % d->expert_groups || in_group < 2)
        report(r, DIAG_CONFLICT, "expert_groups",
               "expert_groups = %lld does not divide experts = %lld into groups of two or more",
               (long long)d->expert_groups, (long long)d->experts);
    else if (d->expert_groups_used > d->expert_groups)
        report(r, DIAG_CONFLICT, "expert_groups_used",
               "expert_groups_used = %lld is more than expert_groups = %lld",
               (long long)d->expert_groups_used, (long long)d->expert_groups);
    else if (d->expert_groups_used * in_group < d->experts_used)
        report(r, DIAG_CONFLICT, "expert_groups_used",
               "expert_groups_used = %lld groups have %lld experts, fewer than experts_used = "
               "%lld",
               (long long)d->expert_groups_used, (long long)(d->expert_groups_used * in_group),
               (long long)d->experts_used);
}

static void check_recurrent(const reader *r)
{
    const decoder *d = r->out;
    int64_t recurrent = 0;
    for (int64_t l = 0; l < d->layers; l++) {
        recurrent += d->recurrent[l];
        if (!d->recurrent[l] || !d->windowed[l])
            continue;
        report(r, DIAG_CONFLICT, "window_layers",
               "layer %lld is in recurrent_layers and cannot have a window", (long long)l);
        return;
    }
    if (recurrent == d->layers)
        report(r, DIAG_CONFLICT, "recurrent_layers",
               "all %lld layers are recurrent; at least one must have attention",
               (long long)d->layers);
    if (recurrent && d->delta_value_heads % d->delta_key_heads)
        report(r, DIAG_CONFLICT, "delta_value_heads",
               "delta_value_heads = %lld is not a multiple of delta_key_heads = %lld",
               (long long)d->delta_value_heads, (long long)d->delta_key_heads);
}

/* Reports a bias, scale, norm or fused matrix whose counterpart is missing. Biases and scales of
 * products that one kernel computes go together. */
static void check_tensors(const reader *r)
{
    static const char *const keys[] = { [TENSOR_BIAS] = "biases",
                                        [TENSOR_SCALE] = "scales",
                                        [TENSOR_NORM] = "norms",
                                        [TENSOR_MATRIX] = "fused" };
    static const uint8_t rows[][3] = {
        { TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_Q, TENSOR_ATTN_K_BIAS },
        { TENSOR_ATTN_K_BIAS, TENSOR_ATTN_K, TENSOR_ATTN_V_BIAS },
        { TENSOR_ATTN_V_BIAS, TENSOR_ATTN_V, TENSOR_ATTN_Q_BIAS },
        { TENSOR_ATTN_QKV_BIAS, TENSOR_ATTN_QKV, TENSOR_ATTN_QKV },
        { TENSOR_FFN_GATE_BIAS, TENSOR_FFN_GATE, TENSOR_FFN_UP_BIAS },
        { TENSOR_FFN_UP_BIAS, TENSOR_FFN_UP, TENSOR_FFN_GATE_BIAS },
        { TENSOR_FFN_DOWN_BIAS, TENSOR_FFN_DOWN, TENSOR_FFN_DOWN },
        { TENSOR_FFN_GATE_INP_BIAS, TENSOR_FFN_GATE_INP, TENSOR_FFN_GATE_INP },
        { TENSOR_EXP_PROBS_B, TENSOR_FFN_GATE_INP, TENSOR_FFN_GATE_INP },
        { TENSOR_FFN_GATE_EXPS_BIAS, TENSOR_FFN_GATE_EXPS, TENSOR_FFN_UP_EXPS_BIAS },
        { TENSOR_FFN_UP_EXPS_BIAS, TENSOR_FFN_UP_EXPS, TENSOR_FFN_GATE_EXPS_BIAS },
        { TENSOR_FFN_DOWN_EXPS_BIAS, TENSOR_FFN_DOWN_EXPS, TENSOR_FFN_DOWN_EXPS },
        { TENSOR_ATTN_Q_SCALE, TENSOR_ATTN_Q, TENSOR_ATTN_K_SCALE },
        { TENSOR_ATTN_K_SCALE, TENSOR_ATTN_K, TENSOR_ATTN_V_SCALE },
        { TENSOR_ATTN_V_SCALE, TENSOR_ATTN_V, TENSOR_ATTN_Q_SCALE },
        { TENSOR_ATTN_QKV_SCALE, TENSOR_ATTN_QKV, TENSOR_ATTN_QKV },
        { TENSOR_FFN_GATE_SCALE, TENSOR_FFN_GATE, TENSOR_FFN_UP_SCALE },
        { TENSOR_FFN_DOWN_SCALE, TENSOR_FFN_DOWN, TENSOR_FFN_DOWN },
        { TENSOR_OUTPUT_SCALE, TENSOR_OUTPUT, TENSOR_OUTPUT },
        { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM, TENSOR_ATTN_K_NORM },
        { TENSOR_ATTN_K_NORM, TENSOR_ATTN_Q_NORM, TENSOR_ATTN_Q_NORM },
        { TENSOR_FFN_GATE_UP, TENSOR_FFN_DOWN, TENSOR_FFN_DOWN },
        { TENSOR_FFN_GATE_UP_EXPS, TENSOR_FFN_DOWN_EXPS, TENSOR_FFN_DOWN_EXPS },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint8_t *has = r->out->has, *row = rows[i];
        unsigned missing = !has[row[1]] ? row[1] : row[2];
        if (has[row[0]] && !has[missing])
            report(r, DIAG_CONFLICT, keys[tensor_infos[row[0]].kind],
                   "%s needs %s, which the decoder does not have", tensor_infos[row[0]].name,
                   tensor_infos[missing].name);
    }
}

/* Reports tensors that exclude a feature or another tensor. */
static void check_conflicts(const reader *r)
{
    const decoder *d = r->out;
    const struct {
        decoder_tensor tensor;
        bool other;
        const char *key, *said;
    } conflicts[] = {
        { TENSOR_ATTN_QKV, d->latent, "fused", "fused = attn_qkv does not go with latent" },
        { TENSOR_ATTN_QKV, d->attention_gate, "fused",
          "fused = attn_qkv does not go with attention_gate" },
        { TENSOR_ATTN_Q_NORM, d->latent, "norms",
          "attn_q_norm and attn_k_norm do not go with latent, which has its own norms" },
        { TENSOR_FFN_UP_SCALE,
          d->has[TENSOR_FFN_UP] ? !d->has[TENSOR_FFN_GATE_SCALE] : !d->has[TENSOR_FFN_GATE_UP],
          "scales", "scales = ffn_up needs ffn_gate, or fused = ffn_gate_up" },
        { TENSOR_POST_ATTENTION_NORM, d->has[TENSOR_PRE_FFN_NORM], "norms",
          "ffn_norm = post_attention_norm uses this tensor already; remove it from norms" },
    };
    for (size_t i = 0; i < sizeof conflicts / sizeof *conflicts; i++)
        if (conflicts[i].other && d->has[conflicts[i].tensor])
            report(r, DIAG_CONFLICT, conflicts[i].key, "%s", conflicts[i].said);
}

void decoder_check(const reader *r)
{
    const decoder *d = r->out;
    int64_t most = d->m_count ? d->m[d->m_count - 1] : 0;
    const char *lacking = decoder_lacks_prompts(d);
    if (decoder_is_prompt(most) && lacking)
        report(r, DIAG_CONFLICT, "m",
               "m = %lld needs prompt kernels, which do not exist for %s; use m <= %d",
               (long long)most, lacking, DECODER_FEW_ROWS);
    check_heads(r);
    check_rope(r);
    check_experts(r);
    check_recurrent(r);
    check_tensors(r);
    check_conflicts(r);
    for (unsigned t = 0; t < TENSOR_COUNT; t++) {
        uint64_t columns = decoder_columns(d, t);
        bool whole = true; /* true while rows consist of whole blocks */
        for (int64_t l = 0; whole && decoder_has_matrix(d, t) && l < decoder_copies(d, t); l++) {
            const format_info *f = &formats[decoder_format(d, t, l)];
            whole = !decoder_has(d, t, l) || columns % f->block_values == 0;
            if (whole)
                continue;
            const char *word = tensor_word(r->arena, t), *own = formats_key(r->arena, t);
            diag_error(r->diags, DIAG_NOT_A_MULTIPLE,
                       reader_blame(r, reader_entry(r, own) ? own : "weights"),
                       "%s needs rows of a multiple of %u values, %s has %llu; set another format "
                       "in weights.%s",
                       f->name, f->block_values, word, (unsigned long long)columns, word);
        }
    }
}
