/* g = Wg x and u = Wu x in one go, with Q4_K weights and f32 activations: the first half of a gated
 * feed-forward layer.
 *
 * Eight warps compute row r of both matrices; each lane loads its activations once, for both. How
 * lanes share a super-block is in blocks/q4k_f32.h.
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q4k_f32.h"
#include "gen/common/reduce.h"
#include "ref/reference.h"

enum { WARPS = 8, MATRICES = 2, LOADS_IN_FLIGHT = 2 };

static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    q4k_row *rows = context;
    q4k_activations x = q4k_load_activations(p, V(rows[0].values), offset[Q4K_AT_VALUES]);
    for (int i = 0; i < MATRICES; i++) {
        val word = ld_const(p, U32, rows[i].quants, offset[Q4K_AT_QUANTS]);
        q4k_header h = q4k_load_header(p, rows[i].header, offset[Q4K_AT_HEADER], rows[i].chunk);
        q4k_weights w = q4k_unpack(p, word, &h);
        assign(p, rows[i].acc, q4k_multiply(p, &w, &x, V(rows[i].acc)));
    }
}

static void build(ptx *p, const instance *in)
{
    gemv_operands g[MATRICES];
    g[0] = gemv_of(p, in, "g", "wg", "x");
    g[1] = gemv_of(p, in, "u", "wu", "x");
    val row = named(p, "row", ctaid_x(p)), sums[MATRICES];
    q4k_lane lane = q4k_lane_new(p);
    walk along = { .end = g[0].blocks, .unroll = LOADS_IN_FLIGHT };
    q4k_row rows[MATRICES]; /* their pointers move alike */
    for (int i = 0; i < MATRICES; i++)
        rows[i] = q4k_row_new(p, &lane, gemv_row(p, &g[i], row), g[i].x, warp_id(p), WARPS, &along);
    walk_items(p, &along, add_super_block, rows);

    for (int i = 0; i < MATRICES; i++)
        sums[i] = get(p, rows[i].acc);
    block_sum_each(p, sums, MATRICES, WARPS);
    for (int i = 0; i < MATRICES; i++)
        gemv_store(p, &g[i], row, sums[i]);
}

static const key keys[] = { KEY_K(Q4_K_VALUES), KEY_N, KEY_DIMS, KEY_END };
static const param params[] = { OUT(F32, g, "n", 4),     OUT(F32, u, "n", 4),
                                IN(Q4_K, wg, "n*k", 16), IN(Q4_K, wu, "n*k", 16),
                                IN(F32, x, "k", 16),     PARAM_END };

const family fused_gate_up_q4k_gemv = {
    .name = "fused_gate_up_q4k_gemv",
    .summary = "two Q4_K x f32 GEMVs of one vector, eight warps a row, x read once",
    .computes = "g[n] = Wg[n,k] x[k], u[n] = Wu[n,k] x[k]",
    .op = OP_GATE_UP,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .keys = keys,
    .params = params,
    .launch = { .block = "256", .grid = { "n" }, .shared = "2*4*8", .registers = 64 },
    .build = build,
    .reference = ref_gemv_pair,
    .tolerance = 3e-7,
};
