/* Any bytes as a GGUF file. Either its keys and tensors can be read and found again, or there is
 * one printable message. The message names a byte of the file. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gguf/gguf.h"
#include "tests/fuzz/fuzz.h"

static void check_message(const gguf_error *error, size_t size)
{
    uint64_t at;
    assert(sscanf(error->message, "m: byte %" SCNu64 ": ", &at) == 1);
    assert(at <= size);
    for (const char *c = error->message; *c; c++)
        assert((unsigned char)*c >= ' ' && *c != 0x7F);
}

static unsigned read_strings(const gguf_key *key)
{
    unsigned sum = 0;
    gguf_string *all = malloc(((size_t)key->count + 1) * sizeof *all);
    if (gguf_get_strings(key, all))
        for (uint64_t i = 0; i < key->count; i++)
            for (size_t c = 0; c < all[i].length; c++)
                sum += (unsigned char)all[i].bytes[c];
    if (gguf_get_string(key, all))
        sum += all->length ? (unsigned char)all->bytes[all->length - 1] : 0;
    free(all);
    return sum;
}

static void check_key(const gguf_file *file, const gguf_key *key)
{
    assert(gguf_find_key(file, key->name) == key);
    assert(key->offset <= file->parts[0].size);
    for (uint64_t i = 0; i <= key->count; i++) {
        uint64_t u = 0;
        int64_t s = 0;
        double f = 0;
        bool b;
        bool is_unsigned = gguf_get_u64(key, i, &u), is_signed = gguf_get_i64(key, i, &s);
        assert(!is_unsigned || !is_signed || (uint64_t)s == u);
        assert(gguf_get_f64(key, i, &f) || (!is_unsigned && !is_signed));
        assert(!gguf_get_bool(key, i, &b) || u == b);
        assert(!key->is_array || i < key->count || !is_unsigned);
    }
    read_strings(key);
}

static void check_tensor(const gguf_file *file, const gguf_tensor *t)
{
    uint64_t values = 1;
    assert(gguf_find(file, t->name) == t);
    for (int i = 0; i < GGUF_MAX_DIMS; i++)
        values *= t->ne[i];
    assert(values / t->type->block_values * t->type->block_bytes == t->bytes);
    assert(t->offset >= file->parts[0].data &&
           (t->offset - file->parts[0].data) % file->alignment == 0);
    const uint8_t *data = gguf_data(file, t);
    assert(!data || (data >= file->parts[0].bytes &&
                     data + t->bytes <= file->parts[0].bytes + file->parts[0].size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf_file file;
    gguf_error error;
    if (!gguf_open_memory("m", data, size, &file, &error)) {
        check_message(&error, size);
        return 0;
    }
    for (size_t i = 0; i < file.key_count; i++)
        check_key(&file, &file.keys[i]);
    for (size_t i = 0; i < file.tensor_count; i++)
        check_tensor(&file, &file.tensors[i]);
    if (!gguf_check_data(&file, &error))
        check_message(&error, size);
    gguf_close(&file);
    return 0;
}
