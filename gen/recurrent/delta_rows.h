/* The rows of a step that a block of delta_net goes through, one sequence's one behind the other,
 * and the inputs of their convolution: those of the step, and the last ones ahead of it in a ring.
 */
#ifndef PTXGEN_GEN_RECURRENT_DELTA_ROWS_H
#define PTXGEN_GEN_RECURRENT_DELTA_ROWS_H

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { DELTA_GROUP_ROWS = MAX_VECTORS }; /* that are in shared memory at once */

typedef struct delta_rows {
    const instance *in;
    unsigned channels, columns; /* of the convolution, and of a row of x */
    val row, count;             /* the block's first, and how many */
    val position;               /* of the first */
    val x, state, inputs;       /* the first row; its sequence's state and ring */
    val word;                   /* of more rows than a group: a word of shared memory */
} delta_rows;

/* Whether there are more than a group. */
bool delta_has_many_rows(const instance *in);

/* Finds the rows, but for x. A block whose row goes on with the one ahead of it ends. */
void delta_find_rows(ptx *p, delta_rows *r);

/* Row number of the block's in x. */
val delta_row_of_x(ptx *p, const delta_rows *r, val number);

/* u of a channel and row; of few rows, where the block is to, it keeps the input. */
val delta_convolved(ptx *p, const delta_rows *r, val number, val channel, val keeps);

/* Keeps a channel's inputs of the last rows, as many as the ring has room for. */
void delta_keep_last_inputs(ptx *p, const delta_rows *r, val channel);

#endif
