/* What CUDA allows of a launch, on every GPU. */
#ifndef PTXGEN_SPEC_LIMITS_H
#define PTXGEN_SPEC_LIMITS_H

#include "family/family.h"

/* Why an instance can't be launched, as far as its configuration decides it, with a size that would
 * do; and the key to blame, or NULL. What run-time values decide, the header's functions check.
 * NULL: it can. */
const char *launch_problem(arena *a, const instance *in, const char **blamed);

#endif
