/* Memory is idle from a launch's last loads until the first ones of the next launch: blocks end,
 * are launched, stage x. The weights that the next launch reads first are known. So blocks that are
 * done with their own prefetch these into the L2: the key next says how many bytes, the parameter
 * of that name where they begin. No result depends on it. At address 0 nothing is prefetched.
 */
#ifndef PTXGEN_GEN_COMMON_NEXT_H
#define PTXGEN_GEN_COMMON_NEXT_H

#include "kernel/family.h"
#include "ptx/ptx.h"

/* Prefetches target_bytes_ahead a warp, so that a grid of usual size fills no more than half of the
 * L2: in bulk, where the target can, else a lane a line or two. */
void fetch_next(ptx *p, const instance *in);

/* Do the same in kernels that stream weights, where they have loaded their own first ones or where
 * they end: next_is_early says which. */
void fetch_next_early(ptx *p, const instance *in);
void fetch_next_late(ptx *p, const instance *in);

/* Threads for which the condition holds end, and fetch their part first. */
void end_and_fetch_next_if(ptx *p, const instance *in, val condition);

/* Returns whether positions, lengths and addresses of caches, what one step leaves for the next,
 * may be read ahead of the wait: see overlap in kernel/family.h. */
static inline bool is_settled(const instance *in)
{
    return in->state == STATE_SETTLED;
}

/* Loads a position, length or address of a cache. If settled, the load may come before the wait. */
static inline val load_state(ptx *p, bool settled, type t, val at)
{
    return settled ? ld_settled(p, t, at, 0) : ld_const(p, t, at, 0);
}

#endif
