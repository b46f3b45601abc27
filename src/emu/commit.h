/* Making good, in the order of the blocks, what blocks have done that ran ahead of their turn: see
 * speculation.h. */
#ifndef PTXGEN_EMU_COMMIT_H
#define PTXGEN_EMU_COMMIT_H

#include "emu/speculation.h"

/* Of the machine that runs the blocks of a launch whose turn it is. */
typedef struct commit {
    machine *machine;
    uint32_t launch;   /* see allocation.tracked */
    page_table stored; /* by blocks of this round, of what is tracked: their loaded sets */
} commit;

/* Makes a block's log good, all blocks before it being done. False, and nothing done, where it has
 * to run again, as what it has seen or stored may not be what it would at its turn. */
bool commit_block(commit *c, const block_log *log);

#endif
