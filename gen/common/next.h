/* Memory has nothing to do from when a launch's last loads are in until the first ones of the
 * launch behind it: blocks end, are launched, stage x. Which weights that launch reads first is
 * known all along. So blocks that are done with their own have these fetched into the L2: the key
 * next says how many bytes of them, and the parameter of that name where they begin.
 *
 * It is a hint. Nothing is loaded, and no result depends on it. Of address 0 nothing is fetched.
 */
#ifndef PTXGEN_GEN_COMMON_NEXT_H
#define PTXGEN_GEN_COMMON_NEXT_H

#include "kernel/family.h"
#include "ptx/ptx.h"

/* A warp asks for as much as target_bytes_ahead says, so that a grid of usual size fetches no more
 * than half of the L2 has room for: in bulk, where the target can, else a lane a line or two. */
void fetch_next(ptx *p, const instance *in);

/* The same of kernels that stream weights: where they have asked for their own first ones, and
 * where they end, of which next_is_early says the one. */
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
