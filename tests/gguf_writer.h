/* Writes GGUF files into memory, right ones and, as nothing is checked, any broken ones. What is
 * put goes to the end of w->out, so w->out.length is where the next thing will stand. */
#ifndef PTXGEN_TESTS_GGUF_WRITER_H
#define PTXGEN_TESTS_GGUF_WRITER_H

#include "base/strbuf.h"
#include "model/gguf/gguf.h"

typedef struct gguf_writer {
    strbuf out;
} gguf_writer;

/* Magic, version and counts. */
gguf_writer gguf_start(arena *a, uint32_t version, uint64_t tensors, uint64_t keys);

/* The lowest width bytes of a number. */
void gguf_put(gguf_writer *w, uint64_t number, unsigned width);
void gguf_put_string(gguf_writer *w, const char *text);

/* A key up to its value. */
void gguf_put_key(gguf_writer *w, const char *name, uint32_t type);

/* Whole keys. */
void gguf_put_number(gguf_writer *w, const char *name, gguf_value type, uint64_t bits);
void gguf_put_f32(gguf_writer *w, const char *name, float value);
void gguf_put_text(gguf_writer *w, const char *name, const char *text);

/* An array up to its values. */
void gguf_put_array(gguf_writer *w, const char *name, uint32_t type, uint64_t count);

/* ne ends with a 0. */
void gguf_put_tensor(gguf_writer *w, const char *name, const uint64_t *ne, uint32_t type,
                     uint64_t offset);

#define GGUF_NE(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

/* Zeros up to the next multiple. */
void gguf_pad(gguf_writer *w, size_t alignment);

#endif
