/* q8_1: 32 activations in 36 bytes, as ggml stores them (block_q8_1).
 *
 *   offset  0  f16  d        value = d * q
 *           2  f16  s        d * sum(q), before d was rounded
 *           4  32 x s8       q
 *
 * A block is a multiple of 4 bytes: quants can be read as aligned words from an aligned start.
 */
#ifndef PTXGEN_GEN_COMMON_Q8_1_H
#define PTXGEN_GEN_COMMON_Q8_1_H

#include "kernel/format.h"
#include "ptx/ptx.h"

/* Quantize in registers: the largest size of values and of an earlier one, d of that of 32 values,
 * and four values as signed bytes, rounded to nearest even, where inverse is 1 / d.
 *
 * Sizes are the bits of floats: these have the floats' order, and a NaN is above infinity, so that
 * d shows either. The first one is Q8_SMALLEST, 1e-30, which keeps 1 / d finite. */
enum { Q8_SMALLEST = 0x0da24260 };
val q8_largest(ptx *p, val largest, const val *x, unsigned count);
val q8_scale(ptx *p, val largest);
val q8_pack(ptx *p, const val x[4], val inverse);

/* 16 values of the lane and 16 of its neighbour's, lane 2i's first: their d, and the lane's as
 * bytes of words. */
enum { Q8_SEGMENT = 16, Q8_SEGMENT_WORDS = 4 };
val q8_segment(ptx *p, const val x[Q8_SEGMENT], val q[Q8_SEGMENT_WORDS]);

/* A block of the warp's 32 values, one a lane, to the bit as ggml's quantize_row_q8_0_ref and
 * quantize_row_q8_1_ref: d = amax / 127 before it is rounded to f16, q = x * (1 / d) rounded half
 * away from zero. All lanes take part. */
typedef struct q8_lane {
    val d, q;
} q8_lane;
q8_lane q8_quantize_lane(ptx *p, val x);

/* Stores the block of such values at an address. */
void q8_1_store_warp(ptx *p, val block, val x);

/* Integers below 2^22 become floats without a conversion: a sum that starts at the bits of
 * 1.5 * 2^23 ends as the bits of 1.5 * 2^23 + sum. */
enum { DP4A_START = 0x4b400000 };
val dp4a_sum_as_f32(ptx *p, val sum);

#endif
