/* Walking along a row: the loop that every GEMV has, and the one that stages activations. */
#ifndef PTXGEN_GEN_COMMON_WALK_H
#define PTXGEN_GEN_COMMON_WALK_H

#include "ptx/ptx.h"

enum { MAX_CURSORS = 6 };

/* Threads take items first, first + stride, … below end, where first, below stride, differs between
 * them; pointers move along with them. unroll items are taken in one turn of the loop, with
 * constant offsets from the pointers and their loads in flight together, as long as there are
 * unroll for every thread; then one by one. */
typedef struct walk {
    val first, end;
    unsigned stride, unroll;
    unsigned weights; /* of a lane in an item, in all rows; 0: not a loop over weights */
    struct {
        var pointer;
        int64_t bytes; /* from one of a thread's items to its next */
    } cursors[MAX_CURSORS];
    unsigned cursor_count;
} walk;

/* Adds a pointer that starts at a thread's first item and returns it: cursor 0, 1, … in the order
 * of the calls. */
var walk_along(ptx *p, walk *w, val start, int64_t bytes);

/* Generates the loops, or moves the pointers on by a number of items for who makes the loop. item
 * makes the code for one item: cursor c stands offset[c] bytes before it. */
void walk_move(ptx *p, const walk *w, unsigned items);
void walk_items(ptx *p, const walk *w,
                void (*item)(ptx *p, void *context, const int64_t offset[MAX_CURSORS]),
                void *context);

/* Copies count f32 values, a multiple of 4, from x to the shared array tile. Every thread must call
 * it; a barrier before the tile is read is left to the caller. */
void stage_values(ptx *p, val x, val tile, val count);

#endif
