/* The instruction table, emu_ops.def, as the decoder reads it. */
#ifndef PTXGEN_EMU_TABLE_H
#define PTXGEN_EMU_TABLE_H

#include "emu/module.h"

enum { MAX_SOURCES = 4 };

/* An instruction whose lanes do not know of each other: d = f(a, b, …). */
typedef struct lane_row {
    const char *pattern;
    op_exec *exec;
    ptx_type result;
    ptx_type sources[MAX_SOURCES]; /* TYPE_NONE behind the last */
} lane_row;

extern const lane_row lane_rows[];
extern const size_t lane_row_count;

/* The best implementation this processor has of a lane instruction. All give the same results. */
op_exec *lane_exec_here(op_exec *exec);

#endif
