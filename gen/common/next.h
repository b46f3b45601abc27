/* Prefetch of the next launch's weights into the L2.
 *
 * Memory is idle from a launch's last loads until the first loads of the next launch: blocks end,
 * start and stage x. The next launch's first weights are known, so blocks that have finished their
 * own loads prefetch these. The key next is the number of bytes, the parameter next their address.
 * Nothing is prefetched at address 0. Results do not depend on the prefetch. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

/* Prefetches target_bytes_ahead bytes per warp, so that a grid of the usual size fills at most half
 * of the L2. Uses bulk prefetches where the target has them, else one or two lines per lane. */
void fetch_next(ptx *p, const instance *in);

/* Call fetch_next in kernels that stream weights: early, after the first loads are issued, or late,
 * before the kernel ends. next_is_early decides which of the two generates code. */
void fetch_next_early(ptx *p, const instance *in);
void fetch_next_late(ptx *p, const instance *in);

/* Ends the threads for which condition holds, after they have prefetched their part. */
void end_and_fetch_next_if(ptx *p, const instance *in, val condition);

/* Returns true if the kernel may read cache positions, lengths and addresses before it waits for
 * the preceding launch. See overlap in kernel/family.h. */
static inline bool is_settled(const instance *in)
{
    return in->state == STATE_SETTLED;
}

/* Loads a cache position, length or address. If settled, the load may be moved before the wait. */
static inline val load_state(ptx *p, bool settled, type t, val at)
{
    return settled ? ld_settled(p, t, at, 0) : ld_const(p, t, at, 0);
}
