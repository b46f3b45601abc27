#include "ref/half.h"

#include <math.h>
#include <stdbool.h>

/*                    sign   exponent   fraction
 *   binary16  bits    15     14..10     9..0     bias  15
 *   binary32  bits    31     30..23    22..0     bias 127 */
enum { FRACTION_SHIFT = 23 - 10, BIAS_DIFFERENCE = 127 - 15 };
static const uint32_t FLOAT_INFINITY = 0x7f800000;
static const uint32_t HALF_OVERFLOW = 0x477ff000;     /* 65520, which rounds to infinity */
static const uint32_t HALF_LEAST_NORMAL = 0x38800000; /* 2^-14 */

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

uint16_t half_from_float(float value)
{
    uint32_t bits = to_bits(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > FLOAT_INFINITY)
        return (uint16_t)(sign | 0x7e00);
    if (magnitude >= HALF_OVERFLOW)
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < HALF_LEAST_NORMAL) {
        /* Floats of [0.5, 1) and half subnormals have steps of 2^-24: the addition rounds. */
        uint32_t rounded = to_bits(from_bits(magnitude) + 0.5f) - to_bits(0.5f);
        return (uint16_t)(sign | rounded);
    }
    uint32_t odd = magnitude >> FRACTION_SHIFT & 1;
    uint32_t rounded = magnitude + (1u << (FRACTION_SHIFT - 1)) - 1 + odd;
    return (uint16_t)(sign | (rounded - ((uint32_t)BIAS_DIFFERENCE << 23)) >> FRACTION_SHIFT);
}

float bfloat_to_float(uint16_t bfloat)
{
    return from_bits((uint32_t)bfloat << 16);
}

uint16_t bfloat_from_float(float value)
{
    uint32_t bits = to_bits(value);
    if ((bits & 0x7fffffff) > FLOAT_INFINITY)
        return (uint16_t)(bits >> 16 | 64);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float e4m3_to_float(uint8_t byte)
{
    enum { BIAS = 7, MANTISSA_BITS = 3 };
    int exponent = byte >> MANTISSA_BITS & 15, mantissa = byte & 7;
    float magnitude = exponent ? ldexpf((float)(8 + mantissa), exponent - BIAS - MANTISSA_BITS)
                               : ldexpf((float)mantissa, 1 - BIAS - MANTISSA_BITS);
    if ((byte & 0x7f) == 0x7f)
        magnitude = NAN;
    return byte & 0x80 ? -magnitude : magnitude;
}

/* Rounds an f16 to the nearest even byte by dropping `bits` low bits. */
static uint8_t byte_from_half(uint16_t half, unsigned bits, unsigned largest, bool is_nan)
{
    enum { NO_NUMBER = 0x7f };
    unsigned odd = half >> bits & 1, sign = half >> 8 & 0x80;
    unsigned magnitude = ((half & 0x7fffu) + (1u << (bits - 1)) - 1 + odd) >> bits;
    if (is_nan)
        magnitude = NO_NUMBER;
    else if (magnitude > largest)
        magnitude = largest;
    return (uint8_t)(sign | magnitude);
}

/* An e4m3 has the bits of an f16 of 2^-8 times its value, without the low 7. */
uint8_t e4m3_from_float(float value)
{
    return byte_from_half(half_from_float(value * 0x1p-8f), 7, 0x7e, isnan(value));
}

uint8_t e5m2_from_float(float value)
{
    return byte_from_half(half_from_float(value), 8, 0x7b, isnan(value));
}
