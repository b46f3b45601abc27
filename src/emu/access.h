/* Checked access to memory by the lanes of a warp: what ld, st and atom have in common.
 *
 * Addresses are those of a state space; generic ones have been split by space before. */
#ifndef PTXGEN_EMU_ACCESS_H
#define PTXGEN_EMU_ACCESS_H

#include "emu/machine.h"

typedef enum access_kind { ACCESS_LOAD, ACCESS_STORE, ACCESS_ATOMIC } access_kind;

/* Where each lane's access goes: in lanes that do not take part, where the first does that does. */
typedef struct addresses {
    uint64_t at[WARP_LANES];
} addresses;

void access_gather(const warp *w, const op *o, lane_mask mask, addresses *a);

/* The lanes of a generic access that mean a space, their addresses made relative to it. */
lane_mask access_split(addresses *a, ptx_space space, lane_mask mask);

/* Adds an access to the launch's statistics, where somebody wants them. */
void access_count(const warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask,
                  access_kind kind);

/* False and a fault where an address is not a multiple of size. */
bool access_is_aligned(warp *w, const op *o, int lane, ptx_space space, uint64_t address,
                       unsigned size, access_kind kind);

/* The bytes of one lane's access to shared or local memory, or NULL and a fault. */
uint8_t *access_array(warp *w, const op *o, int lane, ptx_space space, uint64_t address,
                      unsigned size, access_kind kind);

/* The allocation that one lane's access to global memory is inside of, or NULL and a fault. */
allocation *access_global(warp *w, const op *o, int lane, uint64_t address, unsigned size,
                          access_kind kind);

#endif
