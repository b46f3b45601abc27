/* Formats whose four-bit codes index a table: T of iq4, F of fp4 (grid.h), N of nf4. Source: ggml,
 * src/ggml-quants.c (dequantize_row_*), src/ggml-impl.h (scales of fp4).
 *
 *   iq4_nl  w = d * T[q]
 *      0    fp16 d
 *      2    16 x u8     byte j: weight j in the low nibble, weight j + 16 in the high one
 *
 *   iq4_xs  w = d * (scale[j] - 32) * T[q],  j = index / 32
 *      0    fp16 d
 *      2    u16         upper two bits of scale j: bits 2j, 2j + 1
 *      4    4 x u8      lower four bits of scale j: byte j / 2, low nibble for even j
 *      8    8 x 16 u8   nibbles of each sub-block as in iq4_nl
 *
 *   mxfp4   w = 2^(e - 128) * F[q]; for e = 0 and 1 that scale is subnormal, e = 255 is not NaN
 *      0    u8 e
 *      1    16 x u8     nibbles as in iq4_nl
 *
 *   nvfp4   w = scale[index / 16] / 2 * F[q]
 *      0    4 x u8      scales, ue4m3: 4 bits of exponent (bias 7), 3 of fraction, subnormals (at
 *                       least 2^-9) for exponent 0; byte 0x7f is 0, the top bit of others is
 *                       ignored
 *      4    4 x 8 u8    byte j of a sub-block: weight j in the low nibble, j + 8 in the high one
 *
 *   nf4     w = absmax * N[q], as in bitsandbytes (create_normal_map, kDequantizeBlockwise)
 *      0    f32 absmax
 *      4    32 x u8     byte j: weight 2j in the high nibble, weight 2j + 1 in the low one
 *
 *   nf4_h   as nf4, with an fp16 absmax: quants from byte 2 on */
#include <math.h>

#include "kernel/grid.h"
#include "ref/codec.h"

/* Decodes count weights. The first half is in the low nibbles. */
static void decode_nibbles(const uint8_t *nibbles, int count, float scale, const int8_t *table,
                           float *w)
{
    for (int i = 0; i < count / 2; i++) {
        w[i] = scale * (float)table[nibbles[i] & 15];
        w[i + count / 2] = scale * (float)table[nibbles[i] >> 4];
    }
}

static void decode_iq4_nl(const uint8_t *block, float *w)
{
    decode_nibbles(block + IQ4_NL_QUANTS, 32, load_half(block + IQ4_NL_D), iq4_values, w);
}

static void decode_iq4_xs(const uint8_t *block, float *w)
{
    float d = load_half(block + IQ4_XS_D);
    const uint8_t *high = block + IQ4_XS_SCALES_HIGH, *low = block + IQ4_XS_SCALES_LOW;
    for (int j = 0; j < 8; j++) {
        int scale = (low[j / 2] >> (4 * (j % 2)) & 15) | (high[j / 4] >> (2 * (j % 4)) & 3) << 4;
        decode_nibbles(block + IQ4_XS_QUANTS + 16 * j, 32, d * (float)(scale - 32), iq4_values,
                       w + 32 * j);
    }
}

static void decode_mxfp4(const uint8_t *block, float *w)
{
    decode_nibbles(block + MXFP4_QUANTS, 32, ldexpf(1, block[MXFP4_E] - 128), fp4_values, w);
}

/* Sets a random scale, like random_scale for fp16: usually about 2^-7. With FILL_TINY it is as
 * small as an fp16 subnormal, and in one of four blocks near the smallest exponent. */
static void set_mxfp4_scale(uint8_t *block, fill_kind kind, random_source *r)
{
    uint64_t bits = random_next(r);
    uint64_t e = bits & 3;
    if (kind != FILL_TINY)
        e += 119;
    else if (bits >> 2 & 3)
        e += 128 - 24;
    if (kind == FILL_HUGE)
        e += 13;
    if (kind == FILL_OUTLIERS && (bits >> 16) % 50 == 0)
        e += 4;
    block[MXFP4_E] = (uint8_t)e;
}

/* Returns half of a ue4m3: the bits of an fp16, but with bias 15, hence the factor 2^8. */
static float half_of_ue4m3(uint8_t bits)
{
    return bits == 0x7f ? 0 : 0x1p7f * half_to_float((uint16_t)((bits & 0x7f) << 7));
}

static void decode_nvfp4(const uint8_t *block, float *w)
{
    for (int j = 0; j < 4; j++)
        decode_nibbles(block + NVFP4_QUANTS + 8 * j, 16, half_of_ue4m3(block[NVFP4_SCALES + j]),
                       fp4_values, w + 16 * j);
}

/* Sets random scales, usually about 2^-6, the smallest normal one. Eight codes make an octave.
 * FILL_TINY gives subnormals, FILL_HUGE the largest values and 0x7f, which is 0. */
static void set_nvfp4_scales(uint8_t *block, fill_kind kind, random_source *r)
{
    for (int j = 0; j < 4; j++) {
        uint64_t bits = random_next(r);
        uint64_t code = kind == FILL_TINY   ? bits & 7
                        : kind == FILL_HUGE ? 0x70 + (bits & 15)
                                            : 4 + (bits & 7);
        if (kind == FILL_OUTLIERS && (bits >> 16) % 50 == 0)
            code += 34;
        block[NVFP4_SCALES + j] = (uint8_t)code;
    }
}

/* N rounded to integers by streaming products, in units of 1/914. */
static const float nf4_rounded[16] = { -914, -636, -480, -361, -260, -169, -83, 0,
                                       73,   147,  225,  309,  403,  514,  661, 914 };

static void decode_nf4_codes(const uint8_t *quants, float scale, const float *table, float *w)
{
    for (int j = 0; j < NF4_VALUES / 2; j++) {
        w[2 * j] = scale * table[quants[j] >> 4];
        w[2 * j + 1] = scale * table[quants[j] & 15];
    }
}

/* Defines the codec of a format by the function that loads absmax. */
#define NF4_CODEC(id, load, ...)                                                                \
    static void decode_##id(const uint8_t *block, float *w)                                     \
    {                                                                                           \
        decode_nf4_codes(block + id##_QUANTS, load(block + id##_ABSMAX), nf4_values, w);        \
    }                                                                                           \
    static void decode_rounded_##id(const uint8_t *block, float *w)                             \
    {                                                                                           \
        decode_nf4_codes(block + id##_QUANTS, load(block + id##_ABSMAX) / 914, nf4_rounded, w); \
    }                                                                                           \
    const codec codec_##id = { decode_##id, .decode_rounded = decode_rounded_##id,              \
                               .scales = { { id##_ABSMAX, 0.1f, true } }, __VA_ARGS__ };
NF4_CODEC(NF4, number_f32.load, .number = &number_f32)
NF4_CODEC(NF4_H, load_half, .number = NULL)

const codec codec_IQ4_NL = { decode_iq4_nl, .scales = { { IQ4_NL_D, 8e-4f, true } } };
const codec codec_IQ4_XS = { decode_iq4_xs, .scales = { { IQ4_XS_D, 4e-5f, true } } };
const codec codec_MXFP4 = { decode_mxfp4, .set_scales = set_mxfp4_scale };
const codec codec_NVFP4 = { decode_nvfp4, .set_scales = set_nvfp4_scales };
