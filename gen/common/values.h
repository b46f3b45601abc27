/* Neighbouring values of an array of f32, f16 or bf16 in global memory: loaded as f32, and rounded
 * to nearest even when they are stored.
 */
#ifndef PTXGEN_GEN_COMMON_VALUES_H
#define PTXGEN_GEN_COMMON_VALUES_H

#include "kernel/format.h"
#include "ptx/ptx.h"

enum { MOST_VALUES = 8 };

/* Loads or stores 1, 2, 4 or 8 values at an address, 16 bytes at a time where there are as many.
 * The address is a multiple of the size of all of them, or of 16 bytes. */
void values_load(ptx *p, format f, val at, unsigned count, val *values);
void values_store(ptx *p, format f, val at, unsigned count, const val *values);

/* Returns the bits of an f32 as bf16, rounded to nearest even; a NaN keeps its upper half, quiet.
 */
val bfloat_bits(ptx *p, val x);

#endif
