/* What an RMS norm multiplies values by, beside their weights. */
#ifndef PTXGEN_GEN_COMMON_NORM_H
#define PTXGEN_GEN_COMMON_NORM_H

#include "kernel/family.h"
#include "ptx/ptx.h"

/* 1 / sqrt(mean + epsilon), of the mean of their squares; 0 where that is infinite. */
val norm_factor(ptx *p, const instance *in, val mean);

/* The same, but of an infinite mean NaN. */
val norm_factor_or_nan(ptx *p, const instance *in, val mean);

/* The sum of the squares of a chunk, of which each lane of the warp has count values; and the mean
 * of all of a row, whose chunks' sums stand from an address of shared memory on: a lane adds up
 * every 32nd. So the order of additions follows from the chunks alone. */
val norm_chunk_squares(ptx *p, const val *x, unsigned count);
val norm_mean_of_chunks(ptx *p, const instance *in, val sums, unsigned chunks);

#endif
