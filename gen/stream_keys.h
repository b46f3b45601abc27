/* What all streaming GEMVs have in common as families. */
#ifndef PTXGEN_GEN_STREAM_KEYS_H
#define PTXGEN_GEN_STREAM_KEYS_H

#include "gen/blocks/stream.h"
#include "gen/family.h"

#define KEY_ROWS_PER_WARP(usual)                                                          \
    {                                                                                     \
        .name = "rows_per_warp", .summary = "rows that a warp takes at once",             \
        .field = KEY_FIELD(rows_per_warp), .min = 1, .max = 2, .def = (usual), .tag = "r" \
    }
/* Two blocks of 12 warps with 80 registers fit an SM: 24 warps with two 16-byte loads a lane. */
#define KEY_STREAM_WARPS                                                                          \
    {                                                                                             \
        .name = "num_warps", .summary = "warps a block", .field = KEY_FIELD(num_warps), .min = 1, \
        .max = 12, .def = 12, .tag = "w"                                                          \
    }
#define KEY_ADDED(id, said)                                                           \
    {                                                                                 \
        .name = #id, .summary = said, .field = KEY_FIELD(id), .choices = id##_choices \
    }
extern const choice bias_choices[], residual_choices[];

#define STREAM_FAMILY(type, k_multiple, alignment, usual_rows, activation_bytes, builder, refers, \
                      bound)                                                                      \
    .computes = "y[m,n] = x[m,k] W[n,k]^T", .op = OP_GEMV, .weights = FORMAT_##type,              \
    .activations = FORMAT_F32, .preference = 20,                                                  \
    .keys = (const key[]){ KEY_K(k_multiple),                                                     \
                           KEY_N,                                                                 \
                           KEY_M(1),                                                              \
                           KEY_STREAM_WARPS,                                                      \
                           KEY_ROWS_PER_WARP(usual_rows),                                         \
                           KEY_ADDED(bias, "a vector [n] added to y"),                            \
                           KEY_ADDED(residual, "values [m,n] added to y"),                        \
                           KEY_END },                                                             \
    .params = (const param[]){ OUT(F32, y, "m*n", 4),                                             \
                               IN(type, w, "n*k", alignment),                                     \
                               IN(F32, x, "m*k", 16),                                             \
                               IN_WHERE(bias, F32, bias, "n", 4),                                 \
                               IN_WHERE(residual, F32, residual, "m*n", 4),                       \
                               PARAM_END },                                                       \
    .launch = { .block = "32*num_warps",                                                          \
                .grid = { "min(ceil_div(n, num_warps*rows_per_warp), sm_count*2)" },              \
                .dynamic_shared = activation_bytes,                                               \
                .rows = "num_warps*rows_per_warp",                                                \
                .registers = 128 },                                                               \
    .build = builder, .reference = refers, .tolerance = bound

/* Of those that quantize x. */
#define STREAM_GEMV(type, k_multiple, alignment, usual_rows, builder)                             \
    .quantizes = true, STREAM_FAMILY(type, k_multiple, alignment, usual_rows, "m*" STREAM_SHARED, \
                                     builder, ref_gemv_quantizing, REF_QUANTIZING_TOLERANCE)

#endif
