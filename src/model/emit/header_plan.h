/* The plan of a decoder's steps as C data, where the set has one. */
#ifndef PTXGEN_MODEL_EMIT_HEADER_PLAN_H
#define PTXGEN_MODEL_EMIT_HEADER_PLAN_H

#include "emit/describe.h"

void print_plan_declarations(strbuf *out, const described_set *d);

/* The tensors, the launches of each step, a row and a comment for each, and PREFIX_plan. */
void print_plan_data(strbuf *out, const described_set *d);

#endif
