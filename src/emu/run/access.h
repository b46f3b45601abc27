/* Checked access to memory by the lanes of a warp, shared by ld, st, atom and others. */
#pragma once

#include "emu/machine.h"
#include "emu/memory/allocation.h"

void access_gather(const warp *w, const op *o, lane_mask mask, addresses *a);

/* Gathers the source addresses of a copy, from op.src[1], op.offset2 and op.variant (address64). */
void access_gather_second(const warp *w, const op *o, lane_mask mask, addresses *a);

/* Splits a generic access by space, with addresses relative to it. Stops at the first fault. */
typedef void access_lanes(warp *w, const op *o, ptx_space space, const addresses *a,
                          lane_mask mask);
void access_by_space(warp *w, const op *o, lane_mask mask, access_lanes *each);

/* Adds an access to the launch's statistics, if it has any. */
void access_count(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask,
                  access_kind kind);

/* Adds a bulk copy of size bytes to or from global memory to the statistics. */
void access_count_bulk(warp *w, uint64_t address, unsigned size, access_kind kind);

/* Returns false and a fault if the address is not a multiple of size. */
bool access_is_aligned(const access *x);

/* Returns the bytes of an access to shared or local memory, or NULL and a fault. */
uint8_t *access_array(const access *x);

/* Notes a load or a weak store by all lanes. Returns the bytes of shared memory at the lowest
 * address, or NULL without a fault if the caller must access lane by lane. */
uint8_t *access_shared_lanes(const warp *w, const op *o, const addresses *a, lane_mask mask,
                             unsigned size, access_kind kind, uint64_t *lowest);

/* Finds an access's offset in shared memory, without race check. Returns false after a fault. */
bool access_shared_place(const access *x, size_t *offset);

/* Returns the bytes of a matrix row in shared memory, 16 bytes at the address of x->lane, or NULL
 * and a fault. Notes the access for the lanes that own its elements in ldmatrix and stmatrix. */
uint8_t *access_matrix_row(const access *x, unsigned row, bool transposed);

/* Returns the allocation that contains an access to global memory, or NULL and a fault. */
allocation *access_global(const access *x);

/* Returns the bytes of a load, or NULL after a fault. room: for bytes in pieces. */
const uint8_t *access_read(const access *x, uint8_t *room);

/* Stores to global memory. to: the allocation, or NULL if unknown. Returns false after a fault. */
bool access_write(const access *x, allocation *to, const uint8_t *bytes);

/* Reads global memory with all checks. Returns false after a fault. */
bool global_read(const access *x, void *bytes);

/* Applies a deferred atomic operation when its block commits, without a race check. In atomic.c. */
struct atomic_update;
void atomic_commit(const struct atomic_update *u);
