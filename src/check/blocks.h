/* Which blocks of a trial's grid are run: all where that is little work, else those that tell most:
 * the first, the last, those whose turn is at the last row and just behind it when blocks stride
 * over a grid smaller than the output, and some by the seed. Blocks that finish a common result are
 * those of one x and y, and run together.
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

/* Of a grid that is large: the blocks that tell most, or one. The last would be the first to leave
 * a buffer at its end. */
typedef enum selection { SAMPLED_BLOCKS, FIRST_BLOCK, LAST_BLOCK } selection;
block_choice blocks_choose(arena *a, const trial *t, selection which);

/* Whether a block is run. */
bool blocks_chosen(const block_choice *c, uint64_t block);

uint64_t blocks_of_grid(const trial *t);

/* Blocks that finish a result together: of a kernel whose blocks count each other. */
uint64_t blocks_partners(const trial *t);

/* Returns the block that has the last element of the first output. */
uint64_t blocks_last_of_output(const trial *t);

/* Rows of W that a block takes at once. */
uint64_t blocks_rows_a_turn(const instance *in);

/* Returns the index in x of the block that computes a row of Y if a grid has that many blocks, or
 * -1 if that is not known. */
int64_t blocks_block_of_row(const instance *in, int64_t row, int64_t across);

/* Thread-instructions that a trial takes, about. */
uint64_t blocks_work(const trial *t);

/* Whether an operation on a shape, but for what it reads of caches, is little enough for inputs
 * that decide little: of a large one some blocks alone are run, for as long as all of a small
 * one's.
 */
bool blocks_are_few(operation op, const problem_shape *s);

#endif
