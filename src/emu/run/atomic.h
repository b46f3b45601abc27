/* Atomic operations on a word of global memory. */
#ifndef PTXGEN_EMU_RUN_ATOMIC_H
#define PTXGEN_EMU_RUN_ATOMIC_H

#include "emu/memory/speculation.h"

/* Does what a block that ran ahead of its turn would have done then, without a look at races. */
void atomic_make_good(const atomic_update *u);

#endif
