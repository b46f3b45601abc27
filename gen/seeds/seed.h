/* Common declarations of the seed families: GEMVs with weights of one format. */
#pragma once

#include "gen/products/gemv.h"
#include "ref/reference.h"

#define SEED(id, said, of, x) \
    .name = #id, .summary = said, .weights = FORMAT_##of, .activations = FORMAT_##x
#define GEMV_COMPUTES(formula) .computes = formula, .op = OP_GEMV, .reference = ref_gemv
#define OF_ONE_VECTOR          GEMV_COMPUTES("y[n] = W[n,k] x[k]"), .tolerance = 2e-7
#define OF_VECTORS             GEMV_COMPUTES("Y[m,n] = X[m,k] W[n,k]^T"), .tolerance = 2e-7

/* Launches: one warp per row; several; blocks that stride over rows, for one vector and several. */
#define WARP_A_ROW .launch = { .block = "32", .grid = { "n" }, .registers = 64 }
#define BLOCK_A_ROW                                                                           \
    .launch = {                                                                               \
        .block = "32*num_warps", .grid = { "n" }, .shared = BLOCK_SUM_SHARED, .registers = 64 \
    }
#define STRIDING_BLOCKS(...)                                                                     \
    .launch = {                                                                                  \
        .block = "32*num_warps", .grid = { "min(n, sm_count*16)" }, .registers = 64, __VA_ARGS__ \
    }
#define STRIDING_BLOCKS_OF_VECTORS                              \
    .launch = { .block = "32*num_warps",                        \
                .grid = { "min(n, sm_count*16)", GEMV_GRID_Y }, \
                .shared = "2*vectors*" BLOCK_SUMS_SHARED,       \
                .sizes = gemv_sizes,                            \
                .rows = "2",                                    \
                .registers = 128 }

/* Keys of a product, with k and n first, and its parameters. */
#define SEED_KEYS(of, ...) .keys = KEYS(KEY_K(of##_VALUES), KEY_N, __VA_ARGS__)
#define PLAIN_KEYS(of)     SEED_KEYS(of, KEY_VARIANT, KEY_PRECISION, KEY_DIMS)
#define SEED_PARAMS(of, w_align, x_format, x_align) \
    .params = PARAMS(OUT(F32, y, "n", 4), IN(of, w, "n*k", w_align), IN(x_format, x, "k", x_align))
#define PARAMS_OF_VECTORS(of, w_align, x_format, x_align) \
    .params =                                             \
        PARAMS(OUT(F32, y, "m*n", 4), IN(of, w, "n*k", w_align), IN(x_format, x, "m*k", x_align))
