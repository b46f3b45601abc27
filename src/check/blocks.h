/* Selects the blocks of a trial's grid that run: all blocks if the work is small. Otherwise:
 * - the first and the last block
 * - if blocks stride over the rows, the block with the last row and its successor
 * - some random blocks
 *
 * Blocks with the same x and y that finish a result together also run together. */
#pragma once

#include "check/trial.h"

/* Blocks of a grid to run, ascending; count = 0: all. descending: they run from last to first. */
typedef struct block_choice {
    uint64_t *blocks;
    size_t count;
    bool descending;
} block_choice;

/* Blocks of a large grid that run. LAST_BLOCK is the first to overrun a buffer. */
typedef enum selection { SAMPLED_BLOCKS, FIRST_BLOCK, LAST_BLOCK } selection;
block_choice blocks_choose(arena *a, const trial *t, selection which);

bool blocks_chosen(const block_choice *c, uint64_t block);

uint64_t blocks_of_grid(const trial *t);

/* Returns the number of blocks that finish a result together and count each other, or 1. */
uint64_t blocks_partners(const trial *t);

/* Returns the block that writes the last element of the first output. */
uint64_t blocks_last_of_output(const trial *t);

/* Returns the number of rows of W that a block computes at once. */
uint64_t blocks_rows_a_turn(const instance *in);

/* Returns the index in x, below across, of the block that computes a row of Y; -1: unknown. */
int64_t blocks_block_of_row(const instance *in, int64_t row, int64_t across);

/* Estimates the number of thread instructions of a trial. */
uint64_t blocks_work(const trial *t);

/* Returns true if an operation is so little work that it gets more kinds of inputs. */
bool blocks_are_few(operation op, const problem_shape *s);
