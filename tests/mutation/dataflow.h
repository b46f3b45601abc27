/* Dependences between the lines of a kernel's PTX. */
#ifndef PTXGEN_TESTS_DATAFLOW_H
#define PTXGEN_TESTS_DATAFLOW_H

#include <stdbool.h>

#include "base/strbuf.h"

/* Returns true if a line depends only on thread and block indices. One run of all blocks then
 * covers its behaviour. Returns false for all lines if data decide a branch. */
bool depends_on_position_alone(arena *a, const char *text, unsigned line);

/* Returns true if nothing except possibly the line itself uses the line's result. */
bool result_is_unused(arena *a, const char *text, unsigned line);

/* Returns the instructions that compute the operands of two others, in order. Returns NULL unless
 * each operand depends only on thread and block indices and buffer addresses, and is defined by one
 * instruction. The instructions have no other effect and may be placed anywhere: a thread always
 * gets the same values. */
const char *operand_slice(arena *a, const char *text, const char *one, const char *other);

/* Returns the line of the first instruction, counted from 1. */
unsigned first_instruction(const char *text);

/* Returns the phase of a line, the last comment on its own line before it, or "". */
const char *line_phase(arena *a, const char *text, unsigned line);

#endif
