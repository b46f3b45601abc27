/* y = W x with Q4_K weights and f32 activations, x in shared memory: a block stages x once for
 * outputs_per_block rows, and each of its warps computes one of them. How lanes share a super-block
 * is in blocks/q4k_f32.h.
 *
 * The plain one stages all of x, the chunked one 32 super-blocks of it at a time. Warps past the
 * last row stage their share and meet the others at the barriers.
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q4k_f32.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "ref/reference.h"

enum { SUPER_BLOCKS_IN_FLIGHT = 4, CHUNK_SUPER_BLOCKS = 32 };

typedef struct output {
    q4k_lane lane;
    val row;    /* of the warp */
    val exists; /* whether there is such a row */
} output;

static output output_new(ptx *p, const gemv_operands *g)
{
    val row = named(p, "row", mad(p, ctaid_x(p), ptx_block(p) / 32, warp_id(p)));
    return (output){ .lane = q4k_lane_new(p), .row = row, .exists = lt(p, row, g->n) };
}

/* The lane's sum over count super-blocks of its row from number first on, with their activations in
 * the tile. */
static val multiply(ptx *p, const gemv_operands *g, const output *o, val first, val count, val tile)
{
    walk along = { .end = count, .unroll = SUPER_BLOCKS_IN_FLIGHT };
    val w = mad_wide(p, first, Q4_K_BYTES, gemv_row(p, g, o->row));
    q4k_row way = q4k_row_new(p, &o->lane, w, tile, imm(U32, 0), 1, &along);
    walk_items(p, &along, q4k_add_super_block, &way);
    return get(p, way.acc);
}

static void store(ptx *p, const gemv_operands *g, const output *o, val of_lane)
{
    val sum = warp_sum(p, of_lane);
    PTX_IF (p, eq(p, lane_id(p), 0))
        st_global(p, F32, mad_wide(p, o->row, 4, g->y), 0, sum);
}

static void build_tiled(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    output o = output_new(p, &g);
    val tile = shared_dynamic(p, "tile", F32);
    stage_values(p, g.x, tile, dim_k(p, in));
    barrier(p);
    PTX_IF (p, o.exists) {
        val sum = multiply(p, &g, &o, imm(U32, 0), g.blocks, tile);
        store(p, &g, &o, sum);
    }
}

static void build_chunked(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    output o = output_new(p, &g);
    val tile = shared_array(p, "tile", F32, CHUNK_SUPER_BLOCKS * Q4_K_VALUES);
    var sum = var_f32(p, 0.0f);
    PTX_FOR (p, chunk, 0, g.blocks, CHUNK_SUPER_BLOCKS) {
        val count = min(p, sub(p, g.blocks, chunk), CHUNK_SUPER_BLOCKS);
        barrier(p); /* until no warp reads the previous chunk any more */
        stage_values(p, mad_wide(p, chunk, Q4K_F32_BYTES, g.x), tile, mul(p, count, Q4_K_VALUES));
        barrier(p);
        PTX_IF (p, o.exists) {
            val part = multiply(p, &g, &o, chunk, count, tile);
            assign(p, sum, add(p, sum, part));
        }
    }
    PTX_IF (p, o.exists)
        store(p, &g, &o, get(p, sum));
}

static const param params[] = { OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(F32, x, "k", 16),
                                PARAM_END };
static const key keys[] = {
    KEY_K(Q4_K_VALUES),
    KEY_N,
    { .name = "outputs_per_block",
      .summary = "rows that share a staged x, a warp each",
      .field = KEY_FIELD(outputs_per_block),
      .min = 1,
      .max = 32,
      .def = 4,
      .tag = "o" },
    KEY_DIMS,
    KEY_END,
};

const family tiled_q4k_gemv = {
    .name = "tiled_q4k_gemv",
    .summary = "Q4_K x f32 GEMV, all of x in shared memory for several rows",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .preference = 5,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*outputs_per_block",
                .grid = { "ceil_div(n, outputs_per_block)" },
                .dynamic_shared = "k*4",
                .roomier = "chunked_tiled_q4k_gemv",
                .registers = 64 },
    .build = build_tiled,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family chunked_tiled_q4k_gemv = {
    .name = "chunked_tiled_q4k_gemv",
    .summary = "Q4_K x f32 GEMV, x in shared memory for several rows, 8192 values at a time",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .preference = 4,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*outputs_per_block",
                .grid = { "ceil_div(n, outputs_per_block)" },
                .shared = "32*256*4",
                .registers = 64 },
    .build = build_chunked,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};
