/* What launches fetch for the ones behind them: the key next, see gen/common/next.h. */
#ifndef PTXGEN_KERNEL_NEXT_H
#define PTXGEN_KERNEL_NEXT_H

#include "kernel/family.h"

/* As much as a step fetches for a launch, a multiple of NEXT_MULTIPLE: what memory of the largest
 * parts gives in some 4 us, from when one launch has its last loads until the next one has its
 * first, and a third of what the L2 keeps there. */
enum { NEXT_OF_STEPS = 16 << 20 };

/* Whether a launch fetches as soon as it has asked for its own first weights, not when its blocks
 * end: where it has so few that the L2 keeps them all beside the next one's. Memory would idle
 * where another launch has fetched them. */
bool next_is_early(const instance *in);

/* The number of the parameter that says where it lies, among those of an instance's kernel;
 * MAX_PARAMS: there is none. */
size_t next_param(arena *a, const instance *in);

#endif
