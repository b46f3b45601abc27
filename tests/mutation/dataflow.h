/* What the lines of a kernel's PTX depend on. */
#ifndef PTXGEN_TESTS_DATAFLOW_H
#define PTXGEN_TESTS_DATAFLOW_H

#include <stdbool.h>

#include "base/strbuf.h"

/* Whether a line of PTX depends on nothing but thread and block numbers, so that a run of all
 * blocks tells all it ever does. PTX in which data decide a branch has no such lines. */
bool depends_on_position_alone(arena *a, const char *text, unsigned line);

/* Whether nothing comes of the result of a line, except perhaps itself. */
bool result_is_unused(arena *a, const char *text, unsigned line);

/* The instructions that compute what two others have as operands, in order, where these are made of
 * thread and block numbers and of addresses of buffers alone, each by one instruction of the text;
 * else NULL. They have no effect besides, and may stand anywhere: a thread has the same values
 * whenever it comes there. */
const char *operand_slice(arena *a, const char *text, const char *one, const char *other);

/* The number of the line with the first instruction, from 1. */
unsigned first_instruction(const char *text);

/* What the kernel says that it does at a line: the last comment on a line of its own ahead of it,
 * or
 * "". */
const char *line_phase(arena *a, const char *text, unsigned line);

#endif
