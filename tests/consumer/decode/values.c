#include "values.h"

#include <math.h>

enum { HALF_DIGITS = 11 };

uint32_t random_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

float random_value(uint64_t *state)
{
    return (float)random_bits(state) / (float)(1u << 30) - 1;
}

float half_value(unsigned bits)
{
    float size = ldexpf((float)((bits & 0x3ff) | 0x400), (int)(bits >> 10 & 31) - 25);
    return bits & 0x8000 ? -size : size;
}

float round_to_half(float x)
{
    int exponent;
    float digits = frexpf(x, &exponent);
    return ldexpf(rintf(ldexpf(digits, HALF_DIGITS)), exponent - HALF_DIGITS);
}
