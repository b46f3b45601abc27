/* y = W x with Q6_K weights and f32 activations.
 *
 * q6k_gemv and coalesced_q6k_gemv: one warp a row; it takes one super-block at a time, a lane eight
 * weights (two groups of four). The plain one loads its two scales itself. In the coalesced one the
 * warp loads the sixteen scales of the super-block in one go, a lane converts and multiplies by d
 * one of them, and gets from other lanes those that it needs.
 *
 * mwv_q6k_gemv: several warps a row, half a warp a super-block, a lane sixteen weights, so that the
 * upper bits, which four groups share, are loaded once.
 *
 * batched_q6k_gemv: the same for m rows of x, with one warp a row of W: a weight is loaded and
 * decoded once and multiplied by up to 8 rows.
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q6k.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "ref/reference.h"

enum { VALUE_BYTES = 4, GROUP_BYTES = Q6K_GROUP_VALUES * VALUE_BYTES };

/* What a lane carries from super-block to super-block. */
typedef struct lane_state {
    q6k_lane lane;
    var low, high, scales, d, values; /* the lane's pointers; coalesced: scales to the one that it
                                         loads for all */
    val loader;                       /* coalesced: the lane that loads its first group's scale */
    unsigned m;                       /* rows of x */
    val columns;                      /* of x */
    const val *behind;                /* and where its rows are: see gemv_operands */
    var acc[MAX_VECTORS];
} lane_state;

enum { LOW, HIGH, SCALES, D, VALUES };

/* scale is the offset of the first scale that a lane loads; NULL: its own. */
static lane_state lane_state_new(ptx *p, const instance *in, const gemv_operands *g, unsigned lanes,
                                 const val *scale, walk *along)
{
    unsigned at_once = ptx_block(p) / lanes, bytes = at_once * Q6_K_BYTES;
    lane_state s = { .lane = q6k_lane_new(p, lanes) };
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
    s.behind = g->behind;
    for (unsigned i = 0; i < s.m; i++)
        s.acc[i] = var_f32(p, 0.0f);
    return s;
}

/* sums[i] + scale * (the four weights of a group, over scale, times x[i]). */
static void add_group(ptx *p, const lane_state *s, const q6k_quants *q, unsigned g, int64_t offset,
                      val scale, val *sums)
{
    val weight[Q6K_LANE_VALUES];
    q6k_as_f32(p, q, g, weight);
    for (unsigned row = 0; row < s->m; row++) {
        place at = place_of_vector(p, V(s->values), s->behind, row, s->columns, VALUE_BYTES);
        val4 x = ld_const_v4(p, F32, at.base, at.offset + offset + g * GROUP_BYTES);
        val products = mul(p, weight[0], x.v[0]);
        for (unsigned i = 1; i < Q6K_LANE_VALUES; i++)
            products = fma(p, weight[i], x.v[i], products);
        sums[row] = fma(p, scale, products, sums[row]);
    }
}

static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
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
    lane_state *s = context;
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

static void store(ptx *p, const gemv_operands *g, const lane_state *s)
{
    unsigned warps = ptx_block(p) / 32;
    val sums[MAX_VECTORS];
    for (unsigned i = 0; i < s->m; i++)
        sums[i] = get(p, s->acc[i]);
    spread_sums spread = block_sum_spread(p, sums, s->m, warps);
    spread.sum = mul(p, spread.sum, Q6K_F32_UNIT);
    gemv_store_turn(p, g, ctaid_x(p), 1, s->m, spread);
}

static void build_plain(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    walk along = { .unroll = 4 };
    lane_state s = lane_state_new(p, in, &g, 32, NULL, &along);
    walk_items(p, &along, add_super_block, &s);
    store(p, &g, &s);
}

static void build_coalesced(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    walk along = { .unroll = 4 };
    val scale = add(p, rem(p, lane_id(p), Q6K_SCALE_COUNT), Q6_K_SCALES);
    lane_state s = lane_state_new(p, in, &g, 32, &scale, &along);
    s.loader = named(p, "loader", sub(p, s.lane.scale, Q6_K_SCALES));
    walk_items(p, &along, add_super_block_coalesced, &s);
    store(p, &g, &s);
}

static void build_multi_warp(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    walk along = { .unroll = 2 };
    lane_state s = lane_state_new(p, in, &g, 16, NULL, &along);
    walk_items(p, &along, add_super_block, &s);
    store(p, &g, &s);
}

/* ptxas loads ahead all values of x of a super-block, so that their number decides registers: m * 8
 * a lane, or m * 16 as long as that fits well. */
static void build_batched(ptx *p, const instance *in)
{
    enum { MOST_OF_HALF_WARPS = 4 };
    gemv_operands g = gemv_parameters(p, in);
    walk along = { .unroll = 1 };
    unsigned lanes = gemv_vectors(in) <= MOST_OF_HALF_WARPS ? 16 : 32;
    lane_state s = lane_state_new(p, in, &g, lanes, NULL, &along);
    walk_items(p, &along, add_super_block, &s);
    store(p, &g, &s);
}

static const param params[] = { OUT(F32, y, "n", 4), IN(Q6_K, w, "n*k", 2), IN(F32, x, "k", 16),
                                PARAM_END };
static const param batched_params[] = { OUT(F32, y, "m*n", 4), IN(Q6_K, w, "n*k", 2),
                                        IN(F32, x, "m*k", 16), PARAM_END };
static const key plain_keys[] = { KEY_K(Q6_K_VALUES), KEY_N,    KEY_VARIANT,
                                  KEY_PRECISION,      KEY_DIMS, KEY_END };
static const key one_warp_keys[] = { KEY_K(Q6_K_VALUES), KEY_N, KEY_DIMS, KEY_END };
static const key multi_warp_keys[] = { KEY_K(Q6_K_VALUES), KEY_N, KEY_NUM_WARPS(4), KEY_DIMS,
                                       KEY_END };
static const key batched_keys[] = {
    KEY_K(Q6_K_VALUES),
    KEY_N,
    { .name = "m",
      .summary = "rows of X and Y",
      .field = KEY_FIELD(shape.m),
      .min = 1,
      .max = 65535,
      .def = 1,
      .counted_with = KEY_FIELD(rows_mode),
      .tag = "m" },
    KEY_ROWS,
    KEY_DIMS,
    KEY_END,
};

const family q6k_gemv = {
    .name = "q6k_gemv",
    .summary = "Q6_K x f32 GEMV, one warp a row: the plain one",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q6_K,
    .activations = FORMAT_F32,
    .keys = plain_keys,
    .params = params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build_plain,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family coalesced_q6k_gemv = {
    .name = "coalesced_q6k_gemv",
    .summary = "Q6_K x f32 GEMV, one warp a row, scales loaded once a warp and shuffled",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q6_K,
    .activations = FORMAT_F32,
    .preference = 1,
    .keys = one_warp_keys,
    .params = params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build_coalesced,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family mwv_q6k_gemv = {
    .name = "mwv_q6k_gemv",
    .summary = "Q6_K x f32 GEMV, several warps a row",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q6_K,
    .activations = FORMAT_F32,
    .preference = 3,
    .keys = multi_warp_keys,
    .params = params,
    .launch = { .block = "32*num_warps",
                .grid = { "n" },
                .shared = BLOCK_SUM_SHARED,
                .registers = 64 },
    .build = build_multi_warp,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family batched_q6k_gemv = {
    .name = "batched_q6k_gemv",
    .summary = "Q6_K x f32 for m vectors, weights read once for 8, one warp a row of W",
    .computes = "Y[m,n] = X[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .weights = FORMAT_Q6_K,
    .activations = FORMAT_F32,
    .preference = 2,
    .keys = batched_keys,
    .params = batched_params,
    .launch = { .block = "32",
                .grid = { "n", GEMV_GRID_Y },
                .sizes = gemv_sizes,
                .registers = 128 },
    .check = check_any_rows,
    .build = build_batched,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};
