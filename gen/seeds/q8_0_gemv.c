/* y = W x with q8_0 weights and f32 activations, one warp a row.
 *
 *   offset  0  f16  d          weight = d * q
 *           2  32 x s8         q
 *
 * A block has 34 bytes, so that every other one is only 2-byte aligned. Eight lanes take a block,
 * four neighbouring weights each, as two 16-bit loads: an unaligned word out of two aligned ones
 * would be two loads as well, and a funnel shift besides. A quarter of the warp then reads 128
 * neighbouring bytes of x.
 */
#include "gen/common/bytes.h"
#include "gen/products/gemv.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "ref/reference.h"

enum {
    LANE_VALUES = 4,
    BLOCK_LANES = Q8_0_VALUES / LANE_VALUES,
    WARP_BLOCKS = 32 / BLOCK_LANES,
    VALUE_BYTES = 4,
    BLOCKS_IN_FLIGHT = 8,
};

typedef struct lane_state {
    var block, quants, values; /* the lane's pointers: to d, to its four weights, to their x */
    var acc;
} lane_state;

enum { AT_BLOCK, AT_QUANTS, AT_VALUES };

static void add_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    val d = convert(p, F32, ld_const(p, F16, s->block, offset[AT_BLOCK]));
    val4 x = ld_const_v4(p, F32, s->values, offset[AT_VALUES]);
    val halves[2];
    for (unsigned i = 0; i < 2; i++)
        halves[i] = ld_const(p, U16, s->quants, offset[AT_QUANTS] + 2 * i);
    val sum = mul(p, signed_byte_as_f32(p, halves[0], 0), x.v[0]);
    for (unsigned i = 1; i < LANE_VALUES; i++)
        sum = fma(p, signed_byte_as_f32(p, halves[i / 2], i % 2), x.v[i], sum);
    assign(p, s->acc, fma(p, d, sum, s->acc));
}

static void build(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p));
    val lane = lane_id(p);
    val first = named(p, "block", div(p, lane, BLOCK_LANES));
    walk along = {
        .first = first,
        .end = g.blocks,
        .stride = WARP_BLOCKS,
        .unroll = BLOCKS_IN_FLIGHT,
        .weights = LANE_VALUES,
    };
    val block = mad_wide(p, first, Q8_0_BYTES, gemv_row(p, &g, row));
    val value = mul(p, rem(p, lane, BLOCK_LANES), LANE_VALUES);
    val quants = add(p, add(p, block, convert(p, U64, value)), Q8_0_QUANTS);
    lane_state s;
    s.block = walk_along(p, &along, block, WARP_BLOCKS * Q8_0_BYTES);
    s.quants = walk_along(p, &along, quants, WARP_BLOCKS * Q8_0_BYTES);
    s.values = walk_along(p, &along, mad_wide(p, lane, LANE_VALUES * VALUE_BYTES, g.x),
                          WARP_BLOCKS * Q8_0_VALUES * VALUE_BYTES);
    s.acc = var_f32(p, 0.0f);
    walk_items(p, &along, add_block, &s);
    gemv_store(p, &g, row, warp_sum(p, get(p, s.acc)));
}

static const key keys[] = {
    KEY_K(Q8_0_VALUES), KEY_N, KEY_VARIANT, KEY_PRECISION, KEY_DIMS, KEY_END
};
static const param params[] = { OUT(F32, y, "n", 4), IN(Q8_0, w, "n*k", 2), IN(F32, x, "k", 16),
                                PARAM_END };

const family q8_0_gemv = {
    .name = "q8_0_gemv",
    .summary = "q8_0 x f32 GEMV, one warp a row",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q8_0,
    .activations = FORMAT_F32,
    .keys = keys,
    .params = params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};
