#ifndef PTXGEN_EMU_RUN_BULK_H
#define PTXGEN_EMU_RUN_BULK_H

#include "emu/run/async.h"

/* Lanes end: their bulk copies do. */
void bulk_exit(warp *w, const op *o, lane_mask mask);

#endif
