/* Probabilities as whole numbers, and chance: the same bits on every GPU and on the emulator.
 *
 * Nothing here is left to the hardware's approximations, and no product and sum may be fused that
 * are not fused here. Weights are whole numbers, so that sums of them are exact in any order.
 */
#ifndef PTXGEN_GEN_SAMPLING_SAMPLING_H
#define PTXGEN_GEN_SAMPLING_SAMPLING_H

#include "ptx/ptx.h"

/* c tanh(x / c), to some 2e-7 c. */
val capped(ptx *p, val x, float c);

/* exp(x factor) of x up to 0 in units of 2^-31, rounded. */
#define WEIGHT_ONE 0x1p31f
val weight_of(ptx *p, val x, val factor);

/* A number of [0, 1) as a u32 in units of 2^-32; what is above is the largest, below 0, and NaN,
 * the smallest. */
val fraction_bits(ptx *p, val number);

/* floor(sum fraction / 2^32) of a u64 and a u32. */
val fraction_of_sum(ptx *p, val sum, val fraction);

/* The first word of Philox4x32-10 (Salmon and others, "Parallel random numbers: as easy as 1, 2,
 * 3", SC 2011), of the counter (counter, 0, 0, 0). */
val philox(ptx *p, val counter, val key_low, val key_high);

#endif
