/* Makes plans: which launches a decoder's steps are, and where everything lies. */
#ifndef PTXGEN_MODEL_PLAN_PLAN_MAKE_H
#define PTXGEN_MODEL_PLAN_PLAN_MAKE_H

#include "base/diag.h"
#include "model/plan/plan.h"

/* Makes the plan for a decoder on some targets, oldest first, with kernels as model has them (NULL:
 * as their families do). NULL and an error at where, that says which tensor and size, where a
 * kernel does not take what the decoder needs. */
plan *plan_make(arena *a, const decoder *of, location where, const target *const *wanted,
                size_t wanted_count, const plan_model *model, diags *d);

#endif
