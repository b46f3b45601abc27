/* Control flow of an entry: where diverging paths meet again, and which reads of registers need a
 * check at run time. */
#ifndef PTXGEN_EMU_PARSE_FLOW_H
#define PTXGEN_EMU_PARSE_FLOW_H

#include "emu/module.h"

/* Sets reconverge of all branches, and op.watch and reg.tracked where some path reaches a read
 * of a register without writing it, and live_registers of the entry. The
 * arena is for what is needed meanwhile. */
void flow_analyse(arena *a, entry *e);

#endif
