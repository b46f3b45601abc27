/* Values that nothing has written, carried along as valgrind's memcheck does: from registers that
 * were never written, through arithmetic, choices, shuffles, and shared and local memory, up to
 * where one decides something. That is an address, a guard, what a barrier or an atomic operation
 * takes, and what is stored to global memory. A compiler reads such registers in correct programs,
 * as it chooses between two values of which one was not set and is not looked at.
 *
 * Whether a register may hold such a value is known when a module is loaded (see flow.c): only
 * instructions that read or write these are looked at while a kernel runs.
 */
#ifndef PTXGEN_EMU_CHECK_UNDEFINED_H
#define PTXGEN_EMU_CHECK_UNDEFINED_H

#include "emu/machine.h"

/* Tracks such values through an instruction. False and a fault where one decides something. */
bool undefined_step(warp *w, const op *o, lane_mask mask);

static inline bool undefined_carries(const warp *w, const op *o)
{
    return o->watch & w->machine->watched & WATCH_CARRIES;
}

/* A shuffle, in which each lane takes from another. */
void undefined_shuffle(warp *w, const op *o, lane_mask mask, const uint8_t *from);

/* A store to global memory. */
bool undefined_output(warp *w, const op *o, lane_mask mask);

/* A lane's store to shared or local memory, to these bytes, and a load from there. */
void undefined_store(warp *w, const op *o, int lane, ptx_space space, const uint8_t *bytes);
void undefined_load(warp *w, const op *o, int lane, ptx_space space, const uint8_t *bytes);

/* Sets whether bytes of shared or local memory are undefined, and returns whether some are. */
void undefined_mark(machine *m, ptx_space space, const uint8_t *bytes, size_t size, bool undefined);
bool undefined_bytes(machine *m, ptx_space space, const uint8_t *bytes, size_t size);

/* Returns the lanes in which a register is undefined, and sets them for lanes in mask. */
lane_mask undefined_register(const warp *w, const reg *r);
void undefined_set_register(warp *w, const reg *r, lane_mask lanes, lane_mask mask);

/* The same for a source, of which a constant is defined, and for a result that is no predicate. */
lane_mask undefined_source(const warp *w, const op *o, int which, bool predicate);
void undefined_result(warp *w, const op *o, int which, lane_mask lanes);

#endif
