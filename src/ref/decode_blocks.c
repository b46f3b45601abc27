/* Formats of 32 weights with one scale, or a scale and a minimum; and those of few bits a weight
 * with one scale, neighbouring weights side by side in a byte.
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
 *   q1_0    w = d where the bit is set, else -d
 *      0    fp16 d
 *      2    16 x u8     bit i % 8 of byte i / 8 is weight i's
 *
 *   q2_0    w = d * (q - 1); q = 3 decodes too
 *      0    fp16 d
 *      2    16 x u8     two bits of each weight: weight i's are bits 2 (i % 4) on of byte i / 4.
 *                       Not two_bits (codec.h), whose four weights of a byte stand 32 apart
 */
#include "ref/codec.h"

static int four_bits(const uint8_t *nibbles, int i)
{
    return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
}

static int five_bits(const uint8_t *fifth, const uint8_t *nibbles, int i)
{
    return four_bits(nibbles, i) | (fifth[i / 8] >> (i % 8) & 1) << 4;
}

static void decode_q4_0(const uint8_t *block, float *w)
{
    float d = load_half(block + Q4_0_D);
    for (int i = 0; i < Q4_0_VALUES; i++)
        w[i] = d * (float)(four_bits(block + Q4_0_QUANTS, i) - 8);
}

static void decode_q4_1(const uint8_t *block, float *w)
{
    float d = load_half(block + Q4_1_D), min = load_half(block + Q4_1_MIN);
    for (int i = 0; i < Q4_1_VALUES; i++)
        w[i] = d * (float)four_bits(block + Q4_1_QUANTS, i) + min;
}

static void decode_q5_0(const uint8_t *block, float *w)
{
    float d = load_half(block + Q5_0_D);
    for (int i = 0; i < Q5_0_VALUES; i++)
        w[i] = d * (float)(five_bits(block + Q5_0_FIFTH_BITS, block + Q5_0_QUANTS, i) - 16);
}

static void decode_q5_1(const uint8_t *block, float *w)
{
    float d = load_half(block + Q5_1_D), min = load_half(block + Q5_1_MIN);
    for (int i = 0; i < Q5_1_VALUES; i++)
        w[i] = d * (float)five_bits(block + Q5_1_FIFTH_BITS, block + Q5_1_QUANTS, i) + min;
}

static void decode_q8_0(const uint8_t *block, float *w)
{
    float d = load_half(block + Q8_0_D);
    for (int i = 0; i < Q8_0_VALUES; i++)
        w[i] = d * (float)(int8_t)block[Q8_0_QUANTS + i];
}

static void decode_q1_0(const uint8_t *block, float *w)
{
    float d = load_half(block + Q1_0_D);
    for (int i = 0; i < Q1_0_VALUES; i++)
        w[i] = block[Q1_0_BITS + i / 8] >> (i % 8) & 1 ? d : -d;
}

static void decode_q2_0(const uint8_t *block, float *w)
{
    float d = load_half(block + Q2_0_D);
    for (int i = 0; i < Q2_0_VALUES; i++)
        w[i] = d * (float)((block[Q2_0_QUANTS + i / 4] >> (2 * (i % 4)) & 3) - 1);
}

const codec codec_Q4_0 = { decode_q4_0, .scales = { { Q4_0_D, 1e-2f, true } } };
const codec codec_Q4_1 = { decode_q4_1,
                           .scales = { { Q4_1_D, 5e-3f, false }, { Q4_1_MIN, 4e-2f, true } } };
const codec codec_Q5_0 = { decode_q5_0, .scales = { { Q5_0_D, 5e-3f, true } } };
const codec codec_Q5_1 = { decode_q5_1,
                           .scales = { { Q5_1_D, 2.5e-3f, false }, { Q5_1_MIN, 4e-2f, true } } };
const codec codec_Q8_0 = { decode_q8_0, .scales = { { Q8_0_D, 7e-4f, false } } };
const codec codec_Q1_0 = { decode_q1_0, .scales = { { Q1_0_D, 5e-2f, false } } };
const codec codec_Q2_0 = { decode_q2_0, .scales = { { Q2_0_D, 4e-2f, false } } };
