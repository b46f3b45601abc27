/* Y = X W^T with Q4_K weights and int8 activations: integer products with dp4a.
 *
 * Half a warp takes a super-block, as in blocks/q4k_q8.h, and the blocks of the grid stride over
 * the rows. These kernels differ in where the activations come from and what is taken at once:
 *
 *   mwv       q8_1 blocks, one row: most blocks of threads, for small n
 *   hw        q8_1 blocks, two rows: the activations and their sums serve both
 *   batched   q8_1 blocks, two rows and m vectors: weights are decoded once for all of them
 *   inline    the same from f32, quantized anew for every two rows: without workspace
 *   dp4a      f32, one row, one warp a row
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q4k_q8.h"
#include "gen/common/reduce.h"
#include "ref/reference.h"

enum { ONE = 1, TWO = 2 }; /* rows at once */

static q4k_q8_product product_new(const instance *in, const gemv_operands *g, unsigned rows,
                                  unsigned vectors, unsigned unroll)
{
    return (q4k_q8_product){
        .rows = rows,
        .vectors = vectors,
        .x = g->x,
        .behind = g->behind,
        .quantized = in->family->activations == FORMAT_Q8_1,
        .blocks = g->blocks,
        .unroll = unroll,
    };
}

static void build_turns(ptx *p, const instance *in, unsigned rows, unsigned vectors,
                        unsigned unroll)
{
    gemv_operands g = gemv_parameters(p, in);
    q4k_q8_lane lane = q4k_q8_lane_new(p);
    q4k_q8_product product = product_new(in, &g, rows, vectors, unroll);
    block_sums reduction = block_sums_new_each(p, ptx_block(p) / 32, rows * vectors);
    PTX_FOR (p, row, mul(p, ctaid_x(p), rows), g.n, mul(p, nctaid_x(p), rows)) {
        val sums[MAX_SUMS];
        for (unsigned r = 0; r < rows; r++)
            product.w[r] = gemv_row_of_turn(p, &g, row, r, rows);
        q4k_q8_multiply(p, &lane, &product, sums);
        spread_sums spread = block_sums_next_spread(p, &reduction, sums);
        gemv_store_turn(p, &g, row, rows, vectors, spread);
    }
}

static void build_one_row(ptx *p, const instance *in)
{
    build_turns(p, in, ONE, 1, 2);
}

static void build_two_rows(ptx *p, const instance *in)
{
    build_turns(p, in, TWO, 1, 2);
}

static void build_batched(ptx *p, const instance *in)
{
    ptx_max_registers(p, gemv_registers(in));
    build_turns(p, in, TWO, (unsigned)gemv_vectors(in), 1);
}

static void build_row_a_block(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    q4k_q8_lane lane = q4k_q8_lane_new(p);
    q4k_q8_product product = product_new(in, &g, ONE, 1, 2);
    val row = named(p, "row", ctaid_x(p)), sum;
    product.w[0] = gemv_row(p, &g, row);
    q4k_q8_multiply(p, &lane, &product, &sum);
    gemv_store(p, &g, row, warp_sum(p, sum));
}

static const key keys[] = { KEY_K(Q4_K_VALUES), KEY_N, KEY_NUM_WARPS(3), KEY_DIMS, KEY_END };
static const key hw_keys[] = { KEY_K(Q4_K_VALUES), KEY_N, KEY_NUM_WARPS(4), KEY_DIMS, KEY_END };
static const key batched_keys[] = { KEY_K(Q4_K_VALUES), KEY_N,    KEY_ANY_M, KEY_ROWS,
                                    KEY_NUM_WARPS(4),   KEY_DIMS, KEY_END };
static const key inline_keys[] = { KEY_K(Q4_K_VALUES), KEY_N,    KEY_M(1), KEY_ROWS,
                                   KEY_NUM_WARPS(4),   KEY_DIMS, KEY_END };
static const key dp4a_keys[] = { KEY_K(Q4_K_VALUES), KEY_N, KEY_DIMS, KEY_END };
static const param params[] = { OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(Q8_1, x, "k", 4),
                                PARAM_END };
static const param batched_params[] = { OUT(F32, y, "m*n", 4), IN(Q4_K, w, "n*k", 16),
                                        IN(Q8_1, x, "m*k", 4), PARAM_END };

static const param inline_params[] = { OUT(F32, y, "m*n", 4), IN(Q4_K, w, "n*k", 16),
                                       IN(F32, x, "m*k", 16), PARAM_END };
static const param dp4a_params[] = { OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16),
                                     IN(F32, x, "k", 16), PARAM_END };

/* Those that quantize f32 activations stand behind the ones that don't, unless they are asked for:
 * they lose precision. */
enum { QUANTIZES = -10 };

const family mwv_dp4a_q4k_gemv = {
    .name = "mwv_dp4a_q4k_gemv",
    .summary = "Q4_K x q8_1 GEMV with dp4a, several warps a row, rows by grid stride",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_Q8_1,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*num_warps",
                .grid = { "min(n, sm_count*16)" },
                .shared = BLOCK_SUMS_SHARED,
                .registers = 64 },
    .build = build_one_row,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family hw_dp4a_q4k_gemv = {
    .name = "hw_dp4a_q4k_gemv",
    .summary = "Q4_K x q8_1 GEMV with dp4a, half a warp a super-block, two rows a turn",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_Q8_1,
    .preference = 10,
    .keys = hw_keys,
    .params = params,
    .launch = { .block = "32*num_warps",
                .grid = { "min(n, sm_count*16)" },
                .shared = "2*" BLOCK_SUMS_SHARED,
                .rows = "2",
                .registers = 64 },
    .build = build_two_rows,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family batched_hw_dp4a_q4k_gemv = {
    .name = "batched_hw_dp4a_q4k_gemv",
    .summary = "Q4_K x q8_1 with dp4a for m vectors, weights read once, two rows a turn",
    .computes = "Y[m,n] = X[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_Q8_1,
    .preference = 10,
    .keys = batched_keys,
    .params = batched_params,
    .launch = { .block = "32*num_warps",
                .grid = { "min(n, sm_count*16)", GEMV_GRID_Y },
                .shared = "2*vectors*" BLOCK_SUMS_SHARED,
                .sizes = gemv_sizes,
                .rows = "2",
                .registers = 128 },
    .check = check_any_rows,
    .build = build_batched,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family inline_q8_dp4a_q4k_gemv = {
    .name = "inline_q8_dp4a_q4k_gemv",
    .summary = "Q4_K x f32 with dp4a for m vectors, quantized inside, two rows a turn",
    .computes = "Y[m,n] = q8(X[m,k]) W[n,k]^T",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .quantizes = true,
    .preference = QUANTIZES + 1,
    .keys = inline_keys,
    .params = inline_params,
    .launch = { .block = "32*num_warps",
                .grid = { "min(n, sm_count*16)", GEMV_GRID_Y },
                .shared = "2*vectors*" BLOCK_SUMS_SHARED,
                .sizes = gemv_sizes,
                .rows = "2",
                .registers = 128 },
    .build = build_batched,
    .reference = ref_gemv,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

const family dp4a_q4k_gemv = {
    .name = "dp4a_q4k_gemv",
    .summary = "Q4_K x f32 GEMV with dp4a, quantized inside, one warp a row",
    .computes = "y[n] = W[n,k] q8(x[k])",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .quantizes = true,
    .preference = QUANTIZES,
    .keys = dp4a_keys,
    .params = dp4a_params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build_row_a_block,
    .reference = ref_gemv,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};
