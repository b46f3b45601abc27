/* Copying activations to shared memory, by all threads of a block together. */
#ifndef PTXGEN_GEN_COMMON_STAGE_H
#define PTXGEN_GEN_COMMON_STAGE_H

#include "ptx/ptx.h"

/* Copies count f32 values, a multiple of 4, from x to the shared array tile. Every thread must call
 * it; a barrier before the tile is read is left to the caller. */
void stage_values(ptx *p, val x, val tile, val count);

#endif
