/* Element formats of a kernel's buffers, one row each in format.def. */
#pragma once

#include <stdint.h>

typedef enum format {
#define PLAIN(id, ...)  FORMAT_##id,
#define CODED(id, ...)  FORMAT_##id,
#define FORMAT(id, ...) FORMAT_##id,
#include "kernel/format.def"
    FORMAT_COUNT
} format;

/* Values and bytes per block and offsets of its fields: Q4_K_VALUES, Q4_K_BYTES, Q4_K_DMIN. */
enum {
#define CODED(id, name, gguf, values, bytes, align)  id##_VALUES = (values), id##_BYTES = (bytes),
#define FORMAT(id, name, gguf, values, bytes, align) id##_VALUES = (values), id##_BYTES = (bytes),
#define FIELD(id, field, offset)                     id##_##field = (offset),
#include "kernel/format.def"
};

enum { NO_GGUF_TYPE = -1 };

typedef struct format_info {
    const char *name;      /* as in headers, manifests and messages: ggml's "q4_K" is "q4_k" */
    int gguf_type;         /* ggml_type's number in GGUF files, or NO_GGUF_TYPE */
    unsigned block_values; /* values per block */
    unsigned block_bytes;
    unsigned alignment; /* bytes, of each block in an array that is aligned to 16 */
} format_info;

/* Indexed by format. */
extern const format_info formats[FORMAT_COUNT];

/* Returns the bytes of a number of values, a multiple of block_values. */
uint64_t format_bytes(format f, uint64_t values);
