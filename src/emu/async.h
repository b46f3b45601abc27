#ifndef PTXGEN_EMU_ASYNC_H
#define PTXGEN_EMU_ASYNC_H

#include "emu/machine.h"

/* Forgets the copies that a warp of the block before has not waited for. */
void async_begin_block(machine *m, warp *w);

#endif
