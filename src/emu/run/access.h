/* Checked access to memory by the lanes of a warp: what ld, st and atom have in common. */
#ifndef PTXGEN_EMU_RUN_ACCESS_H
#define PTXGEN_EMU_RUN_ACCESS_H

#include "emu/machine.h"
#include "emu/memory/allocation.h"

void access_gather(const warp *w, const op *o, lane_mask mask, addresses *a);

/* Gathers where a copy comes from: op.src[1], op.offset2, and op.variant for op.address64. */
void access_gather_second(const warp *w, const op *o, lane_mask mask, addresses *a);

/* Splits a generic access by space, with addresses relative to it. Ends with the first fault. */
typedef void access_lanes(warp *w, const op *o, ptx_space space, const addresses *a,
                          lane_mask mask);
void access_by_space(warp *w, const op *o, lane_mask mask, access_lanes *each);

/* Adds an access to the launch's statistics, if there are any. */
void access_count(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask,
                  access_kind kind);

/* The same for a bulk copy of size bytes to or from global memory. */
void access_count_bulk(warp *w, uint64_t address, unsigned size, access_kind kind);

/* Returns false and a fault if the address is not a multiple of size. */
bool access_is_aligned(const access *x);

/* Returns the bytes of an access to shared or local memory, or NULL and a fault. */
uint8_t *access_array(const access *x);

/* Notes a load of all lanes, or a store that is not strong. Returns the shared memory at the lowest
 * address. NULL, without a fault: the accesses are to be made one by one. */
uint8_t *access_shared_lanes(const warp *w, const op *o, const addresses *a, lane_mask mask,
                             unsigned size, access_kind kind, uint64_t *lowest);

/* Finds the offset of an access to shared memory, without a race check. False after a fault. */
bool access_shared_place(const access *x, size_t *offset);

/* The same for a row of a matrix in shared memory, 16 bytes at the address that x->lane gives:
 * noted for the lanes that have its elements, as ldmatrix and stmatrix spread them. */
uint8_t *access_matrix_row(const access *x, unsigned row, bool transposed);

/* The allocation that an access to global memory is inside of, or NULL and a fault. */
allocation *access_global(const access *x);

/* Returns the bytes of a load from any of the three, in room if they are not in one piece; NULL
 * after a fault. */
const uint8_t *access_read(const access *x, uint8_t *room);

/* Stores to global memory; to: the allocation, if it is known. False after a fault. */
bool access_write(const access *x, allocation *to, const uint8_t *bytes);

/* Reads global memory with all checks. False after a fault. */
bool global_read(const access *x, void *bytes);

/* atomic.c: does a deferred operation at its block's turn, without a race check. */
struct atomic_update;
void atomic_make_good(const struct atomic_update *u);

#endif
