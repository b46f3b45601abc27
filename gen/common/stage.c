#include "gen/common/stage.h"

#include "gen/common/walk.h"

enum { PIECE = 4, PIECE_BYTES = 4 * PIECE, LOADS_IN_FLIGHT = 4 };

typedef struct staging {
    var from, to;
} staging;

static void stage_piece(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    staging *s = context;
    val4 values = ld_const_v4(p, F32, s->from, offset[0]);
    st_shared_v4(p, F32, s->to, offset[1], values);
}

void stage_values(ptx *p, val x, val tile, val count)
{
    val thread = tid_x(p);
    walk along = { .first = thread,
                   .end = div(p, count, PIECE),
                   .stride = ptx_block(p),
                   .unroll = LOADS_IN_FLIGHT };
    staging s;
    s.from = walk_along(p, &along, mad_wide(p, thread, PIECE_BYTES, x),
                        along.stride * (int64_t)PIECE_BYTES);
    s.to = walk_along(p, &along, mad(p, thread, PIECE_BYTES, tile),
                      along.stride * (int64_t)PIECE_BYTES);
    walk_items(p, &along, stage_piece, &s);
}
