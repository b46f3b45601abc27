/* The plan of a decoder's steps, as a person reads it, with the time that a launch should take. */
#ifndef PTXGEN_COST_PLAN_COST_H
#define PTXGEN_COST_PLAN_COST_H

#include "cost/cost.h"
#include "family/plan.h"

/* What of each step is launched, layers that are alike shown once, on the part of a target's
 * architecture; then the memory. Attention is to as many positions as a cache has, 4096 at most. */
void cost_plan(strbuf *out, const plan *p, const target *t);

#endif
