/* Sums, maxima, norms and the first of several, over a warp and over a block. */
#ifndef PTXGEN_GEN_COMMON_REDUCE_H
#define PTXGEN_GEN_COMMON_REDUCE_H

#include "kernel/family.h"
#include "ptx/ptx.h"

/* Return a lane's number in its group of neighbouring lanes (a power of two), and its group's
 * number.
 */
val lane_in_group(ptx *p, unsigned group);
val group_of_lane(ptx *p, unsigned group);

/* Butterflies over groups of width neighbouring lanes, or over the lanes of a warp whose numbers
 * differ in the bits from first up to end (powers of two): every lane gets the result. */
val group_sum(ptx *p, val v, unsigned width);
val group_max(ptx *p, val v, unsigned width);
#define warp_sum(p, v) group_sum(p, v, 32)
#define warp_max(p, v) group_max(p, v, 32)
val lanes_sum(ptx *p, val v, unsigned first, unsigned end);
val lanes_max(ptx *p, val v, unsigned first, unsigned end);

/* Sum over the threads of a block of num_warps warps, with one barrier; only warp 0 gets the
 * results. Every thread must call it. One call a kernel: it takes its shared memory, 4 bytes a warp
 * and sum, for good. */
enum { MAX_SUMS = 16 };
val block_sum(ptx *p, val v, unsigned num_warps);
void block_sum_each(ptx *p, val *values, unsigned count, unsigned num_warps);
#define BLOCK_SUM_SHARED "4*num_warps*min(1, num_warps-1)"

/* Sums over a block in a loop, such as one over rows. Two halves of shared memory, together 8
 * bytes for each warp and each sum, are used in turn, so that one barrier is enough: a warp returns
 * to a half only after the next barrier, and warp 0 has read the half before that barrier. */
typedef struct block_sums {
    unsigned num_warps, count;
    val partial;
    var half; /* byte offset of the half in use */
} block_sums;
block_sums block_sums_new(ptx *p, unsigned num_warps, unsigned count);
#define BLOCK_SUMS_SHARED "8*num_warps*min(1, num_warps-1)"
void block_sums_next(ptx *p, const block_sums *s, val *values);

/* Sums that end up in different threads, which takes far fewer shuffles for many of them: a thread
 * has sum number number, or none where that is count or more. In one warp lanes neighbours have the
 * same sum, only the first of them with its number. group_sum_spread sums over groups of lanes of a
 * warp, no more sums than lanes. */
typedef struct spread_sums {
    val number, sum;
    unsigned lanes;
} spread_sums;
spread_sums block_sum_spread(ptx *p, const val *values, unsigned count, unsigned num_warps);
spread_sums block_sums_next_spread(ptx *p, const block_sums *s, const val *values);
spread_sums group_sum_spread(ptx *p, const val *values, unsigned count, unsigned group);

/* Returns true for the last of blocks that count by a counter in global memory, which it resets:
 * what the others have stored is there. All threads call it; ticket is a word of shared memory. */
val block_is_last(ptx *p, val counter, val blocks, val ticket);

/* Returns what an RMS norm multiplies values by, beside their weights: 1 / sqrt(mean + epsilon) of
 * the mean of their squares; of an infinite mean 0, or NaN. */
val norm_factor(ptx *p, const instance *in, val mean);
val norm_factor_or_nan(ptx *p, const instance *in, val mean);

/* The sum of the squares of a chunk, of which each lane of the warp has count values; and the mean
 * of all of a row, whose chunks' sums stand from an address of shared memory on: a lane adds up
 * every 32nd. So the order of additions follows from the chunks alone. */
val norm_chunk_squares(ptx *p, const val *x, unsigned count);
val norm_mean_of_chunks(ptx *p, const instance *in, val sums, unsigned chunks);

/* A float as a u32 that compares as floats do; -0 is 0, every NaN the largest number. 0 is none. */
enum { HEIGHT_BITS = 32 };
#define HEIGHT_NAN            0xffffffff
#define HEIGHT_INFINITY       0xff800000
#define HEIGHT_MINUS_INFINITY 0x007fffff
val height_of_float(ptx *p, val number);
val float_of_height(ptx *p, val height);

/* Returns true if a number comes before another one: the larger height first, then the lower
 * number. */
val is_ahead(ptx *p, val height, val number, val other_height, val other_number);

/* The first so far, and the first of what the lanes of a warp have, told to all of them. */
typedef struct first_number {
    var height, number;
} first_number;
void take_if_ahead(ptx *p, const first_number *f, val height, val number);
void first_of_warp(ptx *p, const first_number *f);

#endif
