/* Y = X W^T with Q4_K weights and f32 activations for m vectors, in f32 throughout.
 *
 * A warp takes a super-block of two rows, as in blocks/q4k_f32.h: the weights are decoded once for
 * all vectors, the activations loaded once for both rows. The warps of a block take super-blocks in
 * turn, the blocks of the grid stride over the rows.
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q4k_f32.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "ref/reference.h"

enum { ROWS = 2 };

/* What a lane carries from super-block to super-block. */
typedef struct lane_state {
    const q4k_lane *lane;
    unsigned vectors;
    val blocks;        /* super-blocks of a vector */
    const val *behind; /* of each vector: see gemv_operands */
    var values;
    var header[ROWS], quants[ROWS];
    var acc[ROWS * MAX_VECTORS];
} lane_state;

/* Its cursors: the activations', then the weights', which move alike. */
enum { ACTIVATIONS = 0, WEIGHTS = 1 };

static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    q4k_weights w[ROWS];
    for (int r = 0; r < ROWS; r++) {
        val word = ld_const(p, U32, s->quants[r], offset[WEIGHTS]);
        q4k_header h = q4k_load_header(p, s->header[r], offset[WEIGHTS], &s->lane->chunk);
        w[r] = q4k_unpack(p, word, &h);
    }
    for (unsigned v = 0; v < s->vectors; v++) {
        place at = place_of_vector(p, V(s->values), s->behind, v, s->blocks, Q4K_F32_BYTES);
        q4k_activations x = q4k_load_activations(p, at.base, at.offset + offset[ACTIVATIONS]);
        for (unsigned r = 0; r < ROWS; r++) {
            var acc = s->acc[ROWS * v + r];
            assign(p, acc, q4k_multiply(p, &w[r], &x, V(acc)));
        }
    }
}

/* The lane's part of the products of rows row and row + 1 with all vectors. */
static void multiply(ptx *p, const gemv_operands *g, const q4k_lane *lane, val row,
                     unsigned vectors, val sums[MAX_SUMS])
{
    unsigned warps = ptx_block(p) / 32;
    val first = warp_id(p);
    walk along = { .first = first, .end = g->blocks, .stride = warps };
    along.unroll = vectors == 1 ? 2 : 1;
    along.weights = ROWS * Q4_K_VALUES / 32;
    lane_state s = { .lane = lane, .vectors = vectors, .blocks = g->blocks, .behind = g->behind };
    val values = mad_wide(p, mad(p, first, Q4_K_VALUES, lane->value), 4, g->x);
    s.values = walk_along(p, &along, values, warps * Q4K_F32_BYTES);
    for (unsigned r = 0; r < ROWS; r++) {
        val header = mad_wide(p, first, Q4_K_BYTES, gemv_row_of_turn(p, g, row, r, ROWS));
        val quants = add(p, header, convert(p, U64, lane->quants));
        s.header[r] = walk_along(p, &along, header, warps * Q4_K_BYTES);
        s.quants[r] = walk_along(p, &along, quants, warps * Q4_K_BYTES);
    }
    for (unsigned i = 0; i < ROWS * vectors; i++)
        s.acc[i] = var_f32(p, 0.0f);
    walk_items(p, &along, add_super_block, &s);
    for (unsigned i = 0; i < ROWS * vectors; i++)
        sums[i] = get(p, s.acc[i]);
}

static void build(ptx *p, const instance *in)
{
    unsigned vectors = (unsigned)in->shape.m;
    ptx_max_registers(p, gemv_registers(in));
    gemv_operands g = gemv_parameters(p, in);
    q4k_lane lane = q4k_lane_new(p);
    block_sums reduction = block_sums_new_each(p, ptx_block(p) / 32, ROWS * vectors);
    PTX_FOR (p, row, mul(p, ctaid_x(p), ROWS), g.n, mul(p, nctaid_x(p), ROWS)) {
        val sums[MAX_SUMS];
        multiply(p, &g, &lane, row, vectors, sums);
        spread_sums spread = block_sums_next_spread(p, &reduction, sums);
        gemv_store_turn(p, &g, row, ROWS, vectors, spread);
    }
}

static const key keys[] = { KEY_K(Q4_K_VALUES), KEY_N,    KEY_M(1), KEY_ROWS,
                            KEY_NUM_WARPS(4),   KEY_DIMS, KEY_END };
static const param params[] = { OUT(F32, y, "m*n", 4), IN(Q4_K, w, "n*k", 16),
                                IN(F32, x, "m*k", 16), PARAM_END };

const family fused_fp32_q4k_gemv = {
    .name = "fused_fp32_q4k_gemv",
    .summary = "Q4_K x f32 for m vectors, f32 throughout, two rows a turn",
    .computes = "Y[m,n] = X[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .preference = 9,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*num_warps",
                .grid = { "min(n, sm_count*16)", GEMV_GRID_Y },
                .shared = "2*vectors*" BLOCK_SUMS_SHARED,
                .sizes = gemv_sizes,
                .rows = "2",
                .registers = 128 },
    .build = build,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};
