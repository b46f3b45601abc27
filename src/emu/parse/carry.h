/* Which registers may hold values that nothing has written, and which instructions have to do with
 * them: see undefined.h. */
#ifndef PTXGEN_EMU_PARSE_CARRY_H
#define PTXGEN_EMU_PARSE_CARRY_H

#include "emu/module.h"

/* Sets carried of registers, carried_count and undefined_memory of the entry, and watch and carry
 * of its ops; tracked of registers is known. */
void carry_analyse(entry *e);

#endif
