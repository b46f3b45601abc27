/* Launches: checks the configuration, builds a machine, and runs its blocks, one after another or,
 * in a stream, beside blocks of other launches. */
#pragma once

#include "emu/machine.h"

/* Returns the entry of a launch, or NULL and a report if the launch is invalid. */
const entry *launch_entry(emu_memory *memory, const emu_launch_config *config, emu_report *report);

/* Returns the configuration with implied settings filled in. */
emu_launch_config launch_complete_config(const emu_launch_config *config);

uint64_t launch_blocks(const emu_launch_config *config);

/* Returns the parameter buffer of a launch, as the kernel reads it. */
const uint8_t *launch_params(arena *a, const emu_launch_config *config, const entry *e);

typedef struct launch_job {
    const emu_launch_config
        *config; /* with the entry, block size and shared memory that the machine was built for */
    const uint8_t *params;
    emu_stats *stats;
    emu_report *report;
    struct grid_race *grid;
} launch_job;

/* Builds a zeroed machine for valid launches of one entry with equal sizes and checks. */
void launch_build(machine *m, arena *a, emu_memory *memory, const entry *e,
                  const emu_launch_config *like);

/* Prepares a machine to run the blocks of a launch, in ascending order. */
void launch_assign(machine *m, const launch_job *job);
