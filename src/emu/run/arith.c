#include "emu/run/arith.h"

double sum_to_odd(double a, double b)
{
    double sum = a + b;
    if (!isfinite(sum))
        return sum;
    /* Knuth's two-sum: the error of a sum is a double */
    double part = sum - a;
    double error = (a - (sum - part)) + (b - part);
    u64 bits = bits_of_double(sum);
    if (error != 0 && !(bits & 1))
        bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return double_of_bits(bits);
}

/* Returns true if a magnitude is rounded towards zero. */
static bool rounds_to_zero(bool negative, unsigned mods)
{
    return mods & MOD_RZ || mods & (negative ? MOD_RP : MOD_RM);
}

static double power_of_2(int n)
{
    return double_of_bits((u64)(n + 1023) << 52);
}

/* Returns a magnitude's code in a format, whose values near 2^e are 2^(e - mantissa_bits) apart.
 * Codes are consecutive across powers of two, so a carry needs no special case. */
static double code_of(double magnitude, bool negative, int mantissa_bits, int lowest_exponent,
                      unsigned mods)
{
    int exponent = (int)(bits_of_double(magnitude) >> 52) - 1023;
    exponent = exponent < lowest_exponent ? lowest_exponent : exponent;
    double scaled = magnitude * power_of_2(mantissa_bits - exponent);
    double whole = rounds_to_zero(negative, mods) ? floor(scaled)
                   : mods & MOD_DIRECTED          ? ceil(scaled)
                                         : (scaled + 0x1p52) - 0x1p52; /* rounds to an integer */
    return whole + (exponent - lowest_exponent) * power_of_2(mantissa_bits);
}

static u16 encode(double value, int mantissa_bits, int lowest_exponent, unsigned infinity,
                  unsigned mods)
{
    bool negative = signbit(value);
    unsigned sign = negative ? 0x8000 : 0;
    if (value != value)
        return mods & MOD_SAT ? 0 : 0x7fff;
    if (negative && mods & (MOD_RELU | MOD_SAT))
        return 0;
    double magnitude = fabs(value);
    if (mods & MOD_SAT && magnitude > 1)
        magnitude = 1;
    if (isinf(magnitude))
        return (u16)(sign | infinity);
    double code = code_of(magnitude, negative, mantissa_bits, lowest_exponent, mods);
    if (code >= infinity)
        code = rounds_to_zero(negative, mods) ? infinity - 1 : infinity;
    return (u16)(sign | (unsigned)code);
}

f16 half_of(double value, unsigned mods)
{
    enum { MANTISSA_BITS = 10, LOST = 52 - MANTISSA_BITS, LOWEST_EXPONENT = -14 };
    double magnitude = fabs(value);
    if (mods || magnitude < 0x1p-14 || !(magnitude < 0x1p16))
        return encode(value, MANTISSA_BITS, LOWEST_EXPONENT, 0x7c00, mods);
    /* normal values, rounded to nearest even, with the bias adjusted; a carry may give infinity */
    u64 bits = bits_of_double(value);
    u64 code = (bits & INT64_MAX) - ((u64)(1022 + LOWEST_EXPONENT) << 52);
    u64 rounded = code + (UINT64_C(1) << (LOST - 1)) - 1 + (code >> LOST & 1);
    return (u16)((bits >> 63 << 15) | rounded >> LOST);
}

bf16 bfloat_of(double value, unsigned mods)
{
    return encode(value, 7, -126, 0x7f80, mods);
}

static float value_of_eighth(uint8_t bits, int mantissa_bits, int lowest_exponent)
{
    int exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
    double magnitude =
        exponent ? ldexp(mantissa + (1 << mantissa_bits), exponent - 1) : (double)mantissa;
    magnitude = ldexp(magnitude, lowest_exponent - mantissa_bits);
    return (float)(bits & 0x80 ? -magnitude : magnitude);
}

float value_of_e4m3(uint8_t bits)
{
    return (bits & 0x7f) == 0x7f ? NAN : value_of_eighth(bits, 3, -6);
}

float value_of_e5m2(uint8_t bits)
{
    if ((bits & 0x7f) > 0x7c)
        return NAN;
    if ((bits & 0x7f) == 0x7c)
        return bits & 0x80 ? -INFINITY : INFINITY;
    return value_of_eighth(bits, 2, -14);
}

static uint8_t encode_eighth(double value, int mantissa_bits, int lowest_exponent, unsigned largest,
                             unsigned mods)
{
    if (value != value)
        return 0x7f;
    bool negative = signbit(value);
    if (negative && mods & MOD_RELU)
        return 0;
    double code = isinf(value)
                      ? largest
                      : code_of(fabs(value), negative, mantissa_bits, lowest_exponent, mods);
    return (uint8_t)((negative ? 0x80 : 0) | (code > largest ? largest : (unsigned)code));
}

uint8_t e4m3_of(double value, unsigned mods)
{
    return encode_eighth(value, 3, -6, 0x7e, mods);
}

uint8_t e5m2_of(double value, unsigned mods)
{
    return encode_eighth(value, 2, -14, 0x7b, mods);
}
