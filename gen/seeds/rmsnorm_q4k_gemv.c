/* y = W (rmsnorm(x) * gamma) with Q4_K weights and f32 activations, where
 * rmsnorm(x) = x / sqrt(mean(x^2) + epsilon).
 *
 * Eight warps compute a row. They first put x * gamma into shared memory and, on the way, add up
 * the squares of x; one barrier serves both. What is left of the norm is the same factor for every
 * column, so that it multiplies the row's sum, once, when the squares of all warps are there.
 */
#include "gen/common/norm.h"
#include "gen/products/gemv.h"
#include "gen/seeds/q4k_f32.h"
#include "gen/common/reduce.h"
#include "ref/reference.h"

enum {
    WARPS = 8,
    LOADS_IN_FLIGHT = 2,
    PIECE = 4, /* columns that a thread stages at once */
    STAGED_AT_ONCE = 32 * WARPS * PIECE,
    VALUE_BYTES = 4,
};

typedef struct staging {
    var x, gamma, staged; /* pointers */
    var squares;
} staging;

static void stage_piece(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    staging *s = context;
    val4 x = ld_const_v4(p, F32, s->x, offset[0]), gamma = ld_const_v4(p, F32, s->gamma, offset[1]);
    val4 product;
    for (int i = 0; i < PIECE; i++) {
        product.v[i] = mul(p, x.v[i], gamma.v[i]);
        assign(p, s->squares, fma(p, x.v[i], x.v[i], s->squares));
    }
    st_shared_v4(p, F32, s->staged, offset[2], product);
}

/* Fills staged with x * gamma, and squares with each warp's sum of squares. */
static void stage(ptx *p, const gemv_operands *g, val columns, val staged, val squares)
{
    val column = mul(p, tid_x(p), PIECE), bytes = mul(p, column, VALUE_BYTES);
    walk along = {
        .first = column, .end = columns, .stride = STAGED_AT_ONCE, .unroll = LOADS_IN_FLIGHT
    };
    staging s;
    s.x = walk_along(p, &along, add(p, g->x, convert(p, U64, bytes)), STAGED_AT_ONCE * VALUE_BYTES);
    s.gamma = walk_along(p, &along, add(p, parameter(p, "gamma"), convert(p, U64, bytes)),
                         STAGED_AT_ONCE * VALUE_BYTES);
    s.staged = walk_along(p, &along, add(p, staged, bytes), STAGED_AT_ONCE * VALUE_BYTES);
    s.squares = var_f32(p, 0.0f);
    walk_items(p, &along, stage_piece, &s);
    val sum = warp_sum(p, get(p, s.squares));
    PTX_IF (p, eq(p, lane_id(p), 0))
        st_shared(p, F32, mad(p, warp_id(p), VALUE_BYTES, squares), 0, sum);
    barrier(p);
}

/* 1 / sqrt(mean of the squares + epsilon). */
static val factor_of_squares(ptx *p, const instance *in, val columns, val squares)
{
    val sum = imm(F32, 0);
    for (int i = 0; i < WARPS; i += 4) {
        val4 part = ld_shared_v4(p, F32, squares, i * VALUE_BYTES);
        for (int j = 0; j < 4; j++)
            sum = add(p, sum, part.v[j]);
    }
    val mean = div(p, sum, convert(p, F32, columns));
    return norm_factor(p, in, mean);
}

static void build(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p)), columns = dim_k(p, in);
    val staged = shared_dynamic(p, "staged", F32);
    val squares = shared_array(p, "squares", F32, WARPS);
    stage(p, &g, columns, staged, squares);

    q4k_lane lane = q4k_lane_new(p);
    walk along = { .end = g.blocks, .unroll = LOADS_IN_FLIGHT };
    q4k_row way = q4k_row_new(p, &lane, gemv_row(p, &g, row), staged, warp_id(p), WARPS, &along);
    walk_items(p, &along, q4k_add_super_block, &way);
    val sum = block_sum(p, get(p, way.acc), WARPS);
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, F32, mad_wide(p, row, VALUE_BYTES, g.y), 0,
                  mul(p, sum, factor_of_squares(p, in, columns, squares)));
}

static const key keys[] = { KEY_K(Q4_K_VALUES), KEY_N, KEY_EPSILON, KEY_DIMS, KEY_END };
static const param params[] = { OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(F32, x, "k", 16),
                                IN(F32, gamma, "k", 16), PARAM_END };

const family fused_rmsnorm_q4k_gemv = {
    .name = "fused_rmsnorm_q4k_gemv",
    .summary = "RMS norm and Q4_K x f32 GEMV, eight warps a row, x in shared memory",
    .computes = "y[n] = W[n,k] (rmsnorm(x[k]) * gamma[k])",
    .op = OP_RMSNORM_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .keys = keys,
    .params = params,
    .launch = { .block = "256",
                .grid = { "n" },
                .shared = "2*4*8",
                .dynamic_shared = "k*4",
                .registers = 64 },
    .build = build,
    .reference = ref_rmsnorm_gemv,
    .tolerance = 1.7e-7,
};
