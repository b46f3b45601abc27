/* The plan of a decoder's steps as C data, where the set has one. */
#ifndef PTXGEN_MODEL_EMIT_HEADER_PLAN_H
#define PTXGEN_MODEL_EMIT_HEADER_PLAN_H

#include "emit/describe.h"

/* Prints a place of the header: types, declarations, functions; as data the tensors, the launches
 * of each step, a row and a comment for each, and PREFIX_plan. */
void header_print_plan(strbuf *out, const described_set *d, header_place place);

#endif
