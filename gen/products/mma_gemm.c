/* Tensor-core products of prompts and batches: see products/gemm_tile.h. In mma_qkv each block has
 * columns of one matrix. X is f32 and each block rounds it, or f16_rows.c has rounded it before;
 * the latter costs one more launch and is faster for many rows.
 *
 * The grid's x has a block per 128 rows of W (64 of gate and 64 of up), y per m rows of X, z per
 * part of k. With experts y has a block per entry of the list, and the blocks of z stride over its
 * tiles of rows. For a given `splits` an element has the same bits in any tile and for any m.
 *
 * Experts are read from a list in device memory (products/experts.h). A row of X has a row of Y for
 * each of its choices, row * experts_used + slot; expert_sum weights and adds them. */
#include "gen/products/gemm_tile.h"
#include "gen/products/gemv.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

#define KEY_STAGES                                                                            \
    KEY_NUMBER("stages", "pipeline stages: chunks of weights in shared memory", stages, 2, 4, \
               .def = 3, .tag = "s")
#define KEYS_OF_ROWS                                                                         \
    KEY_NUMBER("m", "rows of X and Y; with rows = run_time, per block", shape.m, 1,          \
               GEMM_MOST_ROWS, .def = GEMM_USUAL_ROWS, .specific_from = GEMM_USUAL_ROWS + 1, \
               .specific_sm = 90, .counted_with = KEY_FIELD(rows_mode), .tag = "m"),         \
        KEY_WORD("rows", "rows of X, Y: m, or a parameter", rows_mode, rows_choices,         \
                 .def = ROWS_RUN_TIME),                                                      \
        KEY_STAGES
/* Split-K needs f16 X. */
#define KEY_SPLITS                                                                                 \
    KEY_NUMBER("splits", "split-K: parts of k, each with its own blocks; 0 = no split", splits, 0, \
               GEMM_MOST_SPLITS, .zero_is_none = true, .tag = "z")

/* X from f16_rows.c: `rows` rows of k values, and a factor per row. */
#define F16_ROWS(rows) IN(F16, x, rows "*k", 16), IN(F32, factors, rows, 4)
#define WHERE_SPLIT    .only_with = KEY_FIELD(splits)
#define PARAMS_OF_SPLITS(tiles)                                                                    \
    SCRATCH(F32, partials, "parts*(" tiles ")*ceil_div(m, vectors)*tile_values", 16, WHERE_SPLIT), \
        COUNTERS(counters, "(" tiles ")*ceil_div(m, vectors)", WHERE_SPLIT)

/* Shared memory, and columns of Y per block. */
#define TILE_SIZES                                                                                \
    { "powers", gemm_powers_bytes,                                                                \
      "bytes of the scales of W's rows, for formats beyond the range of f16" },                   \
        { "tile_rows", gemm_rows, "rows of X that a tile has room for: 16, 32, 64, 128 or 256" }, \
        { "columns", gemm_columns, "columns of Y per block" },                                    \
    {                                                                                             \
        "tiles", gemm_shared_bytes, "bytes of the tiles of X and W and of the ring of weights"    \
    }

static int64_t tiles_of_share(const instance *in)
{
    const problem_shape *s = &in->shape;
    int64_t rows = s->experts * gemm_rows(in);
    return (s->m * s->experts_used + rows - 1) / rows;
}

#define TILES        "ceil_div(n, columns)"
#define TILES_OF_QKV TILES "+ceil_div(n_kv, columns)+ceil_div(n_v, columns)"
#define TILE_LAUNCH \
    .block = "256", .dynamic_shared = "tiles", .overlap = WAITS_FIRST, .registers = 255
#define ROWS_OF_F32                                                                         \
    .launch = { TILE_LAUNCH, .grid = { TILES, GEMV_GRID_Y }, .rows = "columns",             \
                .shared = "8*tile_rows+powers", .sizes = SIZES(GEMV_VECTORS, TILE_SIZES) }, \
    .check = gemm_check
#define ROWS_OF_F16(tiles)                                                                       \
    .launch = { TILE_LAUNCH, .grid = { tiles, GEMV_GRID_Y, "parts" }, .rows = "columns",         \
                .shared = "powers+16*min(parts - 1, 1)",                                         \
                .sizes = SIZES(                                                                  \
                    GEMV_VECTORS, TILE_SIZES,                                                    \
                    { "parts", gemm_splits, "parts of k in split-K, each with its own blocks" }, \
                    { "tile_values", gemm_tile_values,                                           \
                      "partial sums that each part stores per tile" }) },                        \
    .check = gemm_check
#define ROWS_OF_EXPERTS                                                                         \
    .launch = { TILE_LAUNCH, .grid = { TILES, "listed", "shares" }, .dealt = true,              \
                .shared = "powers",                                                             \
                .sizes = SIZES(                                                                 \
                    { "listed", experts_listed, "maximum number of experts in use" },           \
                    { "at_once", gemm_expert_rows, "rows of an expert per block at a time" },   \
                    { "shares", tiles_of_share, "tiles per expert if rows are spread evenly" }, \
                    TILE_SIZES) },                                                              \
    .check = check_experts, .fit = ref_fit_experts

#define ON_TENSOR_CORES(of, x, computed_by)                                                      \
    .op = of, .activations = FORMAT_##x, .halves = true, .whole_lines = true, .same_bits = true, \
    .sm = 80, .build = gemm_build, .reference = computed_by, .tolerance = 1e-3

const family mma_gemm = {
    .name = "mma_gemm",
    .summary = "tensor-core GEMM of f32 x, rounded to f16: prompts and batches",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    ON_TENSOR_CORES(OP_GEMV, F32, ref_gemv),
    .keys = KEYS(KEYS_OF_PRODUCT(0), KEYS_OF_ROWS, KEYS_AROUND_PRODUCT),
    .params = PARAMS(PARAMS_OF_PRODUCT(F32_ROWS), NUMBERS_OF_EPILOGUE),
    ROWS_OF_F32,
};

const family mma_gate_up = {
    .name = "mma_gate_up",
    .summary = "gate and up with activation, of prompts and batches, as mma_gemm",
    .computes = GATE_UP_COMPUTES,
    ON_TENSOR_CORES(OP_GATE_UP_SWIGLU, F32, ref_gate_up_swiglu),
    .each_matrix = "mma_gemm",
    .keys = KEYS(KEYS_OF_PRODUCT(0), KEYS_OF_ROWS, KEYS_AROUND_GATE_UP),
    .params = PARAMS(PARAMS_OF_GATE_UP_ALIKE(F32_ROWS)),
    ROWS_OF_F32,
};

const family mma_gemm_f16 = {
    .name = "mma_gemm_f16",
    .summary = "mma_gemm of f16 rows from f16_rows, rounded once for all products",
    .computes = "y[m,n] = factors[m] x[m,k] W[n,k]^T",
    ON_TENSOR_CORES(OP_GEMV, F16, ref_gemv),
    .keys = KEYS(KEYS_OF_PRODUCT(0), KEYS_OF_ROWS, KEY_SPLITS, KEYS_BEHIND_PRODUCT),
    .params =
        PARAMS(PARAMS_OF_PRODUCT(F16_ROWS("m")), PARAMS_OF_SPLITS(TILES), NUMBERS_OF_EPILOGUE),
    ROWS_OF_F16(TILES),
};

const family mma_gate_up_f16 = {
    .name = "mma_gate_up_f16",
    .summary = "gate and up with activation, of prompts and batches, as mma_gemm_f16",
    .computes = GATE_UP_COMPUTES,
    ON_TENSOR_CORES(OP_GATE_UP_SWIGLU, F16, ref_gate_up_swiglu),
    .each_matrix = "mma_gemm_f16",
    .keys = KEYS(KEYS_OF_PRODUCT(0), KEYS_OF_ROWS, KEY_SPLITS, KEY_GATE_BIASES, KEYS_OF_GATE),
    .params = PARAMS(PARAMS_OF_GATE_UP_ALIKE(F16_ROWS("m")), PARAMS_OF_SPLITS(TILES)),
    ROWS_OF_F16(TILES),
};

const family mma_qkv = {
    .name = "mma_qkv",
    .summary = "Q, K and V of prompts and batches in one kernel, any formats, as mma_gemm_f16",
    .computes = QKV_COMPUTES,
    ON_TENSOR_CORES(OP_QKV, F16, ref_qkv),
    .each_matrix = "mma_gemm_f16",
    .keys = KEYS(KEYS_OF_QKV(0), KEYS_OF_ROWS, KEY_SPLITS, KEY_QKV_BIASES),
    .params = PARAMS(PARAMS_OF_QKV(F16_ROWS("m")), PARAMS_OF_SPLITS(TILES_OF_QKV)),
    ROWS_OF_F16(TILES_OF_QKV),
};

const family mma_expert_gate_up = {
    .name = "mma_expert_gate_up",
    .summary = "gate and up with activation of routed experts, as mma_gemm_f16",
    .computes = "f[m,slot,n] = activation(x[m,k] Wg[expert[m,slot]]^T) * (x[m,k] Wu[...]^T)",
    ON_TENSOR_CORES(OP_EXPERT_GATE_UP, F16, ref_expert_gate_up),
    .keys = KEYS(KEYS_OF_EXPERTS(0, 16, GEMM_USUAL_ROWS, KEY_STAGES), KEYS_OF_GATE, KEY_UNGATED),
    .params = PARAMS(PARAMS_OF_EXPERT_PAIRS(F16_ROWS("m"))),
    ROWS_OF_EXPERTS,
};

const family mma_expert_down = {
    .name = "mma_expert_down",
    .summary = "products with routed experts, one per choice of a row, as mma_gemm_f16",
    .computes = "y[m,slot,n] = x[m,slot,k] W[expert[m,slot]]^T",
    ON_TENSOR_CORES(OP_EXPERT_PRODUCT, F16, ref_expert_product),
    .keys = KEYS(KEYS_OF_EXPERTS(0, 16, GEMM_USUAL_ROWS, KEY_STAGES)),
    .params = PARAMS(PARAMS_OF_EXPERT_PRODUCTS(F16_ROWS("m*experts_used"))),
    ROWS_OF_EXPERTS,
};
