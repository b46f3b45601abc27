/* Two GEMVs of one vector with Q4_K weights and q8_1 activations: K and V of attention, gate and up
 * of a gated feed-forward layer with its SwiGLU.
 *
 * A block computes row r of both matrices in a turn, so that each lane loads its activations and
 * adds up their integers once, for both: see blocks/q4k_q8.h.
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q4k_q8.h"
#include "gen/common/reduce.h"
#include "ref/reference.h"

enum { MATRICES = 2 };

/* What becomes of the two sums of a row. */
typedef void store(ptx *p, const gemv_operands g[MATRICES], val row, const val sums[MATRICES]);

static void for_all_rows(ptx *p, const gemv_operands g[MATRICES], store *keep)
{
    q4k_q8_lane lane = q4k_q8_lane_new(p);
    q4k_q8_product product = { .rows = MATRICES,
                               .vectors = 1,
                               .x = g[0].x,
                               .quantized = true,
                               .blocks = g[0].blocks,
                               .unroll = 2 };
    block_sums reduction = block_sums_new_each(p, ptx_block(p) / 32, MATRICES);
    PTX_FOR (p, row, ctaid_x(p), g[0].n, nctaid_x(p)) {
        val sums[MATRICES];
        for (int i = 0; i < MATRICES; i++)
            product.w[i] = gemv_row(p, &g[i], row);
        q4k_q8_multiply(p, &lane, &product, sums);
        block_sums_next_each(p, &reduction, sums);
        keep(p, g, row, sums);
    }
}

static void store_both(ptx *p, const gemv_operands g[MATRICES], val row, const val sums[MATRICES])
{
    for (int i = 0; i < MATRICES; i++)
        gemv_store(p, &g[i], row, sums[i]);
}

static void build_kv(ptx *p, const instance *in)
{
    gemv_operands g[MATRICES];
    g[0] = gemv_of(p, in, "keys", "wk", "x");
    g[1] = gemv_of(p, in, "values", "wv", "x");
    for_all_rows(p, g, store_both);
}

static void store_swiglu(ptx *p, const gemv_operands g[MATRICES], val row, const val sums[MATRICES])
{
    gemv_store(p, &g[0], row, gated(p, ACTIVATION_SILU, sums[0], sums[1]));
}

static void build_swiglu(ptx *p, const instance *in)
{
    gemv_operands g[MATRICES];
    g[0] = gemv_of(p, in, "y", "wg", "x");
    g[1] = gemv_of(p, in, "y", "wu", "x");
    for_all_rows(p, g, store_swiglu);
}

static const key keys[] = { KEY_K(Q4_K_VALUES), KEY_N, KEY_NUM_WARPS(4), KEY_DIMS, KEY_END };
static const param kv_params[] = { OUT(F32, keys, "n", 4),  OUT(F32, values, "n", 4),
                                   IN(Q4_K, wk, "n*k", 16), IN(Q4_K, wv, "n*k", 16),
                                   IN(Q8_1, x, "k", 4),     PARAM_END };
static const param swiglu_params[] = { OUT(F32, y, "n", 4), IN(Q4_K, wg, "n*k", 16),
                                       IN(Q4_K, wu, "n*k", 16), IN(Q8_1, x, "k", 4), PARAM_END };

#define LAUNCH                                                      \
    {                                                               \
        .block = "32*num_warps", .grid = { "min(n, sm_count*16)" }, \
        .shared = "2*" BLOCK_SUMS_SHARED, .registers = 64           \
    }

const family fused_kv_hw_dp4a_q4k_gemv = {
    .name = "fused_kv_hw_dp4a_q4k_gemv",
    .summary = "K and V projections: two Q4_K x q8_1 GEMVs of one vector, x read once",
    .computes = "keys[n] = Wk[n,k] x[k], values[n] = Wv[n,k] x[k]",
    .op = OP_KV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_Q8_1,
    .keys = keys,
    .params = kv_params,
    .launch = LAUNCH,
    .build = build_kv,
    .reference = ref_gemv_pair,
    .tolerance = 3e-7,
};

const family fused_gate_up_swiglu_hw_dp4a_q4k_gemv = {
    .name = "fused_gate_up_swiglu_hw_dp4a_q4k_gemv",
    .summary = "gate, up and SwiGLU: two Q4_K x q8_1 GEMVs of one vector, x read once",
    .computes = "y[n] = silu(Wg[n,k] x[k]) * (Wu[n,k] x[k])",
    .op = OP_GATE_UP_SWIGLU,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_Q8_1,
    .keys = keys,
    .params = swiglu_params,
    .launch = LAUNCH,
    .build = build_swiglu,
    .reference = ref_gate_up_swiglu,
    .tolerance = 3e-7,
};
