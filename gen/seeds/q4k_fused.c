/* Q4_K weights and f32 activations, as in q4k_f32.h, for more than one product:
 *
 *   fused_gate_up    g = Wg x and u = Wu x, the first half of a gated feed-forward layer. Eight
 *                    warps compute row r of both matrices; a lane loads its activations once.
 *   fused_rmsnorm    y = W (rmsnorm(x) * gamma), where rmsnorm(x) = x / sqrt(mean(x^2) + epsilon).
 *                    Eight warps compute a row. They stage x * gamma in shared memory and sum the
 *                    squares of x; one barrier serves both. The norm's factor is the same for all
 *                    columns, so the row's sum is multiplied by it once.
 *   fused_fp32       Y = X W^T for m vectors. A warp has a super-block of two rows: weights are
 *                    decoded once for all vectors, activations loaded once for both rows. Warps
 *                    stride over super-blocks, blocks over rows.
 */
#include "gen/common/reduce.h"
#include "gen/seeds/q4k_f32.h"
#include "gen/seeds/seed.h"

enum { WARPS = 8, LOADS_IN_FLIGHT = 2, VALUE_BYTES = 4, MATRICES = 2 };

static void add_super_block_of_both(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
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

static void build_gate_up(ptx *p, const instance *in)
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
    walk_items(p, &along, add_super_block_of_both, rows);

    for (int i = 0; i < MATRICES; i++)
        sums[i] = get(p, rows[i].acc);
    block_sum_each(p, sums, MATRICES, WARPS);
    for (int i = 0; i < MATRICES; i++)
        gemv_store(p, &g[i], row, sums[i]);
}

enum {
    PIECE = 4, /* columns that a thread stages at once */
    STAGED_AT_ONCE = 32 * WARPS * PIECE,
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
static void stage_normed(ptx *p, const gemv_operands *g, val columns, val staged, val squares)
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

static void build_rmsnorm(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p)), columns = dim_k(p, in);
    val staged = shared_dynamic(p, "staged", F32);
    val squares = shared_array(p, "squares", F32, WARPS);
    stage_normed(p, &g, columns, staged, squares);

    q4k_lane lane = q4k_lane_new(p);
    walk along = { .end = g.blocks, .unroll = LOADS_IN_FLIGHT };
    q4k_row way = q4k_row_new(p, &lane, gemv_row(p, &g, row), staged, warp_id(p), WARPS, &along);
    walk_items(p, &along, q4k_add_super_block, &way);
    val sum = block_sum(p, get(p, way.acc), WARPS);
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        val all = imm(F32, 0);
        for (int i = 0; i < WARPS; i += 4) {
            val4 part = ld_shared_v4(p, F32, squares, i * VALUE_BYTES);
            for (int j = 0; j < 4; j++)
                all = add(p, all, part.v[j]);
        }
        val factor = norm_factor(p, in, div(p, all, convert(p, F32, columns)));
        st_global(p, F32, mad_wide(p, row, VALUE_BYTES, g.y), 0, mul(p, sum, factor));
    }
}

enum { ROWS = 2 };

typedef struct lane_state {
    const q4k_lane *lane;
    unsigned vectors;
    val blocks;         /* super-blocks per vector */
    const val *offsets; /* bytes from x to each vector, see gemv_operands */
    var values;
    var header[ROWS], quants[ROWS];
    var acc[ROWS * MAX_VECTORS];
} lane_state;

/* Indices of its cursors: the activations', then the weights', which move alike. */
enum { ACTIVATIONS = 0, WEIGHTS = 1 };

static void add_super_block_of_rows(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    q4k_weights w[ROWS];
    for (int r = 0; r < ROWS; r++) {
        val word = ld_const(p, U32, s->quants[r], offset[WEIGHTS]);
        q4k_header h = q4k_load_header(p, s->header[r], offset[WEIGHTS], &s->lane->chunk);
        w[r] = q4k_unpack(p, word, &h);
    }
    for (unsigned v = 0; v < s->vectors; v++) {
        place at = place_of_vector(p, V(s->values), s->offsets, v, s->blocks, Q4K_F32_BYTES);
        q4k_activations x = q4k_load_activations(p, at.base, at.offset + offset[ACTIVATIONS]);
        for (unsigned r = 0; r < ROWS; r++) {
            var acc = s->acc[ROWS * v + r];
            assign(p, acc, q4k_multiply(p, &w[r], &x, V(acc)));
        }
    }
}

static void build_vectors(ptx *p, const instance *in)
{
    unsigned vectors = (unsigned)in->shape.m, warps = ptx_block(p) / 32, count = ROWS * vectors;
    ptx_max_registers(p, gemv_registers(in));
    gemv_operands g = gemv_parameters(p, in);
    q4k_lane lane = q4k_lane_new(p);
    block_sums reduction = block_sums_new(p, warps, count);
    PTX_FOR (p, row, mul(p, ctaid_x(p), ROWS), g.n, mul(p, nctaid_x(p), ROWS)) {
        val first = warp_id(p), sums[MAX_SUMS];
        walk along = { .first = first,
                       .end = g.blocks,
                       .stride = warps,
                       .unroll = vectors == 1 ? 2 : 1,
                       .weights = ROWS * Q4_K_VALUES / 32 };
        lane_state s = {
            .lane = &lane, .vectors = vectors, .blocks = g.blocks, .offsets = g.offsets
        };
        val values = mad_wide(p, mad(p, first, Q4_K_VALUES, lane.value), 4, g.x);
        s.values = walk_along(p, &along, values, warps * Q4K_F32_BYTES);
        for (unsigned r = 0; r < ROWS; r++) {
            val header = mad_wide(p, first, Q4_K_BYTES, gemv_loop_row(p, &g, row, r, ROWS));
            val quants = add(p, header, convert(p, U64, lane.quants));
            s.header[r] = walk_along(p, &along, header, warps * Q4_K_BYTES);
            s.quants[r] = walk_along(p, &along, quants, warps * Q4_K_BYTES);
        }
        for (unsigned i = 0; i < count; i++)
            s.acc[i] = var_f32(p, 0.0f);
        walk_items(p, &along, add_super_block_of_rows, &s);
        for (unsigned i = 0; i < count; i++)
            sums[i] = get(p, s.acc[i]);
        spread_sums spread = block_sums_next_spread(p, &reduction, sums);
        gemv_store_rows(p, &g, row, ROWS, vectors, spread);
    }
}

const family fused_gate_up_q4k_gemv = {
    SEED(fused_gate_up_q4k_gemv,
         "two Q4_K x f32 GEMVs of one vector, eight warps per row, x read once", Q4_K, F32),
    .computes = "g[n] = Wg[n,k] x[k], u[n] = Wu[n,k] x[k]",
    .op = OP_GATE_UP,
    SEED_KEYS(Q4_K, KEY_DIMS),
    .params = PARAMS(OUT(F32, g, "n", 4), OUT(F32, u, "n", 4), IN(Q4_K, wg, "n*k", 16),
                     IN(Q4_K, wu, "n*k", 16), IN(F32, x, "k", 16)),
    .launch = { .block = "256", .grid = { "n" }, .shared = "2*4*8", .registers = 64 },
    .build = build_gate_up,
    .reference = ref_gemv_pair,
    .tolerance = 3e-7,
};

const family fused_rmsnorm_q4k_gemv = {
    SEED(fused_rmsnorm_q4k_gemv,
         "RMS norm and Q4_K x f32 GEMV, eight warps per row, x in shared memory", Q4_K, F32),
    .computes = "y[n] = W[n,k] (rmsnorm(x[k]) * gamma[k])",
    .op = OP_RMSNORM_GEMV,
    SEED_KEYS(Q4_K, KEY_EPSILON, KEY_DIMS),
    .params = PARAMS(OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(F32, x, "k", 16),
                     IN(F32, gamma, "k", 16)),
    .launch = { .block = "256",
                .grid = { "n" },
                .shared = "2*4*8",
                .dynamic_shared = "k*4",
                .registers = 64 },
    .build = build_rmsnorm,
    .reference = ref_rmsnorm_gemv,
    .tolerance = 1.7e-7,
};

const family fused_fp32_q4k_gemv = {
    SEED(fused_fp32_q4k_gemv, "Q4_K x f32 for m vectors, f32 throughout, two rows at a time", Q4_K,
         F32),
    OF_VECTORS,
    SEED_KEYS(Q4_K, KEY_M(1), KEY_ROWS, KEY_NUM_WARPS(4), KEY_DIMS),
    PARAMS_OF_VECTORS(Q4_K, 16, F32, 16),
    STRIDING_BLOCKS_OF_VECTORS,
    .preference = 9,
    .build = build_vectors,
};
