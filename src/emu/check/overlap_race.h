/* Detection of races between launches of a stream that may run at the same time.
 *
 * Two launches race where both touch a byte, at least one of them stores, and the later one's
 * thread does so with the earlier one unfinished by the rules of overlap_order.h. Of two accesses
 * that are strong at .gpu scope, as atomic operations are, neither races. What ld.global.nc loads
 * must not change while its launch runs, so that it races also after a wait, with all launches
 * that need not have finished when its own began.
 *
 * Which of the two accesses comes first when the launches are emulated does not matter: each launch
 * remembers what it has loaded and stored, in records of GRAIN_BYTES that have a bit a byte, one
 * for each line of the PTX that touches the grain. Memory that kernels cannot write is left out.
 *
 * A launch after launches that are not known (emu_stream_config.behind) races with these where it
 * stores before its wait, or loads what they may change.
 */
#ifndef PTXGEN_EMU_CHECK_OVERLAP_RACE_H
#define PTXGEN_EMU_CHECK_OVERLAP_RACE_H

#include "emu/check/overlap_order.h"
#include "emu/machine.h"
#include "emu/memory/allocation.h"

/* Accesses by lanes, or one, inside of an allocation: false and a fault where one races. */
bool overlap_check_lanes(const access *x, const addresses *a, lane_mask mask, const allocation *of);
bool overlap_check_lane(const access *x, const allocation *of);

static inline bool overlap_sees(const access *x, const allocation *of)
{
    return x->warp->machine->dependence.overlap && (!of->read_only || of->changing);
}

static inline bool overlap_lanes(const access *x, const addresses *a, lane_mask mask,
                                 const allocation *of)
{
    return !overlap_sees(x, of) || overlap_check_lanes(x, a, mask, of);
}

static inline bool overlap_lane(const access *x, const allocation *of)
{
    return !overlap_sees(x, of) || overlap_check_lane(x, of);
}

#endif
