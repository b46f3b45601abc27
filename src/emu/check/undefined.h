/* Tracks undefined values, as valgrind's memcheck does: from registers that were never written,
 * through arithmetic, selects, shuffles, and shared and local memory, to where one has an effect.
 * An effect is an address, a guard, an operand of a barrier or an atomic operation, or a store to
 * global memory. Compilers read undefined registers in correct programs, when they select between
 * two values and the undefined one is not used.
 *
 * flow.c finds the registers that may hold undefined values when a module is loaded. Only
 * instructions that access these registers are tracked at run time. */
#pragma once

#include "emu/machine.h"

/* Propagates undefined values through an instruction. Returns false after a fault. */
bool undefined_step(warp *w, const op *o, lane_mask mask);

static inline bool undefined_carries(const warp *w, const op *o)
{
    return o->watch & w->machine->watched & WATCH_CARRIES;
}

/* Propagates undefined values through a shuffle. from: the source lane of each lane. */
void undefined_shuffle(warp *w, const op *o, lane_mask mask, const uint8_t *from);

/* Checks a store to global memory. Returns false and a fault if a stored value is undefined. */
bool undefined_output(warp *w, const op *o, lane_mask mask);

/* Propagates undefined values through a lane's store to bytes of shared or local memory. */
void undefined_store(warp *w, const op *o, int lane, ptx_space space, const uint8_t *bytes);

/* Propagates undefined values through a lane's load from bytes of shared or local memory. */
void undefined_load(warp *w, const op *o, int lane, ptx_space space, const uint8_t *bytes);

/* Sets whether bytes of shared or local memory are undefined. */
void undefined_mark(machine *m, ptx_space space, const uint8_t *bytes, size_t size, bool undefined);

/* Returns true if some bytes of shared or local memory are undefined. */
bool undefined_bytes(machine *m, ptx_space space, const uint8_t *bytes, size_t size);

/* Returns the lanes in which a register is undefined. */
lane_mask undefined_register(const warp *w, const reg *r);

/* Sets the lanes in which a register is undefined, for the lanes in mask. */
void undefined_set_register(warp *w, const reg *r, lane_mask lanes, lane_mask mask);

/* Returns the lanes in which a source is undefined; constants are defined. */
lane_mask undefined_source(const warp *w, const op *o, int which, bool predicate);

/* Sets the lanes in which a result, other than a predicate, is undefined. */
void undefined_result(warp *w, const op *o, int which, lane_mask lanes);
