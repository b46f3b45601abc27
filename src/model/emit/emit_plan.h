/* Emits the plan of a decoder's steps into header and manifest. */
#pragma once

#include <jansson.h>

#include "emit/describe.h"
#include "model/plan/plan.h"

/* Prints one place of the header: types, declarations, functions, or data. Data are the tensors,
 * the launches of each step with a row and a comment each, and PREFIX_plan. */
void header_print_plan(strbuf *out, const described_set *d, header_place place);

/* plan_json returns the manifest's object "decoder". plan_convention states its conventions. */
json_t *plan_json(arena *a, const plan *p);
extern const char plan_convention[];
