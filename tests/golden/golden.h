/* Reads the golden data from golden.tar.xz (see README.md). The folder is $PTXGEN_GOLDEN, or
 * build/tests/golden in the working directory. A missing file, or a file of another size than
 * requested, ends the test program. */
#ifndef PTXGEN_TESTS_GOLDEN_H
#define PTXGEN_TESTS_GOLDEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "kernel/format.h"

/* Returns the contents of a file, which must have `size` bytes; size = 0 accepts any size. */
static void *golden(arena *a, const char *name, size_t size)
{
    const char *folder = getenv("PTXGEN_GOLDEN"), *error;
    char *bytes;
    size_t got;
    const char *path = arena_format(a, "%s/%s", folder ? folder : "build/tests/golden", name);
    if (!os_read_file(a, path, &bytes, &got, &error)) {
        fprintf(stderr, "%s: %s\n", path, error);
        abort();
    }
    if (size && got != size) {
        fprintf(stderr, "%s: %zu bytes, %zu expected\n", path, got, size);
        abort();
    }
    return bytes;
}

/* Sizes of the GEMV set: W is [n,k], with m vectors x. */
typedef struct golden_dims {
    int32_t n, k, m;
} golden_dims;

/* Returns true if a format's quantized matrix is beside x. The other formats' matrices are in
 * formats/. */
static inline bool golden_in_first_set(format f)
{
    switch (f) {
    case FORMAT_F32:
    case FORMAT_F16:
    case FORMAT_Q4_0:
    case FORMAT_Q5_0:
    case FORMAT_Q8_0:
    case FORMAT_Q4_K:
    case FORMAT_Q6_K:
        return true;
    default:
        return false;
    }
}

/* The golden data of a format's matrix. The quantized matrix has n rows. The random matrix, made of
 * random bytes, has golden_random_rows. */
typedef struct golden_matrix {
    unsigned rows;
    const void *weights;  /* [rows,k] */
    const float *decoded; /* [rows,k], by ggml */
    const double *y,
        *y_q8; /* [m,rows]: products with x.f32 and x.q8_1.bin; y_q8 is NULL for float formats */
} golden_matrix;

static inline unsigned golden_random_rows(format f)
{
    return f == FORMAT_IQ1_S || f == FORMAT_IQ1_M ? 16 : f == FORMAT_IQ2_S ? 8 : 4;
}

static inline golden_matrix golden_matrix_of(arena *a, format f, bool random)
{
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    size_t k = (size_t)d->k, m = (size_t)d->m, name_length = strlen(formats[f].name);
    bool is_k_quant = formats[f].name[name_length - 1] == 'k';
    bool is_float = formats[f].block_values == 1;
    /* path with ggml's name of the format, "q4_K" */
    const char *name =
        arena_format(a, "%s%.*s%s%s", random || !golden_in_first_set(f) ? "formats/" : "",
                     (int)name_length - is_k_quant, formats[f].name, is_k_quant ? "K" : "",
                     random ? ".random" : "");
    golden_matrix g = { .rows = random ? golden_random_rows(f) : (unsigned)d->n };
    g.weights = golden(a, arena_format(a, "%s.weights.bin", name), format_bytes(f, g.rows * k));
    g.decoded = golden(a, arena_format(a, "%s.dequant.f32", name), g.rows * k * sizeof(float));
    g.y = golden(a, arena_format(a, "%s.y.f64", name), g.rows * m * sizeof(double));
    if (!is_float)
        g.y_q8 = golden(a, arena_format(a, "%s.y_q8.f64", name), g.rows * m * sizeof(double));
    return g;
}

/* Sizes of an attention set: one query per sequence. */
typedef struct golden_attention_dims {
    int32_t batch, num_heads, num_kv_heads, head_dim, max_seq_len;
} golden_attention_dims;

#endif
