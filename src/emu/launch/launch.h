/* A launch: what is asked of it is checked, a machine built, and its blocks run, one after another
 * or, in a stream, beside those of other launches.
 */
#ifndef PTXGEN_EMU_LAUNCH_LAUNCH_H
#define PTXGEN_EMU_LAUNCH_LAUNCH_H

#include "emu/machine.h"

/* Returns the entry of a launch, or NULL and a report if the launch is invalid. */
const entry *launch_entry(emu_memory *memory, const emu_launch_config *config, emu_report *report);

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

#endif
