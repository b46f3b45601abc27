#include <stdarg.h>
#include <stddef.h>
#include <string.h>

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

/* Returns " in layer N" if not all layers have the same value of a setting's field, else "". */
#define IN_LAYER(r, l, field)                           \
    (all_same((r)->out, offsetof(decoder_layer, field)) \
         ? ""                                           \
         : arena_format((r)->arena, " in layer %lld", (long long)(l)))

static bool all_same(const decoder *d, size_t field)
{
    int64_t first = 0, value;
    for (int64_t l = 0; l < d->layers; l++) {
        memcpy(&value, (const char *)&d->at[l] + field, sizeof value);
        if (first && value && value != first)
            return false;
        first = value ? value : first;
    }
    return true;
}

/* Checks the heads of a layer. Returns false after a report. */
static bool check_heads_of(const reader *r, int64_t l)
{
    const decoder *d = r->out;
    const decoder_layer *at = &d->at[l];
    size_t errors = r->diags->errors;
    const char *where = IN_LAYER(r, l, num_heads);
    if (!at->head_dim)
        report(r, DIAG_MISSING_KEY, "num_heads",
               "num_heads = %lld%s does not divide hidden = %lld; decoder requires the key "
               "'head_dim'",
               (long long)at->num_heads, where, (long long)d->hidden);
    else if (!reader_entry(r, "head_dim") &&
             (at->head_dim % 4 || at->head_dim > PROBLEM_MOST_HEAD_DIM))
        report(r, DIAG_OUT_OF_RANGE, "num_heads",
               "head_dim = hidden / num_heads = %lld is not a multiple of 4 from 4 to %d; set "
               "head_dim",
               (long long)at->head_dim, PROBLEM_MOST_HEAD_DIM);
    if (at->num_heads % at->num_kv_heads)
        report(r, DIAG_CONFLICT, "num_kv_heads",
               "num_heads = %lld is not a multiple of num_kv_heads = %lld%s",
               (long long)at->num_heads, (long long)at->num_kv_heads,
               *where ? where : IN_LAYER(r, l, num_kv_heads));
    if (d->latent && at->num_kv_heads != 1)
        report(r, DIAG_CONFLICT, "num_kv_heads",
               "num_kv_heads = %lld does not go with latent, whose cache rows are shared by all "
               "heads; use 1",
               (long long)at->num_kv_heads);
    if (d->latent && at->num_heads > PROBLEM_MOST_LATENT_HEADS)
        report(r, DIAG_OUT_OF_RANGE, "num_heads",
               "num_heads = %lld is too large with latent; the largest is %d",
               (long long)at->num_heads, PROBLEM_MOST_LATENT_HEADS);
    if (d->kv_type == KV_Q8_0 && !d->latent && at->head_dim % Q8_0_VALUES)
        report(r, DIAG_CONFLICT, "kv_type",
               "kv_type = q8_0 needs a head_dim that is a multiple of %d, not %lld; use f16",
               Q8_0_VALUES, (long long)at->head_dim);
    return errors == r->diags->errors;
}

/* Checks the layer whose cache a layer reads. */
static bool check_cache_of(const reader *r, int64_t l)
{
    const decoder *d = r->out;
    const decoder_layer *at = &d->at[l], *from = &d->at[at->cache];
    const char *wrong = NULL;
    if (at->cache == l)
        return true;
    if (d->latent)
        wrong = "has latents, which each layer must have";
    else if (at->cache > l || !from->attends || from->cache != at->cache)
        wrong = "is no earlier layer with a cache of its own";
    else if (from->num_kv_heads != at->num_kv_heads || from->head_dim != at->head_dim)
        wrong = "has other num_kv_heads or head_dim";
    else if (from->windowed != at->windowed)
        wrong = "has another window";
    if (wrong)
        report(r, DIAG_CONFLICT, "cache_layer",
               "layer %lld reads the cache of layer %lld, which %s", (long long)l,
               (long long)at->cache, wrong);
    return !wrong;
}

/* Returns the smallest head_dim of layers with a kind of RoPE, or 0 without such layers. */
static int64_t least_head_dim(const decoder *d, bool windowed)
{
    int64_t least = 0;
    for (int64_t l = 0; l < d->layers; l++)
        if (d->at[l].attends && (d->at[l].windowed != 0) == windowed && !d->at[l].unturned &&
            (!least || d->at[l].head_dim < least))
            least = d->at[l].head_dim;
    return least;
}

static void check_latent_rope(const reader *r)
{
    const decoder *d = r->out;
    int64_t head = d->at[0].head_dim, dims = d->rope[0].dims;
    if (d->rope[0].style == ROPE_NONE)
        report(r, DIAG_CONFLICT, "rope",
               "rope = none does not go with latent, which rotates the last values of each head; "
               "use norm or neox");
    else if (dims == head)
        report(r, DIAG_CONFLICT, "rope_dims",
               "rope_dims = %lld equals head_dim; with latent it must be smaller, e.g. 64 of 192",
               (long long)dims);
    else if ((head - dims) % 8)
        report(r, DIAG_NOT_A_MULTIPLE, "head_dim",
               "head_dim - rope_dims = %lld is not a multiple of 8, as latent requires",
               (long long)(head - dims));
    else if (dims % PROBLEM_LATENT_UNIT || dims > PROBLEM_MOST_LATENT_ROPE)
        report(r, DIAG_OUT_OF_RANGE, "rope_dims",
               "rope_dims = %lld does not go with latent; use a multiple of %d up to %d",
               (long long)dims, PROBLEM_LATENT_UNIT, PROBLEM_MOST_LATENT_ROPE);
}

/* Reports a section of RoPE's axes if the sections do not add up to all pairs. */
static void check_sections(const reader *r, const char *name, const rope_options *rope)
{
    int64_t pairs = rope->sections[0] + rope->sections[1] + rope->sections[2];
    if (reader_entry(r, name) && pairs != rope->dims / 2)
        report(r, DIAG_CONFLICT, name,
               "%s and the other sections have %lld pairs, but %lld rotated values need %lld", name,
               (long long)pairs, (long long)rope->dims, (long long)rope->dims / 2);
}

static void check_rope(const reader *r)
{
    const decoder *d = r->out;
    static const char *const names[] = { "rope_dims", "rope_dims.window" };
    for (int i = 0; i < 2; i++) {
        int64_t dim = least_head_dim(d, i);
        bool inherited = i && !reader_entry(r, names[1]) && d->rope[0].dims > least_head_dim(d, 0);
        if (dim && !inherited && d->rope[i].style != ROPE_NONE && d->rope[i].dims > dim)
            report(r, DIAG_CONFLICT, names[i], "%s = %lld is more than head_dim = %lld", names[i],
                   (long long)d->rope[i].dims, (long long)dim);
    }
    if (d->latent)
        check_latent_rope(r);
    check_sections(r, "rope_section_t", &d->rope[0]);
    check_sections(r, "rope_section_h", &d->rope[0]);
    check_sections(r, "rope_section_w", &d->rope[0]);
    check_sections(r, "rope_section_t.window", &d->rope[1]);
    check_sections(r, "rope_section_h.window", &d->rope[1]);
    check_sections(r, "rope_section_w.window", &d->rope[1]);
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
    if (d->experts && decoder_first_layer(d, PART_EXPERTS) < 0)
        report(r, DIAG_CONFLICT, "expert_layers",
               "expert_layers is empty; name the layers with experts, or remove experts = %lld",
               (long long)d->experts);
    for (int64_t l = 0; l < d->layers; l++)
        if (!d->at[l].attends && !d->at[l].recurs && !decoder_has_part(d, PART_FEED, l)) {
            report(r, DIAG_CONFLICT, "ffn_layers",
                   "layer %lld has neither attention, recurrence nor feed-forward", (long long)l);
            break;
        }
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
    static const struct {
        size_t field;
        const char *key, *said;
    } lists[] = {
        { offsetof(decoder_layer, windowed), "window_layers", "cannot have a window" },
        { offsetof(decoder_layer, unturned), "no_rope_layers", "has no RoPE" },
        { offsetof(decoder_layer, v_from_k), "v_from_k_layers", "has no V" },
    };
    const decoder *d = r->out;
    bool any = false;
    for (int64_t l = 0; l < d->layers; l++) {
        any |= d->at[l].recurs;
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
            if (d->at[l].attends || !*((const uint8_t *)&d->at[l] + lists[i].field))
                continue;
            report(r, DIAG_CONFLICT, lists[i].key, "layer %lld has no attention and %s",
                   (long long)l, lists[i].said);
            return;
        }
    }
    if (any && d->recurrence == RECURRENCE_MAMBA2 &&
        (d->inner % d->state_heads || d->state_heads % d->state_groups))
        report(r, DIAG_CONFLICT, "state_heads",
               "state_heads = %lld does not divide inner = %lld, or is not a multiple of "
               "state_groups = %lld",
               (long long)d->state_heads, (long long)d->inner, (long long)d->state_groups);
    if (any && d->recurrence == RECURRENCE_DELTA && d->delta_value_heads % d->delta_key_heads)
        report(r, DIAG_CONFLICT, "delta_value_heads",
               "delta_value_heads = %lld is not a multiple of delta_key_heads = %lld",
               (long long)d->delta_value_heads, (long long)d->delta_key_heads);
}

/* Reports a bias, scale, norm or fused matrix without its counterpart. */
static void check_tensors(const reader *r)
{
    static const char *const keys[] = { [TENSOR_BIAS] = "biases",
                                        [TENSOR_SCALE] = "scales",
                                        [TENSOR_GAIN] = "scales",
                                        [TENSOR_NORM] = "norms",
                                        [TENSOR_MATRIX] = "fused" };
    static const uint8_t rows[][3] = {
        { TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_Q, TENSOR_ATTN_K_BIAS },
        { TENSOR_ATTN_K_BIAS, TENSOR_ATTN_K, TENSOR_ATTN_V_BIAS },
        { TENSOR_ATTN_V_BIAS, TENSOR_ATTN_V, TENSOR_ATTN_Q_BIAS },
        { TENSOR_ATTN_QKV_BIAS, TENSOR_ATTN_QKV, TENSOR_ATTN_QKV },
        { TENSOR_FFN_GATE_BIAS, TENSOR_FFN_GATE, TENSOR_FFN_UP_BIAS },
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
        { TENSOR_FFN_DOWN_EXPS_SCALE, TENSOR_FFN_DOWN_EXPS, TENSOR_FFN_DOWN_EXPS },
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
        { TENSOR_ATTN_QKV, d->attention_gate == ATTENTION_GATE_OF_Q, "fused",
          "fused = attn_qkv does not go with attention_gate = sigmoid" },
        { TENSOR_FFN_UP_BIAS,
          d->has[TENSOR_FFN_GATE] ? !d->has[TENSOR_FFN_GATE_BIAS] : !d->has[TENSOR_FFN_UP],
          "biases", "biases = ffn_up needs ffn_up and, if there is a gate, biases = ffn_gate" },
        { TENSOR_FFN_GATE_UP, d->no_gates, "fused", "fused = ffn_gate_up needs ffn_gate = yes" },
        { TENSOR_ATTN_KV_B, !d->latent, "fused", "fused = attn_kv_b needs latent" },
        { TENSOR_ATTN_Q_NORM, d->latent, "norms",
          "attn_q_norm and attn_k_norm do not go with latent, which has its own norms" },
        { TENSOR_FFN_UP_SCALE,
          d->has[TENSOR_FFN_UP] ? !d->no_gates && !d->has[TENSOR_FFN_GATE_SCALE]
                                : !d->has[TENSOR_FFN_GATE_UP],
          "scales", "scales = ffn_up needs ffn_gate, or fused = ffn_gate_up" },
        { TENSOR_FFN_DOWN_EXPS_SCALE, d->has[TENSOR_FFN_DOWN_EXPS_BIAS], "scales",
          "scales = ffn_down_exps does not go with biases = ffn_down_exps" },
        { TENSOR_POST_FFW_NORM_1, !d->has[TENSOR_POST_FFW_NORM], "norms",
          "a dense feed-forward beside experts needs norms = post_ffw_norm" },
        { TENSOR_INP_GATE,
          d->activation == ACTIVATION_SWIGLU_OAI || d->activation == ACTIVATION_XIELU, "per_layer",
          "per_layer does not go with activation = swiglu_oai or xielu" },
        { TENSOR_POST_ATTENTION_NORM, d->has[TENSOR_PRE_FFN_NORM], "norms",
          "ffn_norm = post_attention_norm uses this tensor already; remove it from norms" },
    };
    for (size_t i = 0; i < sizeof conflicts / sizeof *conflicts; i++)
        if (conflicts[i].other && d->has[conflicts[i].tensor])
            report(r, DIAG_CONFLICT, conflicts[i].key, "%s", conflicts[i].said);
}

/* The factor of h is applied by the post-norm of a layer's last branch. */
static void check_layer_scale(const reader *r)
{
    const decoder *d = r->out;
    for (int64_t l = 0; l < d->layers && d->has[TENSOR_LAYER_OUTPUT_SCALE]; l++) {
        decoder_tensor norm = decoder_last_norm(d, l);
        if (norm != TENSOR_COUNT && d->has[norm])
            continue;
        report(r, DIAG_CONFLICT, "layer_scale",
               "layer_scale needs a norm behind each layer's last branch, and layer %lld has none; "
               "add norms = post_attention_norm, post_ffw_norm",
               (long long)l);
        return;
    }
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
    for (int64_t l = 0; l < r->out->layers; l++)
        if (r->out->at[l].attends && (!check_heads_of(r, l) || !check_cache_of(r, l)))
            break; /* the first wrong layer */
    check_rope(r);
    check_experts(r);
    check_recurrent(r);
    check_tensors(r);
    check_conflicts(r);
    check_layer_scale(r);
    for (unsigned t = 0; t < TENSOR_COUNT; t++) {
        bool whole = true; /* true while rows consist of whole blocks */
        for (int64_t l = 0; whole && decoder_has_matrix(d, t) && l < decoder_copies(d, t); l++) {
            const format_info *f = &formats[decoder_format(d, t, l)];
            uint64_t columns = decoder_columns(d, t, l);
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
