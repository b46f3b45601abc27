/* Makes the GGUF file that a [decoder] section describes, without data. */
#include "model/from_gguf/architecture.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

static void store(uint8_t *bytes, uint64_t value)
{
    for (size_t i = 0; i < sizeof value; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static void set_text(arena *a, gguf_key *key, const char *text)
{
    size_t length = strlen(text);
    uint8_t *bytes = arena_alloc(a, sizeof(uint64_t) + length + 1);
    store(bytes, length);
    memcpy(bytes + sizeof(uint64_t), text, length);
    key->type = GGUF_STRING;
    key->bytes = bytes;
}

/* Stores the numbers of "1, 0, 2.5" as i64 or f64. Returns false if the text has anything else. */
static bool store_numbers(const char *text, gguf_value type, uint8_t *bytes)
{
    for (;; bytes += sizeof(uint64_t)) {
        char *end;
        uint64_t bits = (uint64_t)strtoll(text, &end, 10);
        if (type == GGUF_F64) {
            double number = strtod(text, &end);
            memcpy(&bits, &number, sizeof bits);
        }
        if (end == text || (*end && *end != ','))
            return false;
        store(bytes, bits);
        if (!*end)
            return true;
        text = end + 1;
    }
}

/* Sets a key to the numbers in a text, or to the text. */
static void set_value(arena *a, gguf_key *key, const char *text)
{
    key->count = 1;
    for (const char *c = text; *c; c++)
        key->count += *c == ',';
    uint8_t *bytes = arena_alloc(a, (size_t)key->count * sizeof(uint64_t));
    key->bytes = bytes;
    key->is_array = key->count > 1;
    key->type = store_numbers(text, GGUF_I64, bytes) ? GGUF_I64 : GGUF_F64;
    if (key->type == GGUF_I64 || store_numbers(text, GGUF_F64, bytes))
        return;
    key->is_array = false;
    key->count = 1;
    set_text(a, key, text);
}

void model_file_of(arena *a, const decoder *d, gguf_file *file)
{
    gguf_key *keys = arena_zalloc(a, (d->metadata_count + 2) * sizeof *keys);
    VEC(gguf_tensor) tensors = { 0 };
    *file = (gguf_file){ .version = 3, .keys = keys, .key_count = d->metadata_count + 2 };
    file->keys_by_name = arena_alloc(a, file->key_count * sizeof *file->keys_by_name);
    for (size_t i = 0; i < file->key_count; i++)
        file->keys_by_name[i] = &keys[i];
    for (size_t i = 0; i < d->metadata_count; i++) {
        keys[i].name = model_key_name(a, d->architecture, d->metadata[i].name);
        set_value(a, &keys[i], d->metadata[i].text);
    }
    gguf_key *named = &keys[d->metadata_count], *tokens = named + 1;
    *named = (gguf_key){ .name = "general.architecture", .count = 1 };
    set_text(a, named, d->architecture);
    *tokens = (gguf_key){ .name = "tokenizer.ggml.tokens", /* only the count matters */
                          .type = GGUF_STRING,
                          .is_array = true,
                          .count = (uint64_t)d->vocab };
    qsort(file->keys_by_name, file->key_count, sizeof *file->keys_by_name, gguf_by_name);

    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        for (int64_t l = 0; l < (tensor_infos[t].by_layer ? d->layers : 1); l++) {
            char name[DECODER_NAME];
            if (!decoder_has(d, t, l))
                continue;
            decoder_tensor_name(d, t, l, name);
            *VEC_PUSH(a, &tensors) = (gguf_tensor){
                .name = arena_strdup(a, name),
                .type = gguf_find_type((uint32_t)formats[decoder_format(d, t, l)].gguf_type),
                .n_dims = 3,
                .ne = { decoder_columns(d, t, l), decoder_rows(d, t, l) / decoder_planes(d, t, l),
                        decoder_planes(d, t, l), 1 }
            };
        }
    file->tensors = tensors.items;
    file->tensor_count = tensors.count;
    file->tensors_by_name = arena_alloc(a, (tensors.count + 1) * sizeof *file->tensors_by_name);
    for (size_t i = 0; i < tensors.count; i++)
        file->tensors_by_name[i] = &tensors.items[i];
    qsort(file->tensors_by_name, tensors.count, sizeof *file->tensors_by_name, gguf_by_name);
}
