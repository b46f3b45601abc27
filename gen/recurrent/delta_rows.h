/* The rows of a step that a block of delta_net goes through, all of one sequence, and the inputs of
 * their convolution: those of the step, and the last ones before it, in a ring.
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

/* Returns true if there are more rows than a group. */
bool delta_has_many_rows(const instance *in);

/* Finds the rows, except x. Ends a block whose row continues the previous one. */
void delta_find_rows(ptx *p, delta_rows *r);

/* Return the address of a row in x; u of a channel and row. Of few rows the latter stores the input
 * to the ring where keeps holds. */
val delta_row_of_x(ptx *p, const delta_rows *r, val number);
val delta_convolved(ptx *p, const delta_rows *r, val number, val channel, val keeps);

/* Keeps a channel's inputs of the last rows, as many as the ring has room for. */
void delta_keep_last_inputs(ptx *p, const delta_rows *r, val channel);

#endif
