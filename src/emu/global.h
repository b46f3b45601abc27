/* What a lane reads of global memory and writes there, with all checks: at its block's turn, or
 * ahead of it into the block's log. */
#ifndef PTXGEN_EMU_GLOBAL_H
#define PTXGEN_EMU_GLOBAL_H

#include "emu/access.h"

/* False after a fault. */
bool global_read(const access *x, void *bytes);

/* The same; to: the allocation, if that is known. */
bool global_write(const access *x, allocation *to, const uint8_t *bytes);

#endif
