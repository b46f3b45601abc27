/* An engine's look-ups: finds kernels by operation, formats and shape, and prints their launches.
 * Valid C99 and C++. */
#include <stdio.h>

#include "engine_kernels.h"

static void look_up(const char *what, ptxgen_query query)
{
    const ptxgen_run run = { query.k, query.n, 1, 20 };
    const ptxgen_kernel *kernel = engine_find(&query);
    unsigned grid[3];
    if (!kernel) {
        printf("%s: not generated\n", what);
        return;
    }
    ptxgen_grid(kernel, &run, grid);
    printf("%s: %s, block %u, grid %u x %u x %u, %u parameters\n", what, kernel->name,
           kernel->block[0], grid[0], grid[1], grid[2], (unsigned)kernel->param_count);
}

static void look_up_gemv(const char *what, ptxgen_format weights, ptxgen_format activations,
                         int64_t k, int64_t n)
{
    ptxgen_query query;
    memset(&query, 0, sizeof query);
    query.op = PTXGEN_GEMV;
    query.weights = weights;
    query.activations = activations;
    query.k = k;
    query.n = n;
    query.sm = 86;
    look_up(what, query);
}

static void look_up_attention(const char *what, int64_t num_heads, int64_t num_kv_heads)
{
    ptxgen_query query;
    memset(&query, 0, sizeof query);
    query.op = PTXGEN_ATTENTION;
    query.head_dim = 128;
    query.num_heads = num_heads;
    query.num_kv_heads = num_kv_heads;
    query.sm = 90;
    look_up(what, query);
}

static void look_up_all(void)
{
    look_up_gemv("output projection", PTXGEN_Q4_K, PTXGEN_F32, 4096, 4096);
    look_up_gemv("output projection of q8_1", PTXGEN_Q4_K, PTXGEN_Q8_1, 4096, 4096);
    look_up_gemv("feed forward", PTXGEN_Q4_K, PTXGEN_F32, 4096, 14336);
    look_up_gemv("feed forward of q8_1", PTXGEN_Q4_K, PTXGEN_Q8_1, 4096, 14336);
    look_up_gemv("router", PTXGEN_F32, PTXGEN_F32, 4096, 8);
    look_up_attention("attention", 32, 8);
    look_up_attention("attention of another model", 64, 8);
}
