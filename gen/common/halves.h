/* f16 products on the tensor cores. Each row of floats is multiplied by a power of two, so that no
 * finite value of it overflows as f16. Exponents are biased, as in the bits of an f32. */
#pragma once

#include "ptx/ptx.h"

enum {
    EXPONENT_SHIFT = 23,
    EXPONENT_BIAS = 127,
    LARGEST_EXPONENT = EXPONENT_BIAS + 14, /* exponent of a row's maximum after scaling */
};

/* Returns the f32 power of two with a biased exponent. */
val power_of_two(ptx *p, val exponent);
/* Returns the exponent of the power that scales a row, from the bits of the row's largest
 * magnitude. The power is 1 if that magnitude is in [1, 2^15). */
val power_for_halves(ptx *p, val largest);
/* Returns the inverse of the power with that exponent; the inverse is a normal f32. */
val inverse_of_power(ptx *p, val exponent);

/* Stores a row's power to powers[row] and its inverse times factor to factors[row], both in shared
 * memory. A factor without a kind is 1. largest holds the bits of the largest magnitude that the
 * lane has seen; all lanes of the warp must call it. */
void powers_store(ptx *p, val largest, val row, val powers, val factors, val factor);

/* Adds the mma.m16n8k16 product of two fragments to a fragment of sums. */
void fragment_add(ptx *p, const var sums[4], val4 a, val2 b);
