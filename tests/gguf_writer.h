/* Writes GGUF files into memory. Nothing is checked, so that tests can write broken files, too.
 * Each call appends to w->out; w->out.length is the offset of the next item. */
#ifndef PTXGEN_TESTS_GGUF_WRITER_H
#define PTXGEN_TESTS_GGUF_WRITER_H

#include "base/strbuf.h"
#include "model/gguf/gguf.h"

typedef struct gguf_writer {
    strbuf out;
} gguf_writer;

/* Returns a writer that has written the magic, the version and the counts. */
gguf_writer gguf_start(arena *a, uint32_t version, uint64_t tensors, uint64_t keys);

/* Appends the lowest `width` bytes of a number, little-endian. */
void gguf_put(gguf_writer *w, uint64_t number, unsigned width);
void gguf_put_string(gguf_writer *w, const char *text);

/* Appends a key's name and type. The caller appends the value. */
void gguf_put_key(gguf_writer *w, const char *name, uint32_t type);

/* Appends a key and its value. */
void gguf_put_number(gguf_writer *w, const char *name, gguf_value type, uint64_t bits);
void gguf_put_f32(gguf_writer *w, const char *name, float value);
void gguf_put_text(gguf_writer *w, const char *name, const char *text);

/* Appends the head of an array key. The caller appends the values. */
void gguf_put_array(gguf_writer *w, const char *name, uint32_t type, uint64_t count);

/* Appends a tensor's description. A 0 ends ne. */
void gguf_put_tensor(gguf_writer *w, const char *name, const uint64_t *ne, uint32_t type,
                     uint64_t offset);

#define GGUF_NE(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

/* Appends zeros up to the next multiple of the alignment. */
void gguf_pad(gguf_writer *w, size_t alignment);

#endif
