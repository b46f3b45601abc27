/* What CUDA allows of a launch, on every GPU. */
#ifndef PTXGEN_FAMILY_LIMITS_H
#define PTXGEN_FAMILY_LIMITS_H

#include "family/family.h"

/* Why an instance can't be launched, as far as its configuration decides it, with a size that would
 * do; and the key to blame, or NULL. What run-time values decide, the header's functions check.
 * NULL: it can. */
const char *launch_problem(arena *a, const instance *in, const char **blamed);

/* Bytes of shared memory by a formula of a launch; 0 where there is none or only the run decides.
 */
int64_t launch_shared_bytes(const char *formula, const instance *in);

/* The shared memory that a block needs, and what a target has of that kind: of static memory, where
 * the instance needs too much of that, else of both kinds together. formula is that of the larger
 * part. */
typedef struct shared_need {
    int64_t bytes, limit;
    const char *kind, *formula;
} shared_need;
shared_need launch_shared_need(const instance *in, const target *t);

/* The most rows of X, a power of two up to the key's largest value, that a block of the instance
 * can take at once on each of some targets; 0: not even one. With rows = run_time such a block
 * serves any number of them. */
int64_t launch_most_vectors(const instance *in, const target *const *wanted, size_t count);

#endif
