/* Keys and formulas of streaming products. */
#ifndef PTXGEN_GEN_PRODUCTS_STREAM_KEYS_H
#define PTXGEN_GEN_PRODUCTS_STREAM_KEYS_H

#include "gen/products/product_keys.h"

/* Two share what is loaded of x; of few rows one leaves more warps to wait for memory. */
#define KEY_ROWS_PER_WARP(usual)                                                          \
    {                                                                                     \
        .name = "rows_per_warp", .summary = "rows that a warp takes at once",             \
        .field = KEY_FIELD(rows_per_warp), .min = 1, .max = 2, .def = (usual), .tag = "r" \
    }
/* 24 warps with 80 registers fit an SM, with two 16-byte loads a lane: two blocks of 12, or a
 * single one, which stages x once. */
#define KEY_STREAM_WARPS(most)                                                                    \
    {                                                                                             \
        .name = "num_warps", .summary = "warps a block", .field = KEY_FIELD(num_warps), .min = 1, \
        .max = (most), .def = 12, .tag = "w"                                                      \
    }
/* Of several the tile of x takes less shared memory, and blocks stage x anew for each turn. */
#define KEY_PASSES                                                                   \
    {                                                                                \
        .name = "passes", .summary = "parts that x is staged in; 0: as few as fit",  \
        .field = KEY_FIELD(passes), .max = 64, .zero_is_none = true, .tag = "passes" \
    }
/* Partial sums of squares, and factors. */
#define STREAM_NORM_SHARED "norm*4*vectors*(chunks+1)"

#endif
