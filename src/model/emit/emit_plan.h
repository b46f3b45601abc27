/* The plan of a decoder's steps in header and manifest. */
#ifndef PTXGEN_MODEL_EMIT_EMIT_PLAN_H
#define PTXGEN_MODEL_EMIT_EMIT_PLAN_H

#include <jansson.h>

#include "emit/describe.h"
#include "model/plan/plan.h"

/* Prints a place of the header: types, declarations, functions; as data the tensors, the launches
 * of each step, a row and a comment for each, and PREFIX_plan. */
void header_print_plan(strbuf *out, const described_set *d, header_place place);

/* Returns what the manifest has under "decoder"; and what a program must know of it that no number
 * says. */
json_t *plan_json(arena *a, const plan *p);
extern const char plan_convention[];

#endif
