/* ggml's block formats: decoding to float, and the q8_1 quantizer.
 *
 * Offsets are bytes inside one block; fp16 and words are little-endian. A row is always whole
 * blocks; blocks follow each other without padding.
 *
 *   q4_0    32 weights in 18 bytes          w = d * (q - 8)
 *      0    fp16 d
 *      2    16 x u8     byte j: weight j in the low nibble, weight j + 16 in the high one
 *
 *   q5_0    32 weights in 22 bytes          w = d * (q - 16)
 *      0    fp16 d
 *      2    u32         bit i is the fifth bit of weight i
 *      6    16 x u8     nibbles as in q4_0
 *
 *   q8_0    32 weights in 34 bytes          w = d * q
 *      0    fp16 d
 *      2    32 x s8
 *
 *   q8_1    32 activations in 36 bytes      x = d * q
 *      0    fp16 d      amax / 127
 *      2    fp16 s      sum of q, times d before its rounding to fp16
 *      4    32 x s8
 *
 *   q4_K    256 weights in 144 bytes        w = d * scale[j] * q - dmin * min[j],  j = index / 32
 *      0    fp16 d
 *      2    fp16 dmin
 *      4    12 x u8     8 six-bit scales and 8 six-bit mins: of sub-blocks 0 to 3 in the low six
 *                       bits of bytes 0..3 (scales) and 4..7 (mins); of 4 to 7 four bits in bytes
 *                       8..11 (scale low nibble, min high nibble), the upper two bits in the top
 *                       bits of bytes 0..3 (scales) and 4..7 (mins)
 *     16    128 x u8    byte i of chunk c: weight 64c + i (low nibble), 64c + 32 + i (high)
 *
 *   q6_K    256 weights in 210 bytes        w = d * scale[index / 16] * (q - 32)
 *      0    128 x u8    low nibbles: byte 64h + 32(g & 1) + l, low half where g < 2
 *    128    64 x u8     upper two bits: bits 2g, 2g + 1 of byte 32h + l
 *    192    16 x s8     scales                    index = 128h + 32g + l
 *    208    fp16 d
 *
 * Only q4_K (16 bytes) and q8_1 (4 bytes) keep more than a 2-byte alignment.
 */
#ifndef PTXGEN_REF_QUANT_H
#define PTXGEN_REF_QUANT_H

#include <stdint.h>

#include "ref/format.h"

enum { Q8_1_VALUES = 32, Q8_1_BYTES = 36, Q8_1_LARGEST = 127 };

/* The fields of one q8_1 block. */
typedef struct q8_1_block {
    float d, s;
    int8_t q[Q8_1_VALUES];
} q8_1_block;

/* Decodes a number of values that is a multiple of the format's block, exactly as ggml's
 * dequantize_row does in float. */
void ref_decode(format f, const void *blocks, uint64_t values, float *decoded);

q8_1_block q8_1_load(const void *block);

/* Quantizes a multiple of 32 values as ggml's CPU code does, to the bit: d = amax / 127, q = x / d
 * rounded half away from zero (both before d is rounded to fp16). */
void ref_encode_q8_1(const float *x, uint64_t values, void *blocks);

#endif
