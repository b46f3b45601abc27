/* GEMVs with Q6_K weights. formats/q6k.c draws the block: nibbles, upper bits, scales and d, with
 * index = 128 h + 32 g + l for half h, group g of it, and l = 0 .. 31. A super-block is 2-byte
 * aligned, so a word is loaded as two halves.
 *
 * A lane has four neighbouring l of one half. With sixteen lanes per super-block it has all four
 * groups; with thirty-two, groups g and g + 2, which share a word of nibbles. The groups of a lane
 * differ by constants; lanes differ by a few offsets. A group's four weights have one scale and lie
 * in one block of thirty-two activations.
 *
 * y = W x with f32 activations:
 *
 *   q6k_gemv           one warp per row; a lane has eight weights of a super-block
 *   coalesced_q6k_gemv the same, but the warp loads the sixteen scales of a super-block at once; a
 *                      lane multiplies one of them by d and shuffles it to others
 *   mwv_q6k_gemv       several warps per row, half a warp per super-block, 16 weights per lane:
 *                      the upper bits, which four groups share, are loaded once
 *   batched_q6k_gemv   m rows of x, one warp per row of W: weights decoded once for up to 8 rows
 *
 * y = W q8 with q8_1 activations, by dp4a. With q8 the integers and d8 the scale of an activation
 * block, sixteen weights of a group contribute
 *
 *   d * d8 * scale * sum((q - 32) q8)
 *
 * q - 32 is signed, so the sums of the activations are not needed. A lane's four weights of a group
 * are one word of signed bytes: one dp4a, one scale, one block of activations. The scaled sum stays
 * below 2^24, where f32 holds every integer.
 *
 *   dp4a_q6k_gemv      a warp per super-block, two groups per lane
 *   hw_dp4a_q6k_gemv   half a warp per super-block, four groups per lane: upper bits loaded once
 */
#include "gen/common/bytes.h"
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "gen/seeds/seed.h"

extern const family coalesced_q6k_gemv, hw_dp4a_q6k_gemv;

enum {
    Q6K_SCALE_COUNT = 16,
    Q6K_GROUPS = 4,
    Q6K_GROUP_VALUES = 32,
    Q6K_GROUP_SCALES = 2,
    Q6K_LANE_VALUES = 4, /* neighbouring weights of a lane in each of its groups */
};

/* A lane's place in a row and in each of its super-blocks. */
typedef struct q6k_lane {
    unsigned group_step; /* distance of its groups: 1 or 2 */
    val super_block;     /* its first super-block */
    val group, l;        /* 4 h + g of its first group, and its first weight there */
    val low, high;       /* offsets of its bytes in a super-block */
    val scale;           /* offset of its first group's scale */
    val shift;           /* its first group's first bit in a byte of upper bits */
} q6k_lane;

enum { LANE_BYTES = 4, HALF_BYTES = 64, HALF_HIGH_BYTES = 32, NIBBLE_BYTES = 32 };

/* Returns a lane's place. lanes: lanes per super-block, 16 or 32; all threads of a block work on
 * different super-blocks where possible. */
static q6k_lane q6k_lane_new(ptx *p, unsigned lanes)
{
    bool whole_warp = lanes == 32;
    val number = whole_warp ? lane_id(p) : rem(p, lane_id(p), lanes);
    val half = named(p, "half", div(p, number, lanes / 2));
    val l = named(p, "l", mul(p, rem(p, number, 8), LANE_BYTES));
    q6k_lane lane = {
        .group_step = whole_warp ? 2 : 1,
        .super_block = warp_id(p),
        .group = mul(p, half, Q6K_GROUPS),
        .l = l,
        .low = mad(p, half, HALF_BYTES, l),
        .high = add(p, mad(p, half, HALF_HIGH_BYTES, l), Q6_K_HIGH_BITS),
        .shift = imm(U32, 0),
    };
    if (whole_warp) {
        val odd = named(p, "odd groups", rem(p, div(p, number, 8), 2));
        lane.group = add(p, lane.group, odd);
        lane.low = mul(p, number, LANE_BYTES);
        lane.shift = mul(p, odd, 2);
    } else {
        lane.super_block = mad(p, warp_id(p), 32 / lanes, div(p, lane_id(p), lanes));
    }
    lane.scale = add(p, mad(p, lane.group, Q6K_GROUP_SCALES, div(p, l, 16)), Q6_K_SCALES);
    return lane;
}

typedef struct q6k_quants {
    val low[2], high; /* four bytes each: nibbles of even and odd groups, upper bits */
} q6k_quants;
static q6k_quants q6k_load_quants(ptx *p, const q6k_lane *lane, var low_at, var high_at,
                                  int64_t offset)
{
    val low = V(low_at), high = V(high_at);
    q6k_quants q = { .low[0] = load_word_by_halves(p, low, offset) };
    if (lane->group_step == 1)
        q.low[1] = load_word_by_halves(p, low, offset + NIBBLE_BYTES);
    /* The first group's bits move to those of group 0. */
    q.high = shr(p, load_word_by_halves(p, high, offset), lane->shift);
    return q;
}

/* Units of a group's four q - 32 that are cheap to make: signed bytes of an S32 word, or floats. */
#define Q6K_BYTE_UNIT 0.25f
#define Q6K_F32_UNIT  64.0f

/* Returns the four q of a group, each from bit `first` on in its byte. Bit 7 is flipped; it is set
 * if first is 1, where the bit is free. */
static val in_bytes(ptx *p, const q6k_quants *q, unsigned group, int first)
{
    val low = q->low[group & 1];
    low = group < 2 ? shl(p, low, first) : shr(p, low, 4 - first);
    int up = first + 4 - 2 * (int)group;
    val high = up < 0 ? shr(p, q->high, -up) : shl(p, q->high, up);
    val flipped = lop3(p, low, IN_EACH_BYTE(0x0f << first), IN_EACH_BYTE(0x80), AND_XOR);
    return lop3(p, high, IN_EACH_BYTE(0x30 << first), flipped, AND_XOR);
}

enum { VALUE_BYTES = 4, GROUP_BYTES = Q6K_GROUP_VALUES * VALUE_BYTES };

typedef struct f32_lane {
    q6k_lane lane;
    var low, high, scales, d, values; /* coalesced: scales is the one it loads for all */
    val loader;                       /* coalesced: lane that loads its first group's scale */
    unsigned m;                       /* rows of x */
    val columns;                      /* columns of x */
    const val *offsets;               /* bytes from x to each row, see gemv_operands */
    var acc[MAX_VECTORS];
} f32_lane;

enum { LOW, HIGH, SCALES, D, VALUES };

/* Starts a lane's row. scale: offset of the first scale that it loads; NULL: its own. */
static f32_lane f32_lane_new(ptx *p, const instance *in, const gemv_operands *g, unsigned lanes,
                             const val *scale, walk *along)
{
    unsigned at_once = ptx_block(p) / lanes, bytes = at_once * Q6_K_BYTES;
    f32_lane s = { .lane = q6k_lane_new(p, lanes) };
    val first = s.lane.super_block, row = named(p, "row", ctaid_x(p));
    val super_block = mad_wide(p, first, Q6_K_BYTES, gemv_row(p, g, row));
    val value = mad(p, first, Q6_K_VALUES, mad(p, s.lane.group, Q6K_GROUP_VALUES, s.lane.l));

    along->first = first;
    along->end = g->blocks;
    along->stride = at_once;
    along->weights = Q6_K_VALUES / lanes;
    s.low = walk_along(p, along, add(p, super_block, convert(p, U64, s.lane.low)), bytes);
    s.high = walk_along(p, along, add(p, super_block, convert(p, U64, s.lane.high)), bytes);
    val scales = add(p, super_block, convert(p, U64, scale ? *scale : s.lane.scale));
    s.scales = walk_along(p, along, scales, bytes);
    s.d = walk_along(p, along, super_block, bytes);
    s.values = walk_along(p, along, mad_wide(p, value, VALUE_BYTES, g->x),
                          at_once * Q6_K_VALUES * VALUE_BYTES);
    s.m = in->shape.m > 1 ? (unsigned)gemv_vectors(in) : 1;
    s.columns = dim_k(p, in);
    s.offsets = g->offsets;
    for (unsigned i = 0; i < s.m; i++)
        s.acc[i] = var_f32(p, 0.0f);
    return s;
}

/* Adds the products of a group's four weights and x[i] to sums[i]; scale multiplies their sum. */
static void add_group(ptx *p, const f32_lane *s, const q6k_quants *q, unsigned g, int64_t offset,
                      val scale, val *sums)
{
    val weight[Q6K_LANE_VALUES];
    centred_fractions(p, in_bytes(p, q, g, 1), weight);
    for (unsigned row = 0; row < s->m; row++) {
        place at = place_of_vector(p, V(s->values), s->offsets, row, s->columns, VALUE_BYTES);
        val4 x = ld_const_v4(p, F32, at.base, at.offset + offset + g * GROUP_BYTES);
        val products = mul(p, weight[0], x.v[0]);
        for (unsigned i = 1; i < Q6K_LANE_VALUES; i++)
            products = fma(p, weight[i], x.v[i], products);
        sums[row] = fma(p, scale, products, sums[row]);
    }
}

static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    f32_lane *s = context;
    q6k_quants q = q6k_load_quants(p, &s->lane, s->low, s->high, offset[LOW]);
    val d = convert(p, F32, ld_const(p, F16, s->d, offset[D] + Q6_K_D));
    val sums[MAX_VECTORS];
    for (unsigned i = 0; i < s->m; i++)
        sums[i] = imm(F32, 0);
    for (unsigned g = 0; g < Q6K_GROUPS; g += s->lane.group_step) {
        val scale = ld_const(p, S8, s->scales, offset[SCALES] + g * Q6K_GROUP_SCALES);
        add_group(p, s, &q, g, offset[VALUES], convert(p, F32, scale), sums);
    }
    for (unsigned i = 0; i < s->m; i++)
        assign(p, s->acc[i], fma(p, d, sums[i], s->acc[i]));
}

static void add_super_block_coalesced(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    f32_lane *s = context;
    q6k_quants q = q6k_load_quants(p, &s->lane, s->low, s->high, offset[LOW]);
    val d = convert(p, F32, ld_const(p, F16, s->d, offset[D] + Q6_K_D));
    val own = ld_const(p, S8, s->scales, offset[SCALES]);
    val scaled = named(p, "d * scale", mul(p, d, convert(p, F32, own)));
    val sum = get(p, s->acc[0]);
    for (unsigned g = 0; g < Q6K_GROUPS; g += s->lane.group_step) {
        val scale = shuffle_from(p, scaled, add(p, s->loader, g * Q6K_GROUP_SCALES));
        add_group(p, s, &q, g, offset[VALUES], scale, &sum);
    }
    assign(p, s->acc[0], sum);
}

/* A lane of a batch unrolls nothing: ptxas hoists all loads of x of a super-block, which are m * 8
 * registers per lane, or m * 16 if they fit. */
static void build_f32(ptx *p, const instance *in)
{
    enum { MOST_OF_HALF_WARPS = 4 };
    bool batched = family_key(in->family, "m") != NULL, several = in->num_warps > 0;
    bool half_warps = several || (batched && gemv_vectors(in) <= MOST_OF_HALF_WARPS);
    bool coalesced = in->family == &coalesced_q6k_gemv;
    unsigned lanes = half_warps ? 16 : 32, unroll = batched ? 1 : several ? 2 : 4;
    gemv_operands g = gemv_parameters(p, in);
    walk along = { .unroll = unroll };
    val scale;
    if (coalesced)
        scale = add(p, rem(p, lane_id(p), Q6K_SCALE_COUNT), Q6_K_SCALES);
    f32_lane s = f32_lane_new(p, in, &g, lanes, coalesced ? &scale : NULL, &along);
    if (coalesced)
        s.loader = named(p, "loader", sub(p, s.lane.scale, Q6_K_SCALES));
    walk_items(p, &along, coalesced ? add_super_block_coalesced : add_super_block, &s);
    val sums[MAX_VECTORS];
    for (unsigned i = 0; i < s.m; i++)
        sums[i] = get(p, s.acc[i]);
    spread_sums spread = block_sum_spread(p, sums, s.m, ptx_block(p) / 32);
    spread.sum = mul(p, spread.sum, Q6K_F32_UNIT);
    gemv_store_rows(p, &g, ctaid_x(p), 1, s.m, spread);
}

/* Activation blocks per super-block: one for each group. */
enum { Q8_BLOCKS = Q6_K_VALUES / Q8_1_VALUES, Q8_SUPER_BLOCK = Q8_BLOCKS * Q8_1_BYTES };

typedef struct q8_lane_state {
    const q6k_lane *lane;
    var low, high, scale, d; /* pointers into the row */
    var block, q8;           /* its first group's activations: block, and integers */
    var acc;
} q8_lane_state;

enum { Q8_LOW, Q8_HIGH, SCALE, Q8_D, BLOCK, Q8 };

static void add_q8_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    q8_lane_state *s = context;
    q6k_quants q = q6k_load_quants(p, s->lane, s->low, s->high, offset[Q8_LOW]);
    val sum = imm(F32, 0);
    for (unsigned g = 0; g < Q6K_GROUPS; g += s->lane->group_step) {
        int64_t block = g * Q8_1_BYTES;
        val q8 = ld_const(p, S32, s->q8, offset[Q8] + block + Q8_1_QUANTS);
        val d8 = convert(p, F32, ld_const(p, F16, s->block, offset[BLOCK] + block + Q8_1_D));
        val scale = ld_const(p, S8, s->scale, offset[SCALE] + g * Q6K_GROUP_SCALES);
        val product = dp4a(p, as(p, S32, in_bytes(p, &q, g, 2)), q8, imm(S32, 0));
        sum = fma(p, d8, convert(p, F32, mul(p, product, scale)), sum);
    }
    val d = convert(p, F32, ld_const(p, F16, s->d, offset[Q8_D]));
    assign(p, s->acc, fma(p, d, sum, s->acc));
}

/* Returns a pointer into a row that moves by super-blocks. */
static var walk_row(ptx *p, walk *along, val row, val offset)
{
    return walk_along(p, along, add(p, row, convert(p, U64, offset)), along->stride * Q6_K_BYTES);
}

static void build_dp4a(ptx *p, const instance *in)
{
    bool half_warps = in->family == &hw_dp4a_q6k_gemv;
    unsigned lanes = half_warps ? 16 : 32, unroll = half_warps ? 2 : 4;
    unsigned warps = (unsigned)in->num_warps, stride = warps * (32 / lanes);
    gemv_operands g = gemv_parameters(p, in);
    q6k_lane lane = q6k_lane_new(p, lanes);
    val super_block = mul(p, lane.super_block, Q6_K_BYTES);
    val low = add(p, super_block, lane.low), high = add(p, super_block, lane.high);
    val scale = add(p, super_block, lane.scale), d = add(p, super_block, Q6_K_D);
    val number = mad(p, lane.super_block, Q8_BLOCKS, lane.group);
    val block = mad_wide(p, number, Q8_1_BYTES, g.x), q8 = add(p, block, convert(p, U64, lane.l));
    block_sums reduction = block_sums_new(p, warps, 1);
    PTX_FOR (p, row, ctaid_x(p), g.n, nctaid_x(p)) {
        walk along = {
            .first = lane.super_block,
            .end = g.blocks,
            .stride = stride,
            .unroll = unroll,
            .weights = Q6_K_VALUES / lanes,
        };
        val w = gemv_row(p, &g, row);
        q8_lane_state s = { .lane = &lane };
        s.low = walk_row(p, &along, w, low);
        s.high = walk_row(p, &along, w, high);
        s.scale = walk_row(p, &along, w, scale);
        s.d = walk_row(p, &along, w, d);
        s.block = walk_along(p, &along, block, stride * Q8_SUPER_BLOCK);
        s.q8 = walk_along(p, &along, q8, stride * Q8_SUPER_BLOCK);
        s.acc = var_f32(p, 0.0f);
        walk_items(p, &along, add_q8_super_block, &s);
        val sum = get(p, s.acc);
        block_sums_next(p, &reduction, &sum);
        gemv_store(p, &g, row, mul(p, sum, Q6K_BYTE_UNIT));
    }
}

#define F32_GEMV(id, said) SEED(id, said, Q6_K, F32), OF_ONE_VECTOR, SEED_PARAMS(Q6_K, 2, F32, 16)
/* Two warps: sixteen blocks fill the registers of an SM, and a row of 4096 is two iterations of a
 * lane's loop, so the block's reduction is a smaller share. */
#define DP4A_GEMV(id, said)                                                   \
    SEED(id, said, Q6_K, Q8_1), OF_ONE_VECTOR, SEED_PARAMS(Q6_K, 2, Q8_1, 4), \
        SEED_KEYS(Q6_K, KEY_NUM_WARPS(2), KEY_DIMS), STRIDING_BLOCKS(.shared = BLOCK_SUMS_SHARED)

const family q6k_gemv = {
    F32_GEMV(q6k_gemv, "plain Q6_K x f32 GEMV: one warp per row"),
    PLAIN_KEYS(Q6_K),
    WARP_A_ROW,
    .build = build_f32,
};

const family coalesced_q6k_gemv = {
    F32_GEMV(coalesced_q6k_gemv,
             "Q6_K x f32 GEMV, one warp per row, scales loaded once per warp and shuffled"),
    SEED_KEYS(Q6_K, KEY_DIMS),
    WARP_A_ROW,
    .preference = 1,
    .build = build_f32,
};

const family mwv_q6k_gemv = {
    F32_GEMV(mwv_q6k_gemv, "Q6_K x f32 GEMV, several warps per row"),
    SEED_KEYS(Q6_K, KEY_NUM_WARPS(4), KEY_DIMS),
    BLOCK_A_ROW,
    .preference = 3,
    .build = build_f32,
};

const family batched_q6k_gemv = {
    SEED(batched_q6k_gemv,
         "Q6_K x f32 for m vectors, weights read once per 8, one warp per row of W", Q6_K, F32),
    OF_VECTORS,
    SEED_KEYS(Q6_K,
              KEY_NUMBER("m", "rows of X and Y", shape.m, 1, 65535, .def = 1,
                         .counted_with = KEY_FIELD(rows_mode), .tag = "m"),
              KEY_ROWS, KEY_DIMS),
    PARAMS_OF_VECTORS(Q6_K, 2, F32, 16),
    .launch = { .block = "32",
                .grid = { "n", GEMV_GRID_Y },
                .sizes = gemv_sizes,
                .registers = 128 },
    .preference = 2,
    .check = check_any_rows,
    .build = build_f32,
};

const family dp4a_q6k_gemv = {
    DP4A_GEMV(dp4a_q6k_gemv,
              "Q6_K x q8_1 GEMV with dp4a, a warp per super-block, grid stride over rows"),
    .build = build_dp4a,
};

const family hw_dp4a_q6k_gemv = {
    DP4A_GEMV(hw_dp4a_q6k_gemv,
              "Q6_K x q8_1 GEMV with dp4a, half a warp per super-block, grid stride over rows"),
    .preference = 1,
    .build = build_dp4a,
};
