#include "emu/halves.h"

double sum_to_odd(double a, double b)
{
    double sum = a + b;
    if (!isfinite(sum))
        return sum;
    /* Knuth's two-sum: the error of a sum is a double. */
    double part = sum - a;
    double error = (a - (sum - part)) + (b - part);
    u64 bits = bits_of_double(sum);
    if (error != 0 && !(bits & 1))
        bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return double_of_bits(bits);
}

static double round_whole(double magnitude, bool negative, unsigned mods)
{
    if (mods & MOD_RZ)
        return floor(magnitude);
    if (mods & MOD_RM)
        return negative ? ceil(magnitude) : floor(magnitude);
    if (mods & MOD_RP)
        return negative ? floor(magnitude) : ceil(magnitude);
    return nearbyint(magnitude);
}

/* Rounds to a format of sign, exponent and mantissa_bits. 2^(e - mantissa_bits) is the distance of
 * its values at 2^e; a value is a whole number of them, and its encoding continues across powers of
 * two, so that a carry needs no care. */
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
    int exponent;
    frexp(magnitude, &exponent);
    exponent = magnitude == 0 || exponent - 1 < lowest_exponent ? lowest_exponent : exponent - 1;
    double whole = round_whole(ldexp(magnitude, mantissa_bits - exponent), negative, mods);
    double code = whole + ldexp(exponent - lowest_exponent, mantissa_bits);
    bool to_zero = mods & MOD_RZ || (mods & MOD_RM && !negative) || (mods & MOD_RP && negative);
    if (code >= infinity)
        code = to_zero ? infinity - 1 : infinity;
    return (u16)(sign | (unsigned)code);
}

f16 half_of(double value, unsigned mods)
{
    return encode(value, 10, -14, 0x7c00, mods);
}

bf16 bfloat_of(double value, unsigned mods)
{
    return encode(value, 7, -126, 0x7f80, mods);
}
