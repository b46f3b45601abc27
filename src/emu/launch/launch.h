/* A launch: what is asked of it is checked, a machine built, and its blocks run, one after another
 * or, in a stream, beside those of other launches.
 */
#ifndef PTXGEN_EMU_LAUNCH_LAUNCH_H
#define PTXGEN_EMU_LAUNCH_LAUNCH_H

#include "emu/machine.h"

/* Returns false and a report if a launch is invalid. */
bool launch_is_valid(emu_memory *memory, const emu_launch_config *config, const entry *e,
                     emu_report *report);

/* Returns the launch with implied settings filled in. */
emu_launch_config launch_settle(const emu_launch_config *config);

/* Returns the number of blocks that it runs. */
uint64_t launch_blocks(const emu_launch_config *config);

/* Its parameters as the kernel finds them. */
const uint8_t *launch_params(arena *a, const emu_launch_config *config, const entry *e);

/* What a machine is to run. */
typedef struct launch_job {
    const emu_launch_config
        *config; /* of the entry, block and shared memory that it was built for */
    const uint8_t *params;
    emu_stats *stats;
    emu_report *report;
    struct grid_race *grid;
} launch_job;

/* Builds a machine, all zero before, for valid launches of one entry with equal sizes, stack and
 * race check. */
void launch_build(machine *m, arena *a, emu_memory *memory, const entry *e,
                  const emu_launch_config *like);

/* Prepares it to run the blocks of a launch, first to last. */
void launch_take(machine *m, const launch_job *job);

/* Runs one block at its turn. */
void launch_run_block(machine *m, uint64_t number);

/* rounds.c */

/* What threads have for their blocks; freed last. */
typedef struct rounds rounds;

/* Runs all blocks of a machine's launch, the job, on at least 2 threads. made is set before
 * anything can fail for want of memory. */
void rounds_run(machine *m, const launch_job *job, rounds **made);

/* NULL: there are none. */
void rounds_free(rounds *r);

/* Returns false if a kernel's instructions may depend on the order of blocks. */
bool rounds_suit(const entry *e);

#endif
