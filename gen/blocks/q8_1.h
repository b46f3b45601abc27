/* q8_1: 32 activations in 36 bytes, as ggml stores them (block_q8_1).
 *
 *   offset  0  f16  d        value = d * q
 *           2  f16  s        d * sum(q), before d was rounded
 *           4  32 x s8       q
 *
 * A block is a multiple of 4 bytes: quants can be read as aligned words from an aligned start.
 */
#ifndef PTXGEN_GEN_BLOCKS_Q8_1_H
#define PTXGEN_GEN_BLOCKS_Q8_1_H

#include "ptx/ptx.h"

enum { Q8_1_VALUES = 32, Q8_1_BYTES = 36, Q8_1_D = 0, Q8_1_S = 2, Q8_1_QUANTS = 4 };

/* Quantizing in registers: d of the largest size of 32 values, and four values as signed bytes,
 * rounded to nearest even, where inverse is 1 / d. */
val q8_scale(ptx *p, val largest);
val q8_pack(ptx *p, const val x[4], val inverse);

/* Integers below 2^22 become floats without a conversion: a sum that starts at the bits of
 * 1.5 * 2^23 ends as the bits of 1.5 * 2^23 + sum. */
enum { DP4A_START = 0x4b400000 };
val dp4a_sum_as_f32(ptx *p, val sum);

#endif
