/* Products of prompts and batches on the tensor cores: see products/gemm.h. Of Q, K and V each
 * block has columns of one. Rows of X are f32, which each block makes f16, or have been made so
 * ahead (f16_rows.c), which takes a launch more and a third of the time where there are many. */
#include "gen/products/gemm.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

#define KEYS_OF_ROWS                                                                               \
    KEY_NUMBER("m", "rows of X and Y, of which a block takes so many", shape.m, 1, GEMM_MOST_ROWS, \
               .def = GEMM_USUAL_ROWS, .specific_from = GEMM_USUAL_ROWS + 1, .specific_sm = 90,    \
               .counted_with = KEY_FIELD(rows_mode), .tag = "m"),                                  \
        KEY_WORD("rows", "of X and Y: m, or a parameter", rows_mode, rows_choices,                 \
                 .def = ROWS_RUN_TIME),                                                            \
        KEY_STAGES

static const derived_size sizes[] = { GEMV_VECTORS, GEMM_SIZES, { NULL, NULL, NULL } };

/* Of X that is f16 k may be split. */
#define KEY_SPLITS                                                                     \
    KEY_NUMBER("splits", "parts of k, each with blocks of its own; 0: one", splits, 0, \
               GEMM_MOST_SPLITS, .zero_is_none = true, .tag = "z")
#define WHERE_SPLIT .only_with = KEY_FIELD(splits)
#define PARAMS_OF_SPLITS(tiles)                                                                    \
    SCRATCH(F32, partials, "parts*(" tiles ")*ceil_div(m, vectors)*tile_values", 16, WHERE_SPLIT), \
        COUNTERS(counters, "(" tiles ")*ceil_div(m, vectors)", WHERE_SPLIT)

static const derived_size split_sizes[] = {
    GEMV_VECTORS,
    GEMM_SIZES,
    { "parts", gemm_splits, "blocks that have a part of k each" },
    { "tile_values", gemm_tile_values, "that each of those stores for the last one" },
    { NULL, NULL, NULL },
};

#define TILES        "ceil_div(n, columns)"
#define TILES_OF_QKV TILES "+ceil_div(n_kv, columns)+ceil_div(n_v, columns)"
#define TILE_LAUNCH                                                                           \
    {                                                                                         \
        .block = "256", .grid = { TILES, GEMV_GRID_Y }, .shared = GEMM_SHARED,                \
        .dynamic_shared = "tiles", .sizes = sizes, .rows = "columns", .overlap = WAITS_FIRST, \
        .registers = 255                                                                      \
    }
#define TILE_LAUNCH_OF_F16(tiles)                                                         \
    {                                                                                     \
        .block = "256", .grid = { tiles, GEMV_GRID_Y, "parts" },                          \
        .shared = GEMM_SHARED_OF_F16 "+16*min(parts - 1, 1)", .dynamic_shared = "tiles",  \
        .sizes = split_sizes, .rows = "columns", .overlap = WAITS_FIRST, .registers = 255 \
    }

static const char *check_split_product(const instance *in, arena *a, const char **blamed)
{
    const char *wrong = gemm_check_splits(in, a, blamed);
    return wrong ? wrong : check_product(in, a, blamed);
}

#define ON_TENSOR_CORES(of, x, computed_by)                                                      \
    .op = of, .activations = FORMAT_##x, .halves = true, .whole_lines = true, .same_bits = true, \
    .sm = 80, .build = gemm_build, .reference = computed_by, .tolerance = 1e-3

const family mma_gemm = {
    .name = "mma_gemm",
    .summary = "GEMM of f32 x, which is rounded to f16, on tensor cores: prompts and batches",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    ON_TENSOR_CORES(OP_GEMV, F32, ref_gemv),
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEYS_OF_ROWS, KEYS_AROUND_PRODUCT,
                           KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), IN(F32, x, "m*k", 16),
                               PARAMS_AROUND_PRODUCT, PARAM_END },
    .launch = TILE_LAUNCH,
    .check = check_product,
};

const family mma_gate_up = {
    .name = "mma_gate_up",
    .summary = "gate and up of prompts and batches, with the activation, as mma_gemm",
    .computes = GATE_UP_COMPUTES,
    ON_TENSOR_CORES(OP_GATE_UP_SWIGLU, F32, ref_gate_up_swiglu),
    .each_matrix = "mma_gemm",
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEYS_OF_ROWS, KEYS_AROUND_GATE_UP,
                           KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(wg, "n*k"), WEIGHTS(wu, "n*k"),
                               IN(F32, x, "m*k", 16), IN_WHERE(norm, F32, gamma, "k", 16),
                               PARAMS_OF_GATE_BIASES, PARAM_END },
    .launch = TILE_LAUNCH,
};

const family mma_gemm_f16 = {
    .name = "mma_gemm_f16",
    .summary = "mma_gemm of rows that f16_rows has made f16, once for all products of them",
    .computes = "y[m,n] = factors[m] x[m,k] W[n,k]^T",
    ON_TENSOR_CORES(OP_GEMV, F16, ref_gemv),
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEYS_OF_ROWS, KEY_SPLITS,
                           KEYS_BEHIND_PRODUCT, KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), F16_ROWS("m"),
                               PARAMS_BEHIND_PRODUCT, PARAMS_OF_SPLITS(TILES), PARAM_END },
    .launch = TILE_LAUNCH_OF_F16(TILES),
    .check = check_split_product,
};

const family mma_gate_up_f16 = {
    .name = "mma_gate_up_f16",
    .summary = "gate and up of prompts and batches, with the activation, as mma_gemm_f16",
    .computes = GATE_UP_COMPUTES,
    ON_TENSOR_CORES(OP_GATE_UP_SWIGLU, F16, ref_gate_up_swiglu),
    .each_matrix = "mma_gemm_f16",
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEYS_OF_ROWS, KEY_SPLITS,
                           KEY_GATE_BIASES, KEY_ACTIVATION, KEY_END },
    .params =
        (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(wg, "n*k"), WEIGHTS(wu, "n*k"),
                         F16_ROWS("m"), PARAMS_OF_GATE_BIASES, PARAMS_OF_SPLITS(TILES), PARAM_END },
    .launch = TILE_LAUNCH_OF_F16(TILES),
    .check = gemm_check_splits,
};

const family mma_qkv = {
    .name = "mma_qkv",
    .summary = "Q, K and V of prompts and batches, of any formats, by one kernel, as mma_gemm_f16",
    .computes = QKV_COMPUTES,
    ON_TENSOR_CORES(OP_QKV, F16, ref_qkv),
    .each_matrix = "mma_gemm_f16",
    .keys = (const key[]){ KEY_WEIGHTS, KEY_WEIGHTS_OF(q, 0), KEY_WEIGHTS_OF(k, 1),
                           KEY_WEIGHTS_OF_V, KEY_K_OF_WEIGHTS, KEY_N, KEY_ROWS_OF_K("rows of Wk"),
                           KEY_N_V, KEYS_OF_ROWS, KEY_SPLITS, KEY_QKV_BIASES, KEY_END },
    .params = (const param[]){ PARAMS_OF_QKV_FROM(F16_ROWS("m")), PARAMS_OF_SPLITS(TILES_OF_QKV),
                               PARAM_END },
    .launch = TILE_LAUNCH_OF_F16(TILES_OF_QKV),
    .check = gemm_check_splits,
};
