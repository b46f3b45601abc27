/* Products of f16 on the tensor cores. Rows of floats are multiplied by powers of two, so that
 * nothing finite in them overflows as f16: exponents are as a float's bits have them.
 */
#ifndef PTXGEN_GEN_COMMON_HALVES_H
#define PTXGEN_GEN_COMMON_HALVES_H

#include "ptx/ptx.h"

enum {
    EXPONENT_SHIFT = 23,
    EXPONENT_BIAS = 127,
    LARGEST_EXPONENT = EXPONENT_BIAS + 14, /* what the largest value of a row gets */
};

/* The power of two with an exponent. */
val power_of_two(ptx *p, val exponent);

/* The exponent of the power for a row, by the bits of its largest value: that of 1 where it is at
 * least 1 and less than 2^15 already. The inverse of the power is normal. */
val power_for_halves(ptx *p, val largest);
val inverse_of_power(ptx *p, val exponent);

/* Of a row of which each lane of a warp has seen the largest value's bits: stores the power that
 * its values are multiplied by, and the inverse times a factor (without a kind: 1), by its number
 * in two arrays in shared memory. */
void powers_store(ptx *p, val largest, val row, val powers, val factors, val factor);

/* Adds a product of fragments of mma.m16n8k16 to a fragment of sums. */
void fragment_add(ptx *p, const var sums[4], val4 a, val2 b);

#endif
