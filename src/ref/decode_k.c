/* Super-blocks of 256 weights: K-quants, whose sub-blocks have scales, and ternary formats (tq),
 * whose q - 1 is -1, 0 or 1.
 *
 * Source: ggml, src/ggml-quants.c (dequantize_row_*).
 *
 *   q2_K    w = d * scale[index / 16] * q - dmin * min[index / 16]
 *      0    16 x u8     scale in the low nibble, min in the high one
 *     16    64 x u8     two-bit values (two_bits in codec.h)
 *     80    fp16 d
 *     82    fp16 dmin
 *
 *   q3_K    w = d * (scale[index / 16] - 32) * (q - (high bit set ? 0 : 4))
 *      0    32 x u8     high bit of index: bit index / 32 of byte index % 32
 *     32    64 x u8     two-bit values
 *     96    12 x u8     16 six-bit scales: the low four bits of scale k are in byte k % 8, in the
 *                       low nibble for k < 8, else the high one; the upper two in byte 8 + k % 4,
 *                       from bit 2 (k / 4)
 *    108    fp16 d
 *
 *   q4_K    w = d * scale[j] * q - dmin * min[j],  j = index / 32
 *      0    fp16 d
 *      2    fp16 dmin
 *      4    12 x u8     8 six-bit scales and 8 six-bit mins. Sub-blocks 0 to 3: the low six bits of
 *                       bytes 0..3 (scales) and 4..7 (mins). Sub-blocks 4 to 7: low four bits in
 *                       bytes 8..11 (scale low nibble, min high nibble), upper two bits in the top
 *                       bits of bytes 0..3 (scales) and 4..7 (mins)
 *     16    128 x u8    byte i of chunk c: weight 64c + i (low nibble), 64c + 32 + i (high)
 *
 *   q5_K    as q4_K, with a fifth bit
 *      0    fp16 d
 *      2    fp16 dmin
 *      4    12 x u8     scales and mins as in q4_K
 *     16    32 x u8     fifth bit of index: bit index / 32 of byte index % 32
 *     48    128 x u8    nibbles as in q4_K
 *
 *   q6_K    w = d * scale[index / 16] * (q - 32)
 *      0    128 x u8    low nibbles: byte 64h + 32(g & 1) + l, low half for g < 2
 *    128    64 x u8     upper two bits, as two-bit values
 *    192    16 x s8     scales                    index = 128h + 32g + l
 *    208    fp16 d
 *
 *   tq1_0   w = d * (q - 1)
 *      0    32 x u8     byte i: weights i, 32 + i .. 128 + i, a trit each
 *     32    16 x u8     byte i: weights 160 + i, 176 + i .. 224 + i
 *     48    4 x u8      byte i: weights 240 + i, 244 + i .. 252 + i
 *     52    fp16 d
 *           A byte is the fraction 0.t0 t1 t2 t3 t4 in base 3, times 256. Trit n is the integer
 *           part of 3 times the fraction of byte * 3^n / 256.
 *
 *   tq2_0   w = d * (q - 1); q = 3 decodes, too
 *      0    64 x u8     two-bit values (two_bits in codec.h)
 *     64    fp16 d */
#include <stddef.h>

#include "ref/codec.h"

/* Returns a one-bit value. The eight values of a byte are 32 apart. */
static int one_bit(const uint8_t *bits, int index)
{
    return bits[index % 32] >> (index / 32) & 1;
}

static void decode_q2_k(const uint8_t *block, float *w)
{
    float d = load_half(block + Q2_K_D), dmin = load_half(block + Q2_K_DMIN);
    for (int i = 0; i < Q2_K_VALUES; i++) {
        int scale_and_min = block[Q2_K_SCALES + i / 16];
        float sub_scale = d * (float)(scale_and_min & 15);
        float sub_min = dmin * (float)(scale_and_min >> 4);
        w[i] = sub_scale * (float)two_bits(block + Q2_K_QUANTS, i) - sub_min;
    }
}

static void decode_q3_k(const uint8_t *block, float *w)
{
    float d = load_half(block + Q3_K_D);
    const uint8_t *packed = block + Q3_K_SCALES;
    for (int i = 0; i < Q3_K_VALUES; i++) {
        int k = i / 16;
        int scale =
            (packed[k % 8] >> (k < 8 ? 0 : 4) & 15) | (packed[8 + k % 4] >> (2 * (k / 4)) & 3) << 4;
        int q = two_bits(block + Q3_K_QUANTS, i) - (one_bit(block + Q3_K_HIGH_BITS, i) ? 0 : 4);
        w[i] = d * (float)(scale - 32) * (float)q;
    }
}

/* Decodes q4_K, or q5_K if fifth is not NULL. */
static void decode_with_mins(const uint8_t *block, const uint8_t *nibbles, const uint8_t *fifth,
                             float *w)
{
    float d = load_half(block + Q4_K_D), dmin = load_half(block + Q4_K_DMIN);
    const uint8_t *packed = block + Q4_K_SCALES;
    for (int j = 0; j < 8; j++) {
        int scale = j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
        int min = j < 4 ? packed[j + 4] & 63 : packed[j + 4] >> 4 | packed[j] >> 6 << 4;
        float sub_scale = d * (float)scale, sub_min = dmin * (float)min;
        for (int i = 32 * j; i < 32 * (j + 1); i++) {
            int q = nibbles[32 * (j / 2) + i % 32] >> (4 * (j % 2)) & 15;
            if (fifth)
                q |= one_bit(fifth, i) << 4;
            w[i] = sub_scale * (float)q - sub_min;
        }
    }
}

static void decode_q4_k(const uint8_t *block, float *w)
{
    decode_with_mins(block, block + Q4_K_QUANTS, NULL, w);
}

static void decode_q5_k(const uint8_t *block, float *w)
{
    decode_with_mins(block, block + Q5_K_QUANTS, block + Q5_K_FIFTH_BITS, w);
}

static void decode_q6_k(const uint8_t *block, float *w)
{
    const uint8_t *low = block + Q6_K_QUANTS, *scales = block + Q6_K_SCALES;
    float d = load_half(block + Q6_K_D);
    for (int i = 0; i < Q6_K_VALUES; i++) {
        int half = i / 128, group = i % 128 / 32, l = i % 32;
        int nibble = low[64 * half + 32 * (group & 1) + l] >> (group < 2 ? 0 : 4) & 15;
        int q = nibble | two_bits(block + Q6_K_HIGH_BITS, i) << 4;
        w[i] = d * (float)(int8_t)scales[i / 16] * (float)(q - 32);
    }
}

static void decode_tq1_0(const uint8_t *block, float *w)
{
    /* Byte ranges: each byte has a weight per trit, width apart. */
    static const struct {
        int first, width;
        unsigned trits;
    } parts[] = { { TQ1_0_QUANTS, 32, 5 },
                  { TQ1_0_QUANTS + 32, 16, 5 },
                  { TQ1_0_LAST_QUANTS, 4, 4 } };
    float d = load_half(block + TQ1_0_D);
    for (int part = 0; part < 3; part++)
        for (unsigned n = 0, power = 1; n < parts[part].trits; n++, power *= 3)
            for (int i = 0; i < parts[part].width; i++) {
                unsigned trit = (block[parts[part].first + i] * power & 255) * 3 >> 8;
                *w++ = d * (float)((int)trit - 1);
            }
}

static void decode_tq2_0(const uint8_t *block, float *w)
{
    float d = load_half(block + TQ2_0_D);
    for (int i = 0; i < TQ2_0_VALUES; i++)
        w[i] = d * (float)(two_bits(block + TQ2_0_QUANTS, i) - 1);
}

const codec codec_Q2_K = { decode_q2_k,
                           .scales = { { Q2_K_D, 4e-3f, false }, { Q2_K_DMIN, 6e-3f, false } } };
const codec codec_Q3_K = { decode_q3_k, .scales = { { Q3_K_D, 1e-3f, true } } };
const codec codec_Q4_K = { decode_q4_k,
                           .scales = { { Q4_K_D, 2e-4f, false }, { Q4_K_DMIN, 1.5e-3f, false } } };
const codec codec_Q5_K = { decode_q5_k,
                           .scales = { { Q5_K_D, 1e-4f, false }, { Q5_K_DMIN, 1.5e-3f, false } } };
const codec codec_Q6_K = { decode_q6_k, .scales = { { Q6_K_D, 4e-5f, true } } };
const codec codec_TQ1_0 = { decode_tq1_0, .scales = { { TQ1_0_D, 5e-2f, false } } };
const codec codec_TQ2_0 = { decode_tq2_0, .scales = { { TQ2_0_D, 4e-2f, false } } };
