/* Products of prompts and batches on the tensor cores: see blocks/gemm.h. Of Q, K and V each block
 * has columns of one. Rows of X are f32, which each block makes f16, or have been made so ahead
 * (f16_rows.c), which takes a launch more and a third of the time where there are many. */
#include "gen/gemm_keys.h"
#include "gen/product_keys.h"

#define KEYS_OF_ROWS                                                \
    { .name = "m",                                                  \
      .summary = "rows of X and Y, of which a block takes so many", \
      .field = KEY_FIELD(shape.m),                                  \
      .min = 1,                                                     \
      .max = GEMM_MOST_ROWS,                                        \
      .def = GEMM_MOST_ROWS,                                        \
      .counted_with = KEY_FIELD(rows_mode),                         \
      .tag = "m" },                                                 \
        { .name = "rows",                                           \
          .summary = "of X and Y: m, or a parameter",               \
          .field = KEY_FIELD(rows_mode),                            \
          .choices = rows_choices,                                  \
          .def = ROWS_RUN_TIME },                                   \
        KEY_STAGES

static const derived_size sizes[] = { GEMV_VECTORS, GEMM_SIZES, { NULL, NULL, NULL } };

#define TILE_LAUNCH_OF(columns_of_tiles, static_bytes)                                        \
    {                                                                                         \
        .block = "256", .grid = { columns_of_tiles, GEMV_GRID_Y }, .shared = static_bytes,    \
        .dynamic_shared = "tiles", .sizes = sizes, .rows = "columns", .overlap = WAITS_FIRST, \
        .registers = 255                                                                      \
    }

#define TILES              "ceil_div(n, columns)"
#define TILE_LAUNCH        TILE_LAUNCH_OF(TILES, GEMM_SHARED)
#define TILE_LAUNCH_OF_F16 TILE_LAUNCH_OF(TILES, GEMM_SHARED_OF_F16)

const family mma_gemm = {
    .name = "mma_gemm",
    .summary = "GEMM of f32 x, which is rounded to f16, on tensor cores: prompts and batches",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .activations = FORMAT_F32,
    .halves = true,
    .same_bits = true,
    .sm = 80,
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEYS_OF_ROWS, KEYS_AROUND_PRODUCT,
                           KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), IN(F32, x, "m*k", 16),
                               PARAMS_AROUND_PRODUCT, PARAM_END },
    .launch = TILE_LAUNCH,
    .check = check_product,
    .build = gemm_build,
    .reference = ref_gemv,
    .tolerance = 1e-3,
};

const family mma_gate_up = {
    .name = "mma_gate_up",
    .summary = "gate and up of prompts and batches, with the activation, as mma_gemm",
    .computes = GATE_UP_COMPUTES,
    .op = OP_GATE_UP_SWIGLU,
    .activations = FORMAT_F32,
    .halves = true,
    .same_bits = true,
    .sm = 80,
    .each_matrix = "mma_gemm",
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEYS_OF_ROWS, KEYS_AROUND_GATE_UP,
                           KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(wg, "n*k"), WEIGHTS(wu, "n*k"),
                               IN(F32, x, "m*k", 16), IN_WHERE(norm, F32, gamma, "k", 16),
                               IN_WHERE(bias, F32, bg, "n", 4), IN_WHERE(bias, F32, bu, "n", 4),
                               PARAM_END },
    .launch = TILE_LAUNCH,
    .build = gemm_build,
    .reference = ref_gate_up_swiglu,
    .tolerance = 1e-3,
};

const family mma_gemm_f16 = {
    .name = "mma_gemm_f16",
    .summary = "mma_gemm of rows that f16_rows has made f16, once for all products of them",
    .computes = "y[m,n] = factors[m] x[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .activations = FORMAT_F16,
    .halves = true,
    .same_bits = true,
    .sm = 80,
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEYS_OF_ROWS, KEYS_BEHIND_PRODUCT,
                           KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), F16_ROWS("m"),
                               PARAMS_BEHIND_PRODUCT, PARAM_END },
    .launch = TILE_LAUNCH_OF_F16,
    .check = check_product,
    .build = gemm_build,
    .reference = ref_gemv,
    .tolerance = 1e-3,
};

const family mma_gate_up_f16 = {
    .name = "mma_gate_up_f16",
    .summary = "gate and up of prompts and batches, with the activation, as mma_gemm_f16",
    .computes = GATE_UP_COMPUTES,
    .op = OP_GATE_UP_SWIGLU,
    .activations = FORMAT_F16,
    .halves = true,
    .same_bits = true,
    .sm = 80,
    .each_matrix = "mma_gemm_f16",
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEYS_OF_ROWS, KEY_GATE_BIASES,
                           KEY_ACTIVATION, KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(wg, "n*k"), WEIGHTS(wu, "n*k"),
                               F16_ROWS("m"), IN_WHERE(bias, F32, bg, "n", 4),
                               IN_WHERE(bias, F32, bu, "n", 4), PARAM_END },
    .launch = TILE_LAUNCH_OF_F16,
    .build = gemm_build,
    .reference = ref_gate_up_swiglu,
    .tolerance = 1e-3,
};

const family mma_qkv = {
    .name = "mma_qkv",
    .summary = "Q, K and V of prompts and batches, of any formats, by one kernel, as mma_gemm_f16",
    .computes = QKV_COMPUTES,
    .op = OP_QKV,
    .activations = FORMAT_F16,
    .halves = true,
    .same_bits = true,
    .sm = 80,
    .each_matrix = "mma_gemm_f16",
    .keys = (const key[]){ KEY_WEIGHTS, KEY_WEIGHTS_OF(q, 0), KEY_WEIGHTS_OF(k, 1),
                           KEY_WEIGHTS_OF_V, KEY_K_OF_WEIGHTS, KEY_N, KEY_ROWS_OF_K("rows of Wk"),
                           KEY_N_V, KEYS_OF_ROWS, KEY_QKV_BIASES, KEY_END },
    .params = (const param[]){ PARAMS_OF_QKV_FROM(F16_ROWS("m")), PARAM_END },
    .launch =
        TILE_LAUNCH_OF(TILES "+ceil_div(n_kv, columns)+ceil_div(n_v, columns)", GEMM_SHARED_OF_F16),
    .build = gemm_build,
    .reference = ref_qkv,
    .tolerance = 1e-3,
};
