/* The rows of a step that a block of delta_net processes, all of one sequence, and the inputs of
 * their convolution: the step's inputs and the previous ones, in a ring. */
#ifndef PTXGEN_GEN_RECURRENT_DELTA_ROWS_H
#define PTXGEN_GEN_RECURRENT_DELTA_ROWS_H

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { DELTA_GROUP_ROWS = MAX_VECTORS }; /* rows in shared memory at once */

typedef struct delta_rows {
    const instance *in;
    unsigned channels, columns; /* channels of the convolution; columns of x */
    val row, count;             /* the block's first row, and its number of rows */
    val position;               /* position of the first row */
    val x, state, inputs;       /* first row, and its sequence's state and ring */
    val word;                   /* a word of shared memory, if m exceeds a group */
} delta_rows;

/* Returns true if m exceeds the rows of a group. */
bool delta_has_many_rows(const instance *in);

/* Fills in all fields but x. Ends the block if its row continues the previous one. */
void delta_find_rows(ptx *p, delta_rows *r);

val delta_row_of_x(ptx *p, const delta_rows *r, val number);
/* Returns u of a channel and row. If m does not exceed a group, it also stores the input to the
 * ring where keeps holds. */
val delta_convolved(ptx *p, const delta_rows *r, val number, val channel, val keeps);

/* Stores a channel's inputs of the last rows to the ring, at most as many as it holds. */
void delta_keep_last_inputs(ptx *p, const delta_rows *r, val channel);

#endif
