/* Formats of 32 weights with a scale, or a scale and a minimum; and formats of one or two bits with
 * a scale, whose adjacent weights share a byte.
 *
 * Source: ggml, src/ggml-quants.c (dequantize_row_*).
 *
 *   q4_0    w = d * (q - 8)
 *      0    fp16 d
 *      2    16 x u8     byte j: weight j in the low nibble, weight j + 16 in the high one
 *
 *   q4_1    w = d * q + min
 *      0    fp16 d
 *      2    fp16 min
 *      4    16 x u8     nibbles as in q4_0
 *
 *   q5_0    w = d * (q - 16)
 *      0    fp16 d
 *      2    u32         bit i is the fifth bit of weight i
 *      6    16 x u8     nibbles as in q4_0
 *
 *   q5_1    w = d * q + min
 *      0    fp16 d
 *      2    fp16 min
 *      4    u32         fifth bits as in q5_0
 *      8    16 x u8     nibbles as in q4_0
 *
 *   q8_0    w = d * q
 *      0    fp16 d
 *      2    32 x s8
 *
 *   q1_0    w = bit ? d : -d
 *      0    fp16 d
 *      2    16 x u8     weight i: bit i % 8 of byte i / 8
 *
 *   q2_0    w = d * (q - 1); q = 3 decodes, too
 *      0    fp16 d
 *      2    16 x u8     weight i: two bits from bit 2 (i % 4) of byte i / 4. Unlike two_bits
 *                       (codec.h), where the four weights of a byte are 32 apart */
#include "ref/codec.h"

static int four_bits(const uint8_t *nibbles, int i)
{
    return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
}

static int five_bits(const uint8_t *fifth, const uint8_t *nibbles, int i)
{
    return four_bits(nibbles, i) | (fifth[i / 8] >> (i % 8) & 1) << 4;
}

/* Define a codec by q in terms of block and i: w = d q, or d q + min, with random sizes. */
#define WITH_SCALE(id, q, size, either_sign)                \
    static void decode_##id(const uint8_t *block, float *w) \
    {                                                       \
        float d = load_half(block + id##_D);                \
        for (int i = 0; i < id##_VALUES; i++)               \
            w[i] = d * (float)(q);                          \
    }                                                       \
    const codec codec_##id = { decode_##id, .scales = { { id##_D, size, either_sign } } };
#define WITH_MIN(id, q, size, min_size)                                          \
    static void decode_##id(const uint8_t *block, float *w)                      \
    {                                                                            \
        float d = load_half(block + id##_D), min = load_half(block + id##_MIN);  \
        for (int i = 0; i < id##_VALUES; i++)                                    \
            w[i] = d * (float)(q) + min;                                         \
    }                                                                            \
    const codec codec_##id = { decode_##id, .scales = { { id##_D, size, false }, \
                                                        { id##_MIN, min_size, true } } };

WITH_SCALE(Q4_0, four_bits(block + Q4_0_QUANTS, i) - 8, 1e-2f, true)
WITH_MIN(Q4_1, four_bits(block + Q4_1_QUANTS, i), 5e-3f, 4e-2f)
WITH_SCALE(Q5_0, five_bits(block + Q5_0_FIFTH_BITS, block + Q5_0_QUANTS, i) - 16, 5e-3f, true)
WITH_MIN(Q5_1, five_bits(block + Q5_1_FIFTH_BITS, block + Q5_1_QUANTS, i), 2.5e-3f, 4e-2f)
WITH_SCALE(Q8_0, (int8_t)block[Q8_0_QUANTS + i], 7e-4f, false)
WITH_SCALE(Q1_0, block[Q1_0_BITS + i / 8] >> (i % 8) & 1 ? 1 : -1, 5e-2f, false)
WITH_SCALE(Q2_0, (block[Q2_0_QUANTS + i / 4] >> (2 * (i % 4)) & 3) - 1, 4e-2f, false)
