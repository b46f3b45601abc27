/* Reductions over a warp and over a block: sums, maxima, norms, the first of several candidates. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

/* Return the lane's index in its group of neighbouring lanes (a power of two), and the group's. */
val lane_in_group(ptx *p, unsigned group);
val group_of_lane(ptx *p, unsigned group);

/* Butterfly reductions; every lane gets the result. group_ functions reduce over width neighbouring
 * lanes, lanes_ functions over lanes whose index differs in bits first up to end (powers of two).
 */
val group_sum(ptx *p, val v, unsigned width);
val group_max(ptx *p, val v, unsigned width);
#define warp_sum(p, v) group_sum(p, v, 32)
#define warp_max(p, v) group_max(p, v, 32)
val lanes_sum(ptx *p, val v, unsigned first, unsigned end);
val lanes_max(ptx *p, val v, unsigned first, unsigned end);

/* Sum over a block of num_warps warps, with one barrier; only warp 0 gets the results. Every thread
 * must call it, and a kernel may call it once: it allocates 4 bytes of shared memory per warp and
 * sum. */
enum { MAX_SUMS = 16 };
val block_sum(ptx *p, val v, unsigned num_warps);
void block_sum_each(ptx *p, val *values, unsigned count, unsigned num_warps);
#define BLOCK_SUM_SHARED "4*num_warps*min(1, num_warps-1)"

/* Sums over a block inside a loop, for example over rows. The shared memory is double-buffered (8
 * bytes per warp and sum), so that one barrier per call is enough. A warp writes to a half again
 * only after the next barrier, and warp 0 has read that half by then. */
typedef struct block_sums {
    unsigned num_warps, count;
    val partial;
    var half; /* byte offset of the current half */
} block_sums;
block_sums block_sums_new(ptx *p, unsigned num_warps, unsigned count);
#define BLOCK_SUMS_SHARED "8*num_warps*min(1, num_warps-1)"
void block_sums_next(ptx *p, const block_sums *s, val *values);

/* Sums that end up in different threads, which takes far fewer shuffles when there are many sums.
 * The thread's result is sum number `number`; count or more means that it has no result. Within a
 * warp, `lanes` neighbours hold the same sum, and only the first of them has its number.
 * group_sum_spread needs at least as many lanes in a group as sums. */
typedef struct spread_sums {
    val number, sum;
    unsigned lanes;
} spread_sums;
spread_sums block_sum_spread(ptx *p, const val *values, unsigned count, unsigned num_warps);
spread_sums block_sums_next_spread(ptx *p, const block_sums *s, const val *values);
spread_sums group_sum_spread(ptx *p, const val *values, unsigned count, unsigned group);

/* Counts arriving blocks in global memory and returns true in the last one, which resets the
 * counter. Stores of the other blocks are visible to it. All threads must call it; ticket is a word
 * of shared memory. */
val block_is_last(ptx *p, val counter, val blocks, val ticket);

/* Returns the factor of an RMS norm, 1 / sqrt(mean + epsilon), where mean is the mean square. For
 * an infinite mean, norm_factor returns 0 and norm_factor_or_nan returns NaN. */
val norm_factor(ptx *p, const instance *in, val mean);
val norm_factor_or_nan(ptx *p, const instance *in, val mean);

/* An order of the five bits of a lane's index. */
typedef struct lane_bits {
    unsigned of[5];
} lane_bits;

/* Returns the sum of squares of a chunk, of which each lane of the warp has count values. Lanes are
 * added by the bits of their index, the last in `bits` first. */
val norm_chunk_squares(ptx *p, const val *x, unsigned count, const lane_bits *bits);
/* Returns the mean square of a row from the sums of its chunks in shared memory. A lane adds up
 * every 32nd chunk, so the order of additions depends only on the chunks. */
val norm_mean_of_chunks(ptx *p, const instance *in, val sums, unsigned chunks);

/* The height of a float: a u32 that orders as the floats do. -0 has the height of 0; every NaN has
 * the largest height. No float has height 0, which marks "no value". */
enum { HEIGHT_BITS = 32 };
#define HEIGHT_NAN            0xffffffff
#define HEIGHT_INFINITY       0xff800000
#define HEIGHT_MINUS_INFINITY 0x007fffff
val height_of_float(ptx *p, val number);
val float_of_height(ptx *p, val height);

/* Returns true if the first candidate comes before the other: it has the larger height, or the same
 * height and the lower number. */
val ranks_before(ptx *p, val height, val number, val other_height, val other_number);

/* The first candidate so far. first_of_warp leaves the first of all lanes in every lane. */
typedef struct first_number {
    var height, number;
} first_number;
void update_first(ptx *p, const first_number *f, val height, val number);
void first_of_warp(ptx *p, const first_number *f);
