#include "ref/decoder.h"

#include <stdio.h>

enum {
    SIZE_ONE,
    SIZE_HIDDEN,
    SIZE_VOCAB,
    SIZE_FF,
    SIZE_TWO_FF,
    SIZE_Q,
    SIZE_KV,
    SIZE_QKV,
    SIZE_HEAD,
    SIZE_HALF_ROPE
};

enum { MODEL, LAYER };

const tensor_info tensor_infos[TENSOR_COUNT] = {
#define TENSOR(id, name, scope, rows, columns, kind) \
    { name, scope, TENSOR_##kind, SIZE_##rows, SIZE_##columns },
#include "ref/tensors.def"
#undef TENSOR
};

static uint64_t size_of(const decoder *d, unsigned size)
{
    int64_t q = d->num_heads * d->head_dim, kv = d->num_kv_heads * d->head_dim;
    const int64_t sizes[] = {
        [SIZE_ONE] = 1,
        [SIZE_HIDDEN] = d->hidden,
        [SIZE_VOCAB] = d->vocab,
        [SIZE_FF] = d->ff,
        [SIZE_TWO_FF] = 2 * d->ff,
        [SIZE_Q] = q,
        [SIZE_KV] = kv,
        [SIZE_QKV] = q + 2 * kv,
        [SIZE_HEAD] = d->head_dim,
        [SIZE_HALF_ROPE] = d->rope[0].dims / 2,
    };
    return (uint64_t)sizes[size];
}

uint64_t decoder_rows(const decoder *d, decoder_tensor t)
{
    return size_of(d, tensor_infos[t].rows);
}

uint64_t decoder_columns(const decoder *d, decoder_tensor t)
{
    return size_of(d, tensor_infos[t].columns);
}

format decoder_format(const decoder *d, decoder_tensor t, int64_t layer)
{
    return tensor_infos[t].kind == TENSOR_MATRIX
               ? (format)d->formats[t][tensor_infos[t].by_layer ? layer : 0]
               : FORMAT_F32;
}

uint64_t decoder_bytes(const decoder *d, decoder_tensor t, int64_t layer)
{
    return decoder_rows(d, t) * format_bytes(decoder_format(d, t, layer), decoder_columns(d, t));
}

void decoder_tensor_name(decoder_tensor t, int64_t layer, char name[DECODER_NAME])
{
    if (tensor_infos[t].by_layer)
        snprintf(name, DECODER_NAME, "blk.%lld.%s", (long long)layer, tensor_infos[t].name);
    else
        snprintf(name, DECODER_NAME, "%s", tensor_infos[t].name);
}
