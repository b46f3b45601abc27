#ifndef PTXGEN_EMU_RUN_MBARRIER_H
#define PTXGEN_EMU_RUN_MBARRIER_H

#include "emu/run/async.h"

/* The mbarrier at a lane's address, which its thread knows to be initialised, or NULL and a fault.
 */
mbarrier *mbarrier_at(warp *w, const op *o, int lane, u64 address);

#endif
