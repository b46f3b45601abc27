#ifndef PTXGEN_EMU_BLOCK_H
#define PTXGEN_EMU_BLOCK_H

#include "emu/machine.h"

/* Runs the block of indices machine.block from its start to its end or a fault. */
void block_run(machine *m);

#endif
