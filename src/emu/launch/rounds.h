/* The blocks of a launch on several threads, in rounds: threads run blocks ahead of their turn, and
 * behind that what they have done is made good in the order of the blocks; see speculation.h. As
 * long as blocks have nothing to do with one another all threads do that, each for some pages of
 * memory; from the first on that has, one does. A block that cannot be made good runs there, and
 * the next round begins behind it.
 *
 * How many blocks a round has depends on the work in them and on how the rounds before went. Where
 * that is little, or blocks turn out to depend on each other, one thread runs them one by one.
 */
#ifndef PTXGEN_EMU_LAUNCH_ROUNDS_H
#define PTXGEN_EMU_LAUNCH_ROUNDS_H

#include "emu/launch/launch.h"

/* Runs one block at its turn. */
typedef void run_block(machine *m, uint64_t number);

/* What threads have for their blocks; freed last. */
typedef struct rounds rounds;

/* Runs all blocks of what a machine has taken: job. threads: at least 2. The rounds are set before
 * anything can fail for want of memory. */
void rounds_run(arena *a, machine *m, const launch_job *job, run_block *run, unsigned threads,
                rounds **made);

/* NULL: there are none. */
void rounds_free(rounds *r);

/* Returns false if a kernel's instructions may depend on the order of blocks. */
bool rounds_suit(const entry *e);

#endif
