/* Formats of single numbers: f32, f16, bf16, the upper half of an f32, and the two of 8 bits.
 *
 *   e4m3   sign, 4 bits of exponent with bias 7, 3 of mantissa; no infinities, 0x7f and 0xff are
 * NaN (E4M3FN of OCP); up to 448 e5m2   the upper byte of an f16
 */
#include <math.h>
#include <string.h>

#include "ref/codec.h"

enum { CHUNK = 256 };

static float e4m3_to_float(uint8_t byte)
{
    enum { BIAS = 7, MANTISSA_BITS = 3 };
    int exponent = byte >> MANTISSA_BITS & 15, mantissa = byte & 7;
    float magnitude = exponent ? ldexpf((float)(8 + mantissa), exponent - BIAS - MANTISSA_BITS)
                               : ldexpf((float)mantissa, 1 - BIAS - MANTISSA_BITS);
    if ((byte & 0x7f) == 0x7f)
        magnitude = NAN;
    return byte & 0x80 ? -magnitude : magnitude;
}

/* Returns the nearest value of fewer bits, ties to even, of the magnitude of an f16. */
static unsigned round_off(unsigned half, unsigned bits)
{
    return (half + (1u << (bits - 1)) - 1 + (half >> bits & 1)) >> bits;
}

/* An e4m3 is what an f16 of 2^-8 times its value has ahead of 7 further bits. */
uint8_t e4m3_from_float(float value)
{
    enum { LARGEST = 0x7e, NO_NUMBER = 0x7f };
    uint16_t half = half_from_float(value * 0x1p-8f);
    unsigned magnitude = round_off(half & 0x7fff, 7), sign = half >> 8 & 0x80;
    if (isnan(value))
        magnitude = NO_NUMBER;
    else if (magnitude > LARGEST)
        magnitude = LARGEST;
    return (uint8_t)(sign | magnitude);
}

uint8_t e5m2_from_float(float value)
{
    enum { LARGEST = 0x7b, NO_NUMBER = 0x7f };
    uint16_t half = half_from_float(value);
    unsigned magnitude = round_off(half & 0x7fff, 8), sign = half >> 8 & 0x80;
    if (isnan(value))
        magnitude = NO_NUMBER;
    else if (magnitude > LARGEST)
        magnitude = LARGEST;
    return (uint8_t)(sign | magnitude);
}

/* Draws floats and has each become a value of a format. */
#define FILL(name, bytes, store_value)                                                         \
    static void fill_##name(uint8_t *values, uint64_t count, fill_kind kind, random_source *r) \
    {                                                                                          \
        float x[CHUNK];                                                                        \
        for (uint64_t part; count; count -= part) {                                            \
            part = count < CHUNK ? count : CHUNK;                                              \
            random_floats(kind, x, part, r);                                                   \
            for (uint64_t i = 0; i < part; i++, values += (bytes))                             \
                store_value;                                                                   \
        }                                                                                      \
    }
FILL(f32, 4, memcpy(values, &x[i], sizeof x[i]))
FILL(f16, 2, store_half(values, half_from_float(x[i])))
FILL(bf16, 2, store_half(values, bfloat_from_float(x[i])))
/* Tiny ones are subnormal, as 1e-6 is for f16. */
FILL(e4m3, 1, *values = e4m3_from_float(kind == FILL_TINY ? 2000 * x[i] : x[i]))
FILL(e5m2, 1, *values = e5m2_from_float(kind == FILL_TINY ? 20 * x[i] : x[i]))

#define DECODE(name, bytes, value)                                             \
    static void decode_##name(const uint8_t *values, uint64_t count, float *w) \
    {                                                                          \
        for (uint64_t i = 0; i < count; i++, values += (bytes))                \
            w[i] = (value);                                                    \
    }
DECODE(f16, 2, load_half(values))
DECODE(bf16, 2, bfloat_to_float((uint16_t)load_u16(values)))
DECODE(e4m3, 1, e4m3_to_float(*values))
DECODE(e5m2, 1, half_to_float((uint16_t)(*values << 8)))

static void decode_f32(const uint8_t *values, uint64_t count, float *w)
{
    memcpy(w, values, count * sizeof *w);
}

const codec codec_F32 = { .decode_many = decode_f32, .fill = fill_f32 };
const codec codec_F16 = { .decode_many = decode_f16, .fill = fill_f16 };
const codec codec_BF16 = { .decode_many = decode_bf16, .fill = fill_bf16 };
const codec codec_E4M3 = { .decode_many = decode_e4m3, .fill = fill_e4m3 };
const codec codec_E5M2 = { .decode_many = decode_e5m2, .fill = fill_e5m2 };
