/* The loop of every GEMV along a row, and the loop that stages activations in shared memory. */
#pragma once

#include "ptx/ptx.h"

enum { MAX_CURSORS = 6 };

/* A strided loop: a thread processes items first, first + stride, ... below end, where first <
 * stride differs by thread. Pointers advance with the items. An iteration processes unroll items at
 * constant offsets from the pointers, with their loads in flight together. A second loop processes
 * the remaining items one at a time. */
typedef struct walk {
    val first, end;
    unsigned stride, unroll;
    unsigned weights; /* weights per lane and item, in all rows; 0 if the loop reads no weights */
    struct {
        var pointer;
        int64_t bytes; /* bytes between two items of a thread */
    } cursors[MAX_CURSORS];
    unsigned cursor_count;
} walk;

/* Adds a pointer that starts at the thread's first item, and returns it. Cursors are numbered from
 * 0 in the order of the calls. */
var walk_along(ptx *p, walk *w, val start, int64_t bytes);

/* Advances all pointers by a number of items, for callers that write the loop themselves. */
void walk_move(ptx *p, const walk *w, unsigned items);
/* Generates the loops. item generates the code for one item, at offset[c] bytes from cursor c. */
void walk_items(ptx *p, const walk *w,
                void (*item)(ptx *p, void *context, const int64_t offset[MAX_CURSORS]),
                void *context);

/* Copies count f32 values from x to the shared array tile; count is a multiple of 4. Every thread
 * must call it, and the caller adds the barrier before the tile is read. */
void stage_values(ptx *p, val x, val tile, val count);
