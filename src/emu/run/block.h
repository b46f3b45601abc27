#ifndef PTXGEN_EMU_RUN_BLOCK_H
#define PTXGEN_EMU_RUN_BLOCK_H

#include "emu/machine.h"

typedef enum block_status {
    BLOCK_ENDED,   /* or has met a fault */
    BLOCK_DEPENDS, /* waits for launches ahead */
    BLOCK_PAUSED,  /* as machine.dependence says */
} block_status;

/* Puts the block of indices machine.block to its start. */
void block_begin(machine *m);

/* Runs the block from where it is until it ends or is held up. */
block_status block_run(machine *m);

#endif
