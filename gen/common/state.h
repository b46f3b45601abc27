/* What one step leaves for the next: positions, lengths, addresses of caches. See overlap in
 * family.h.
 */
#ifndef PTXGEN_GEN_COMMON_STATE_H
#define PTXGEN_GEN_COMMON_STATE_H

#include "kernel/family.h"
#include "ptx/ptx.h"

static inline bool is_settled(const instance *in)
{
    return in->state == STATE_SETTLED;
}

/* A number of it; settled: by a load that may stand ahead of the wait. */
static inline val load_state(ptx *p, bool settled, type t, val at)
{
    return settled ? ld_settled(p, t, at, 0) : ld_const(p, t, at, 0);
}

#endif
