#include "gen/common/walk.h"

var walk_along(ptx *p, walk *w, val start, int64_t bytes)
{
    var pointer = var_like(p, start);
    if (w->cursor_count == MAX_CURSORS) {
        ptx_fail(p, "a walk has more than %d cursors", MAX_CURSORS);
        return pointer;
    }
    w->cursors[w->cursor_count].pointer = pointer;
    w->cursors[w->cursor_count].bytes = bytes;
    w->cursor_count++;
    return pointer;
}

void walk_move(ptx *p, const walk *w, unsigned items)
{
    for (unsigned c = 0; c < w->cursor_count; c++)
        assign(p, w->cursors[c].pointer,
               add(p, w->cursors[c].pointer, items * w->cursors[c].bytes));
}

static void take(ptx *p, const walk *w, unsigned items,
                 void (*item)(ptx *p, void *context, const int64_t offset[MAX_CURSORS]),
                 void *context)
{
    for (unsigned i = 0; i < items; i++) {
        int64_t offset[MAX_CURSORS] = { 0 };
        for (unsigned c = 0; c < w->cursor_count; c++)
            offset[c] = i * w->cursors[c].bytes;
        item(p, context, offset);
    }
    walk_move(p, w, items);
}

void walk_items(ptx *p, const walk *w,
                void (*item)(ptx *p, void *context, const int64_t offset[MAX_CURSORS]),
                void *context)
{
    bool nothing_left = w->unroll * w->stride == 1 ||
                        (w->end.kind == VAL_IMM && w->end.bits % (w->stride * w->unroll) == 0);
    val rest_first = w->first;
    if (w->unroll > 1 || nothing_left) {
        val turns = div(p, w->end, w->stride * w->unroll);
        if (w->weights)
            ptx_loop_work(p, w->unroll * w->weights, "weights");
        PTX_FOR (p, turn, 0, turns, 1)
            take(p, w, w->unroll, item, context);
        rest_first = add(p, w->first, mul(p, turns, w->stride * w->unroll));
    }
    if (nothing_left)
        return;
    if (w->weights)
        ptx_loop_work(p, w->weights, "weights");
    PTX_FOR (p, rest, rest_first, w->end, w->stride)
        take(p, w, 1, item, context);
}

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
