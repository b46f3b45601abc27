/* y = W x in f32, one warp a row.
 *
 * A lane takes four neighbouring columns of every 128, so that a warp reads 512 bytes in one go.
 */
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "gen/seeds/seed.h"

enum { LANE_COLUMNS = 4, WARP_COLUMNS = 32 * LANE_COLUMNS, COLUMN_BYTES = 4, LOADS_IN_FLIGHT = 4 };

typedef struct lane_state {
    var w, x, acc;
} lane_state;

static void add_columns(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    val4 w = ld_const_v4(p, F32, s->w, offset[0]), x = ld_const_v4(p, F32, s->x, offset[1]);
    for (int i = 0; i < LANE_COLUMNS; i++)
        assign(p, s->acc, fma(p, w.v[i], x.v[i], s->acc));
}

static void build(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p));
    val column = named(p, "column", mul(p, lane_id(p), LANE_COLUMNS));
    walk along = {
        .first = column,
        .end = g.blocks,
        .stride = WARP_COLUMNS,
        .unroll = LOADS_IN_FLIGHT,
        .weights = LANE_COLUMNS,
    };
    val w = mad_wide(p, column, COLUMN_BYTES, gemv_row(p, &g, row));
    val x = mad_wide(p, column, COLUMN_BYTES, g.x);
    lane_state s;
    s.w = walk_along(p, &along, w, WARP_COLUMNS * COLUMN_BYTES);
    s.x = walk_along(p, &along, x, WARP_COLUMNS * COLUMN_BYTES);
    s.acc = var_f32(p, 0.0f);
    walk_items(p, &along, add_columns, &s);
    gemv_store(p, &g, row, warp_sum(p, get(p, s.acc)));
}

const family f32_gemv = {
    SEED(f32_gemv, "f32 GEMV, one warp a row", F32, F32),
    GEMV_COMPUTES("y[n] = W[n,k] x[k]"),
    .keys = (const key[]){ KEY_K(32), KEY_N, KEY_DIMS, KEY_END },
    PARAMS(F32, 16, F32, 16),
    WARP_A_ROW,
    .build = build,
    .tolerance = 5e-7,
};
