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

/* Return the power of two with an exponent; the exponent for a row by the bits of its largest
 * value, that of 1 if the value is at least 1 and less than 2^15; the inverse of its power, which
 * is normal.
 */
val power_of_two(ptx *p, val exponent);
val power_for_halves(ptx *p, val largest);
val inverse_of_power(ptx *p, val exponent);

/* Stores the power that a row's values are multiplied by, and its inverse times a factor (without a
 * kind: 1), at the row's number in two arrays in shared memory. largest: the bits of the largest
 * value that each lane of a warp has seen. */
void powers_store(ptx *p, val largest, val row, val powers, val factors, val factor);

/* Adds a product of fragments of mma.m16n8k16 to a fragment of sums. */
void fragment_add(ptx *p, const var sums[4], val4 a, val2 b);

#endif
