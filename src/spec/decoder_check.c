#include "spec/decoder_check.h"

#include "spec/decoder_formats.h"
#include "spec/decoder_keys.h"

static void check_heads(const reader *r)
{
    const decoder *d = r->out;
    if (!d->head_dim)
        diag_error(r->diags, DIAG_MISSING_KEY, reader_blame(r, "num_heads"),
                   "num_heads = %lld does not divide hidden = %lld; decoder requires the key "
                   "'head_dim'",
                   (long long)d->num_heads, (long long)d->hidden);
    else if (!reader_entry(r, "head_dim") && (d->head_dim % 8 || d->head_dim > 256))
        diag_error(r->diags, DIAG_OUT_OF_RANGE, reader_blame(r, "num_heads"),
                   "head_dim = hidden / num_heads = %lld is no multiple of 8 from 8 to 256",
                   (long long)d->head_dim);
    if (d->num_heads % d->num_kv_heads)
        diag_error(r->diags, DIAG_CONFLICT, reader_blame(r, "num_kv_heads"),
                   "num_heads = %lld is not a multiple of num_kv_heads = %lld",
                   (long long)d->num_heads, (long long)d->num_kv_heads);
    if (d->kv_type == KV_Q8_0 && d->head_dim % Q8_0_VALUES)
        diag_error(r->diags, DIAG_CONFLICT, reader_blame(r, "kv_type"),
                   "a cache of q8_0 has blocks of %d values; head_dim = %lld is no multiple of "
                   "that, take f16",
                   Q8_0_VALUES, (long long)d->head_dim);
}

static void check_rope(const reader *r)
{
    const decoder *d = r->out;
    static const char *const names[] = { "rope_dims", "rope_dims.window" };
    for (int i = 0; i < 2; i++)
        if (d->head_dim && d->rope[i].dims > d->head_dim && reader_entry(r, names[i]))
            diag_error(r->diags, DIAG_CONFLICT, reader_blame(r, names[i]),
                       "%s = %lld is more than head_dim = %lld", names[i],
                       (long long)d->rope[i].dims, (long long)d->head_dim);
    if (!d->rope[1].factors)
        return;
    if (!d->rope[0].factors)
        diag_error(r->diags, DIAG_CONFLICT, reader_blame(r, "rope_factors.window"),
                   "rope_factors.window = tensor goes with rope_factors");
    else if (d->rope[1].dims != d->rope[0].dims)
        diag_error(r->diags, DIAG_CONFLICT, reader_blame(r, "rope_dims.window"),
                   "the tensor of rope_factors has rope_dims/2 = %lld values; with another "
                   "rope_dims.window say rope_factors.window = none",
                   (long long)d->rope[0].dims / 2);
}

/* A bias or norm without what it is of. */
static void check_tensors(const reader *r)
{
    static const struct {
        decoder_tensor tensor, of;
        const char *key;
    } pairs[] = {
        { TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_Q, "biases" },
        { TENSOR_ATTN_K_BIAS, TENSOR_ATTN_K, "biases" },
        { TENSOR_ATTN_V_BIAS, TENSOR_ATTN_V, "biases" },
        { TENSOR_ATTN_QKV_BIAS, TENSOR_ATTN_QKV, "biases" },
        { TENSOR_FFN_GATE_BIAS, TENSOR_FFN_GATE, "biases" },
        { TENSOR_FFN_UP_BIAS, TENSOR_FFN_UP, "biases" },
        { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM, "norms" },
        { TENSOR_ATTN_K_NORM, TENSOR_ATTN_Q_NORM, "norms" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (r->out->has[pairs[i].tensor] && !r->out->has[pairs[i].of])
            diag_error(r->diags, DIAG_CONFLICT, reader_blame(r, pairs[i].key),
                       "%s goes with %s, which is not there", tensor_infos[pairs[i].tensor].name,
                       tensor_infos[pairs[i].of].name);
}

/* Rows of a matrix are whole blocks of its format. */
static void check_columns(const reader *r, unsigned t)
{
    const decoder *d = r->out;
    uint64_t columns = decoder_columns(d, t);
    for (int64_t l = 0; l < decoder_copies(d, t); l++) {
        const format_info *f = &formats[decoder_format(d, t, l)];
        if (columns % f->block_values == 0)
            continue;
        const char *word = tensor_word(r->arena, t);
        diag_error(r->diags, DIAG_NOT_A_MULTIPLE, reader_blame(r, decoder_formats_key(r, t)),
                   "%s has %llu columns, not a multiple of %u, as %s needs; give weights.%s "
                   "another format",
                   word, (unsigned long long)columns, f->block_values, f->name, word);
        return;
    }
}

void decoder_check(reader *r)
{
    check_heads(r);
    check_rope(r);
    check_tensors(r);
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        if (decoder_has_matrix(r->out, t))
            check_columns(r, t);
}
