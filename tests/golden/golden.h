/* Reads the golden data beside this file (see its README). The folder is $PTXGEN_GOLDEN, or
 * tests/golden below the working directory. A file that is missing or of another size than asked
 * for ends the test program. */
#ifndef PTXGEN_TESTS_GOLDEN_H
#define PTXGEN_TESTS_GOLDEN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"

/* The content of NAME, which must hold size bytes; 0: any number. */
static void *golden(arena *a, const char *name, size_t size)
{
    const char *folder = getenv("PTXGEN_GOLDEN");
    const char *path = arena_format(a, "%s/%s", folder ? folder : "tests/golden", name);
    const char *error;
    char *bytes;
    size_t got;
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

/* The GEMV set: W is [n,k], there are m vectors x. */
typedef struct golden_dims {
    int32_t n, k, m;
} golden_dims;

/* An attention set: one query a sequence. */
typedef struct golden_attention_dims {
    int32_t batch, num_heads, num_kv_heads, head_dim, max_seq_len;
} golden_attention_dims;

#endif
