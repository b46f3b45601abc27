/* What runs the instructions of emu_ops.def: exec_NAME for each. Those that a decoder chooses
 * instead of its row's are below. */
#ifndef PTXGEN_EMU_EXEC_H
#define PTXGEN_EMU_EXEC_H

#include "emu/module.h"

#define ROW(name, pattern, operands, decode, target) op_exec exec_##name;
#include "emu/emu_ops.def"

op_exec exec_pack, exec_unpack, exec_clock, exec_unknown;

/* The best implementation there is of an instruction here and now: of an arithmetic one on this
 * processor, of a cvt for its types. All give the same results. */
op_exec *exec_lanes_here(op_exec *exec);
op_exec *exec_cvt_for(const op *o);

#endif
