/* A launch: what is asked of it is checked, a machine built, and its blocks run, one after another
 * or, in a stream, beside those of other launches.
 */
#ifndef PTXGEN_EMU_LAUNCH_H
#define PTXGEN_EMU_LAUNCH_H

#include "emu/machine.h"

/* False, and the report, where it cannot be run. */
bool launch_is_valid(emu_memory *memory, const emu_launch_config *config, const entry *e,
                     emu_report *report);

/* How many blocks it runs. */
uint64_t launch_blocks(const emu_launch_config *config);

/* Its parameters as the kernel finds them. */
const uint8_t *launch_params(arena *a, const emu_launch_config *config, const entry *e);

/* Builds a machine of a launch that was checked, of which arena, memory, entry, config, stats,
 * report, params and grid are set and all else is zero. */
void launch_prepare(machine *m);

#endif
