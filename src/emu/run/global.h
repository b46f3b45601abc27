/* What a lane reads of global memory and writes there, with all checks: at its block's turn, or
 * ahead of it into the block's log. */
#ifndef PTXGEN_EMU_RUN_GLOBAL_H
#define PTXGEN_EMU_RUN_GLOBAL_H

#include "emu/run/access.h"

/* False after a fault. */
bool global_read(const access *x, void *bytes);

#endif
