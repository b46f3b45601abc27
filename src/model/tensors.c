#include "model/tensors.h"

#include <string.h>

#include "family/family.h"

const uint8_t model_biases[] = {
    TENSOR_ATTN_Q_BIAS,   TENSOR_ATTN_K_BIAS,      TENSOR_ATTN_V_BIAS,
    TENSOR_ATTN_QKV_BIAS, TENSOR_ATTN_OUTPUT_BIAS, TENSOR_FFN_GATE_BIAS,
    TENSOR_FFN_UP_BIAS,   TENSOR_FFN_DOWN_BIAS,    TENSOR_COUNT
};

static const uint8_t always[] = { TENSOR_TOKEN_EMBD, TENSOR_ATTN_NORM, TENSOR_ATTN_OUTPUT,
                                  TENSOR_FFN_NORM,   TENSOR_FFN_DOWN,  TENSOR_OUTPUT_NORM,
                                  TENSOR_COUNT };

static const gguf_tensor *find_tensor(const model_reader *r, unsigned t, int64_t layer)
{
    char name[DECODER_NAME];
    decoder_tensor_name(t, layer, name);
    return gguf_find(r->file, name);
}

static void mark_known(model_reader *r, const gguf_tensor *tensor)
{
    r->known_tensors[tensor - r->file->tensors] = true;
}

void model_ignore_tensor(model_reader *r, decoder_tensor t)
{
    const gguf_tensor *tensor = find_tensor(r, t, 0);
    if (tensor)
        mark_known(r, tensor);
}

/* Those of the list that the file has in its first layer, or with all = true each of them. */
static void add_tensors(model_reader *r, const uint8_t *list, bool all)
{
    for (; list && *list != TENSOR_COUNT; list++)
        if (all || find_tensor(r, *list, 0))
            r->out->decoder.has[*list] = 1;
}

static void choose_tensors(model_reader *r)
{
    decoder *d = &r->out->decoder;
    bool fused = find_tensor(r, TENSOR_ATTN_QKV, 0);
    bool gate_up = r->architecture->may_fuse_gate_up && !find_tensor(r, TENSOR_FFN_GATE, 0);
    add_tensors(r, always, true);
    add_tensors(r, r->architecture->required, true);
    add_tensors(r, r->architecture->optional, false);
    d->has[TENSOR_OUTPUT] = find_tensor(r, TENSOR_OUTPUT, 0) != NULL;
    d->has[TENSOR_ATTN_QKV] = fused;
    d->has[TENSOR_ATTN_Q] = d->has[TENSOR_ATTN_K] = d->has[TENSOR_ATTN_V] = !fused;
    d->has[TENSOR_FFN_GATE_UP] = gate_up;
    d->has[TENSOR_FFN_GATE] = d->has[TENSOR_FFN_UP] = !gate_up;
    if (d->has[TENSOR_ROPE_FREQS])
        d->rope[0].factors = d->rope[1].factors = 1;
}

static const char *shape_text(arena *a, uint64_t columns, uint64_t rows)
{
    return rows == 1 ? arena_format(a, "[%llu]", (unsigned long long)columns)
                     : arena_format(a, "[%llu, %llu]", (unsigned long long)columns,
                                    (unsigned long long)rows);
}

static bool check_shape(model_reader *r, unsigned t, const gguf_tensor *tensor)
{
    const decoder *d = &r->out->decoder;
    uint64_t columns = decoder_columns(d, t), rows = decoder_rows(d, t);
    if (tensor->ne[0] == columns && tensor->ne[1] == rows && tensor->ne[2] == 1 &&
        tensor->ne[3] == 1)
        return true;
    strbuf shape = strbuf_new(r->arena);
    for (uint32_t i = 0; i < tensor->n_dims; i++)
        strbuf_format(&shape, "%s%llu", i ? ", " : "", (unsigned long long)tensor->ne[i]);
    model_error(r, DIAG_BAD_TENSOR, "%s is [%s], not %s as the keys say", tensor->name, shape.text,
                shape_text(r->arena, columns, rows));
    return false;
}

/* The format that a matrix of this type has; FORMAT_NONE: none. */
static format format_of(const gguf_type *type)
{
    for (format f = FORMAT_NONE; f < FORMAT_COUNT; f++)
        if (formats[f].gguf_type == (int)type->id && instance_weights_index(f) >= 0)
            return f;
    return FORMAT_NONE;
}

static bool check_tensor(model_reader *r, unsigned t, int64_t layer)
{
    decoder *d = &r->out->decoder;
    const gguf_tensor *tensor = find_tensor(r, t, layer);
    if (!tensor) {
        char name[DECODER_NAME];
        decoder_tensor_name(t, layer, name);
        model_error(r, DIAG_BAD_TENSOR, "%s is missing", name);
        return false;
    }
    mark_known(r, tensor);
    if (t == TENSOR_TOKEN_EMBD)
        d->vocab = (int64_t)tensor->ne[1];
    if (!check_shape(r, t, tensor))
        return false;
    format stored = format_of(tensor->type);
    if (tensor_is_matrix(t) && stored == FORMAT_NONE) {
        model_error(r, DIAG_BAD_TENSOR, "%s is of type %s, which has no format here", tensor->name,
                    tensor->type->name);
        return false;
    }
    if (tensor_is_matrix(t)) {
        d->formats[t][layer] = (uint8_t)stored;
        return true;
    }
    if (stored != FORMAT_F32)
        model_error(r, DIAG_BAD_TENSOR,
                    "%s is of type %s; norms, biases and factors of RoPE are f32 here",
                    tensor->name, tensor->type->name);
    return stored == FORMAT_F32;
}

/* What the decoder would leave out. */
static void report_unknown(model_reader *r)
{
    const char *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < r->file->tensor_count; i++) {
        if (r->known_tensors[i])
            continue;
        count++;
        first = first ? first : r->file->tensors[i].name;
    }
    if (count == 1)
        model_error(r, DIAG_BAD_TENSOR, "%s has no use in a decoder of architecture %s", first,
                    r->architecture->name);
    else if (count)
        model_error(r, DIAG_BAD_TENSOR,
                    "%s and %zu other tensors have no use in a decoder of architecture %s", first,
                    count - 1, r->architecture->name);
}

void model_read_tensors(model_reader *r)
{
    const decoder *d = &r->out->decoder;
    size_t errors = r->diags->errors;
    choose_tensors(r);
    for (unsigned t = 0; t < TENSOR_COUNT; t++) {
        int64_t copies = tensor_infos[t].by_layer ? d->layers : 1;
        for (int64_t l = 0; d->has[t] && l < copies && check_tensor(r, t, l); l++)
            ; /* the first layer that is wrong speaks for all */
        if (!d->vocab)
            return; /* other tensors have rows as the embedding has */
    }
    if (r->diags->errors == errors)
        report_unknown(r);
}
