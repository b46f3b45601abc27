/* The choice of blocks of a trial's grid that run: all if that is little work. Else the first, the
 * last, those at and just after the last row if blocks stride over a grid smaller than the output,
 * and some at random. Blocks with the same x and y that finish a result together run together.
 */
#ifndef PTXGEN_CHECK_BLOCKS_H
#define PTXGEN_CHECK_BLOCKS_H

#include "check/trial.h"

/* The blocks of a grid to run, ascending; count 0: all of them. They run in that order or from the
 * last to the first. */
typedef struct block_choice {
    uint64_t *blocks;
    size_t count;
    bool descending;
} block_choice;

/* Which blocks of a large grid run: several, or one. The last block would be the first to overrun a
 * buffer. */
typedef enum selection { SAMPLED_BLOCKS, FIRST_BLOCK, LAST_BLOCK } selection;
block_choice blocks_choose(arena *a, const trial *t, selection which);

/* Returns true if a block runs. */
bool blocks_chosen(const block_choice *c, uint64_t block);

uint64_t blocks_of_grid(const trial *t);

/* Returns how many blocks finish a result together, in a kernel whose blocks count each other. */
uint64_t blocks_partners(const trial *t);

/* Returns the block that has the last element of the first output. */
uint64_t blocks_last_of_output(const trial *t);

/* Returns how many rows of W a block computes at once. */
uint64_t blocks_rows_a_turn(const instance *in);

/* Returns the index in x of the block that computes a row of Y if a grid has that many blocks, or
 * -1 if that is not known. */
int64_t blocks_block_of_row(const instance *in, int64_t row, int64_t across);

/* Estimates the thread-instructions of a trial. */
uint64_t blocks_work(const trial *t);

/* Returns true if an operation on a shape, without its cache reads, is little work: it then gets
 * more kinds of inputs. */
bool blocks_are_few(operation op, const problem_shape *s);

#endif
