/* y = W q8 with Q6_K weights and q8_1 activations: integer products with dp4a.
 *
 * With q8 the integers and d8 the scale of an activation block, a group's run of sixteen weights is
 *
 *   d * d8 * scale * sum((q - 32) q8)
 *
 * q - 32 is signed, so the activations' sums are not needed. A lane's four weights of a group are
 * one word of signed bytes, one dp4a, one scale and one block of activations; the scaled sum stays
 * below 2^24, where f32 holds every integer.
 *
 * dp4a_q6k_gemv: a warp a super-block, a lane two groups. hw_dp4a_q6k_gemv: half a warp a
 * super-block, a lane all four groups, so that their common upper bits are loaded once.
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q6k.h"
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "ref/reference.h"

/* Activation blocks of a super-block; a group has one of its own. */
enum { Q8_BLOCKS = Q6_K_VALUES / Q8_1_VALUES, Q8_SUPER_BLOCK = Q8_BLOCKS * Q8_1_BYTES };

/* A lane's place in every row. */
typedef struct lane_start {
    q6k_lane lane;
    val low, high, scale, d; /* offsets in a row of what it reads there, */
    val block, q8;           /* and pointers: to the activation block of its first group, and to
                                its four integers there */
} lane_start;

/* What a lane carries along a row. */
typedef struct lane_state {
    const q6k_lane *lane;
    var low, high, scale, d, block, q8;
    var acc;
} lane_state;

enum { LOW, HIGH, SCALE, D, BLOCK, Q8 };

static lane_start lane_start_new(ptx *p, unsigned lanes, val x)
{
    lane_start at = { .lane = q6k_lane_new(p, lanes) };
    val super_block = mul(p, at.lane.super_block, Q6_K_BYTES);
    at.low = add(p, super_block, at.lane.low);
    at.high = add(p, super_block, at.lane.high);
    at.scale = add(p, super_block, at.lane.scale);
    at.d = add(p, super_block, Q6_K_D);
    val block = mad(p, at.lane.super_block, Q8_BLOCKS, at.lane.group);
    at.block = mad_wide(p, block, Q8_1_BYTES, x);
    at.q8 = add(p, at.block, convert(p, U64, at.lane.l));
    return at;
}

static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    q6k_quants q = q6k_load_quants(p, s->lane, s->low, s->high, offset[LOW]);
    val sum = imm(F32, 0);
    for (unsigned g = 0; g < Q6K_GROUPS; g += s->lane->group_step) {
        int64_t block = g * Q8_1_BYTES;
        val q8 = ld_const(p, S32, s->q8, offset[Q8] + block + Q8_1_QUANTS);
        val d8 = convert(p, F32, ld_const(p, F16, s->block, offset[BLOCK] + block + Q8_1_D));
        val scale = ld_const(p, S8, s->scale, offset[SCALE] + g * Q6K_GROUP_SCALES);
        val product = dp4a(p, q6k_as_bytes(p, &q, g), q8, imm(S32, 0));
        sum = fma(p, d8, convert(p, F32, mul(p, product, scale)), sum);
    }
    val d = convert(p, F32, ld_const(p, F16, s->d, offset[D]));
    assign(p, s->acc, fma(p, d, sum, s->acc));
}

static var walk_row(ptx *p, walk *along, val row, val offset)
{
    return walk_along(p, along, add(p, row, convert(p, U64, offset)), along->stride * Q6_K_BYTES);
}

static void build_with(ptx *p, const instance *in, unsigned lanes, unsigned unroll)
{
    unsigned warps = (unsigned)in->num_warps, stride = warps * (32 / lanes);
    gemv_operands g = gemv_parameters(p, in);
    lane_start at = lane_start_new(p, lanes, g.x);
    block_sums reduction = block_sums_new(p, warps);
    PTX_FOR (p, row, ctaid_x(p), g.n, nctaid_x(p)) {
        walk along = {
            .first = at.lane.super_block,
            .end = g.blocks,
            .stride = stride,
            .unroll = unroll,
            .weights = Q6_K_VALUES / lanes,
        };
        val w = gemv_row(p, &g, row);
        lane_state s = { .lane = &at.lane };
        s.low = walk_row(p, &along, w, at.low);
        s.high = walk_row(p, &along, w, at.high);
        s.scale = walk_row(p, &along, w, at.scale);
        s.d = walk_row(p, &along, w, at.d);
        s.block = walk_along(p, &along, at.block, stride * Q8_SUPER_BLOCK);
        s.q8 = walk_along(p, &along, at.q8, stride * Q8_SUPER_BLOCK);
        s.acc = var_f32(p, 0.0f);
        walk_items(p, &along, add_super_block, &s);
        val sum = block_sums_next(p, &reduction, get(p, s.acc));
        gemv_store(p, &g, row, mul(p, sum, Q6K_BYTE_UNIT));
    }
}

static void build_full_warp(ptx *p, const instance *in)
{
    build_with(p, in, 32, 4);
}

static void build_half_warp(ptx *p, const instance *in)
{
    build_with(p, in, 16, 2);
}

/* Two warps: sixteen blocks of them fill the registers of an SM, and a row of 4096 is two turns of
 * a lane's loop, so that the sum over the block weighs less. */
static const key keys[] = { KEY_K(Q6_K_VALUES), KEY_N, KEY_NUM_WARPS(2), KEY_DIMS, KEY_END };
static const param params[] = { OUT(F32, y, "n", 4), IN(Q6_K, w, "n*k", 2), IN(Q8_1, x, "k", 4),
                                PARAM_END };

const family dp4a_q6k_gemv = {
    .name = "dp4a_q6k_gemv",
    .summary = "Q6_K x q8_1 GEMV with dp4a, a warp a super-block, rows by grid stride",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q6_K,
    .activations = FORMAT_Q8_1,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*num_warps",
                .grid = { "min(n, sm_count*16)" },
                .shared = BLOCK_SUMS_SHARED,
                .registers = 64 },
    .build = build_full_warp,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family hw_dp4a_q6k_gemv = {
    .name = "hw_dp4a_q6k_gemv",
    .summary = "Q6_K x q8_1 GEMV with dp4a, half a warp a super-block, rows by grid stride",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q6_K,
    .activations = FORMAT_Q8_1,
    .preference = 1,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*num_warps",
                .grid = { "min(n, sm_count*16)" },
                .shared = BLOCK_SUMS_SHARED,
                .registers = 64 },
    .build = build_half_warp,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};
