/* The targets that tests build kernels for. */
#ifndef PTXGEN_TESTS_OLDEST_TARGET_H
#define PTXGEN_TESTS_OLDEST_TARGET_H

#include "kernel/family.h"

/* Returns the oldest target that supports the instance's keys. */
static inline const target *instance_oldest_target(const instance *in)
{
    const target *oldest = NULL;
    unsigned sm = in->family->sm;
    for (const key *k = in->family->keys; k->name; k++)
        if (k->sm > sm && instance_value(in, k))
            sm = k->sm;
    for (size_t i = 0; i < target_count; i++)
        if (targets[i].sm >= sm && instance_suits(in, &targets[i]) &&
            (!oldest || targets[i].sm < oldest->sm))
            oldest = &targets[i];
    return oldest;
}

#endif
