/* q8_1: 32 activations in 36 bytes, as ggml stores them (block_q8_1).
 *
 *   offset  0  f16  d        value = d * q
 *           2  f16  s        d * sum(q), with d before it was rounded
 *           4  32 x s8       q
 *
 * A block is a multiple of 4 bytes, so quants are read as aligned words if the array is aligned.
 */
#pragma once

#include "kernel/format.h"
#include "ptx/ptx.h"

/* Quantization in registers. Magnitudes are handled as the bits of |x|, which order like the
 * floats. A NaN is above infinity, so d shows either. Q8_SMALLEST is 1e-30 and keeps 1 / d finite.
 *
 *   q8_largest   largest magnitude of count values and of an earlier largest
 *   q8_scale     d, from the largest magnitude of 32 values
 *   q8_pack      four values as signed bytes, rounded to nearest even; inverse is 1 / d */
enum { Q8_SMALLEST = 0x0da24260 };
val q8_largest(ptx *p, val largest, const val *x, unsigned count);
val q8_scale(ptx *p, val largest);
val q8_pack(ptx *p, const val x[4], val inverse);

/* Quantizes a block of 32 values that two neighbouring lanes share, 16 each; the even lane has the
 * first 16. Returns d; q is the lane's own quants as packed words. */
enum { Q8_SEGMENT = 16, Q8_SEGMENT_WORDS = 4 };
val q8_segment(ptx *p, const val x[Q8_SEGMENT], val q[Q8_SEGMENT_WORDS]);

/* Quantizes a block of 32 values, one per lane. The result has the same bits as ggml's
 * quantize_row_q8_0_ref and quantize_row_q8_1_ref: d = amax / 127 in f32, q = x * (1 / d), rounded
 * half away from zero. All lanes must call it. */
typedef struct q8_lane {
    val d, q;
} q8_lane;
q8_lane q8_quantize_lane(ptx *p, val x);

/* Quantizes the warp's 32 values, one per lane, and stores the q8_1 block. */
void q8_1_store_warp(ptx *p, val block, val x);

/* Converts a dp4a sum to f32 without cvt. A sum below 2^22 that starts at DP4A_START, the bits of
 * 1.5 * 2^23, ends as the bits of 1.5 * 2^23 + sum. */
enum { DP4A_START = 0x4b400000 };
val dp4a_sum_as_f32(ptx *p, val sum);
