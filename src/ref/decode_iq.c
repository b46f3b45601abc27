/* Super-blocks of 256 weights that are looked up in grids (grid.h): an index selects a run of 8
 * (iq1, iq2) or 4 (iq3) weights. Run r has the weights from 8r or 4r on. Words are little-endian, j
 * = weight / 32. Source: ggml, src/ggml-quants.c (dequantize_row_*).
 *
 *   iq2_xxs  w = d * (2 * scale[j] + 1) / 8 * sign * value
 *      0    fp16 d
 *      2    8 x 8 u8    4 indices of runs 4j + l, then a word: sign code of run 4j + l in 7 bits
 *                       from bit 7l, scale in bits 28..31. A sign code has the signs of 7 weights
 *                       (set = minus). The eighth makes the number of minus signs even
 *
 *   iq2_xs   w = d * (2 * scale[weight / 16] + 1) / 8 * sign * value
 *      0    fp16 d
 *      2    32 x u16    index of a run in bits 0..8, its sign code in 9..15
 *     66    8 x u8      scales, the first one in the low nibble
 *
 *   iq2_s    w as in iq2_xs
 *      0    fp16 d
 *      2    32 x u8     low eight bits of indices
 *     34    32 x u8     signs of the 8 weights of a run
 *     66    8 x u8      upper two bits of the index of run r: byte r / 4 from bit 2 (r % 4)
 *     74    8 x u8      scales as in iq2_xs
 *
 *   iq3_xxs  w = d * (2 * scale[j] + 1) / 4 * sign * value
 *      0    fp16 d
 *      2    64 x u8     indices
 *     66    8 x u32     sign codes of 8 weights (two runs) each and scale as in iq2_xxs
 *
 *   iq3_s    w = d * (2 * scale[j] + 1) * sign * value
 *      0    fp16 d
 *      2    64 x u8     low eight bits of indices
 *     66    8 x u8      ninth bit of the index of run r: bit r % 8 of byte r / 8
 *     74    32 x u8     signs of 8 weights (two runs) each
 *    106    4 x u8      scales, the first one in the low nibble
 *
 *   iq1_s    w = d * (2 * scale[j] + 1) * (value + delta[j])
 *      0    fp16 d
 *      2    32 x u8     low eight bits of indices
 *     34    8 x u16     upper three bits of the index of run 4j + l from bit 3l, scale in bits
 *                       12..14, bit 15: delta is -1/8 if set, else +1/8
 *
 *   iq1_m    w = d * (2 * scale[weight / 16] + 1) * (value + delta[r])
 *      0    32 x u8     low eight bits of indices
 *     32    16 x u8     a nibble per run, the first one low: upper three bits of its index, and
 *                       delta as in iq1_s
 *     48    4 x u16     word k: scales of 16 weights each from 64k on, three bits each, the first
 *                       one lowest; bits 12..15 are bits 4k..4k + 3 of fp16 d */
#include "kernel/grid.h"
#include "ref/codec.h"

static unsigned load_u32(const uint8_t *bytes)
{
    return load_u16(bytes) | load_u16(bytes + 2) << 16;
}

static int nibble(const uint8_t *nibbles, int i)
{
    return nibbles[i / 2] >> (4 * (i % 2)) & 15;
}

/* Expands a 7-bit sign code to the signs of 8 weights. */
static unsigned signs_of_code(unsigned code)
{
    unsigned parity = code ^ code >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return code | (parity & 1) << 7;
}

static void decode_signed(const weight_grid *g, unsigned index, unsigned signs, float scale,
                          float *w)
{
    uint64_t values = grid_values(g, index);
    for (unsigned i = 0; i < g->run; i++) {
        int value = (int)(values >> (8 * i) & 0xff), sign = 1 - 2 * (int)(signs >> i & 1);
        w[i] = scale * (float)(sign * value);
    }
}

static void decode_iq2_xxs(const uint8_t *block, float *w)
{
    float d = load_half(block + IQ2_XXS_D);
    for (int r = 0; r < 32; r++) {
        const uint8_t *indices = block + IQ2_XXS_GROUPS + 8 * (r / 4);
        unsigned word = load_u32(indices + 4), code = word >> (7 * (r % 4)) & 127;
        decode_signed(&grid_iq2_xxs, indices[r % 4], signs_of_code(code),
                      d * (float)(2 * (word >> 28) + 1) / 8, w + 8 * r);
    }
}

static void decode_iq2_xs(const uint8_t *block, float *w)
{
    float d = load_half(block + IQ2_XS_D);
    for (int r = 0; r < 32; r++) {
        unsigned word = load_u16(block + IQ2_XS_INDICES + 2 * r);
        int scale = nibble(block + IQ2_XS_SCALES, r / 2);
        decode_signed(&grid_iq2_xs, word & 511, signs_of_code(word >> 9),
                      d * (float)(2 * scale + 1) / 8, w + 8 * r);
    }
}

static void decode_iq2_s(const uint8_t *block, float *w)
{
    float d = load_half(block + IQ2_S_D);
    for (int r = 0; r < 32; r++) {
        unsigned high = block[IQ2_S_INDICES_HIGH + r / 4] >> (2 * (r % 4)) & 3;
        int scale = nibble(block + IQ2_S_SCALES, r / 2);
        decode_signed(&grid_iq2_s, block[IQ2_S_INDICES + r] | high << 8, block[IQ2_S_SIGNS + r],
                      d * (float)(2 * scale + 1) / 8, w + 8 * r);
    }
}

static void decode_iq3_xxs(const uint8_t *block, float *w)
{
    float d = load_half(block + IQ3_XXS_D);
    for (int r = 0; r < 64; r++) {
        unsigned word = load_u32(block + IQ3_XXS_SIGNS + 4 * (r / 8));
        unsigned signs = signs_of_code(word >> (7 * (r % 8 / 2)) & 127);
        decode_signed(&grid_iq3_xxs, block[IQ3_XXS_INDICES + r], signs >> (4 * (r % 2)),
                      d * (float)(2 * (word >> 28) + 1) / 4, w + 4 * r);
    }
}

static void decode_iq3_s(const uint8_t *block, float *w)
{
    float d = load_half(block + IQ3_S_D);
    for (int r = 0; r < 64; r++) {
        unsigned high = block[IQ3_S_INDICES_HIGH + r / 8] >> (r % 8) & 1;
        unsigned signs = block[IQ3_S_SIGNS + r / 2];
        int scale = nibble(block + IQ3_S_SCALES, r / 8);
        decode_signed(&grid_iq3_s, block[IQ3_S_INDICES + r] | high << 8, signs >> (4 * (r % 2)),
                      d * (float)(2 * scale + 1), w + 4 * r);
    }
}

/* Decodes a run of iq1. The nibble has the upper three bits of its index, and delta. */
static void decode_ternary(unsigned low, unsigned high_and_delta, float scale, float *w)
{
    uint64_t values = grid_values(&grid_iq1, low | (high_and_delta & 7) << 8);
    float delta = high_and_delta & 8 ? -0.125f : 0.125f;
    for (int i = 0; i < 8; i++)
        w[i] = scale * ((float)(int8_t)(values >> (8 * i) & 0xff) + delta);
}

static void decode_iq1_s(const uint8_t *block, float *w)
{
    float d = load_half(block + IQ1_S_D);
    for (int r = 0; r < 32; r++) {
        unsigned word = load_u16(block + IQ1_S_INDICES_HIGH + 2 * (r / 4));
        unsigned high = word >> (3 * (r % 4)) & 7, delta = word >> 15, scale = word >> 12 & 7;
        decode_ternary(block[IQ1_S_INDICES + r], high | delta << 3, d * (float)(2 * scale + 1),
                       w + 8 * r);
    }
}

static void decode_iq1_m(const uint8_t *block, float *w)
{
    const uint8_t *words = block + IQ1_M_SCALES;
    unsigned d_bits = 0;
    for (int k = 0; k < 4; k++)
        d_bits |= load_u16(words + 2 * k) >> 12 << (4 * k);
    float d = half_to_float((uint16_t)d_bits);
    for (int r = 0; r < 32; r++) {
        unsigned scale = load_u16(words + 2 * (r / 8)) >> (3 * (r % 8 / 2)) & 7;
        decode_ternary(block[IQ1_M_INDICES + r], (unsigned)nibble(block + IQ1_M_INDICES_HIGH, r),
                       d * (float)(2 * scale + 1), w + 8 * r);
    }
}

static void set_iq1_m_scale(uint8_t *block, fill_kind kind, random_source *r)
{
    unsigned d = random_scale(7e-3f, false, kind, r);
    for (int k = 0; k < 4; k++) {
        uint8_t *high = block + IQ1_M_SCALES + 2 * k + 1;
        *high = (uint8_t)((*high & 15) | (d >> (4 * k) & 15) << 4);
    }
}

const codec codec_IQ2_XXS = { decode_iq2_xxs, .scales = { { IQ2_XXS_D, 8e-4f, false } } };
const codec codec_IQ2_XS = { decode_iq2_xs, .scales = { { IQ2_XS_D, 8e-4f, false } } };
const codec codec_IQ2_S = { decode_iq2_s, .scales = { { IQ2_S_D, 8e-4f, false } } };
const codec codec_IQ3_XXS = { decode_iq3_xxs, .scales = { { IQ3_XXS_D, 3e-4f, false } } };
const codec codec_IQ3_S = { decode_iq3_s, .scales = { { IQ3_S_D, 3e-4f, false } } };
const codec codec_IQ1_S = { decode_iq1_s, .scales = { { IQ1_S_D, 7e-3f, false } } };
const codec codec_IQ1_M = { decode_iq1_m, .set_scales = set_iq1_m_scale };
