#include "gen/blocks/powers.h"

enum {
    LEAST_EXPONENT = EXPONENT_BIAS, /* of a largest value that is left as it is */
    MOST_OF_POWER = 2 * EXPONENT_BIAS - 1,
};

val power_of_two(ptx *p, val exponent)
{
    return bits_as(p, F32, shl(p, exponent, EXPONENT_SHIFT));
}

val power_for_halves(ptx *p, val largest)
{
    val exponent = shr(p, largest, EXPONENT_SHIFT);
    val power = min(p, sub(p, imm(U32, LARGEST_EXPONENT + EXPONENT_BIAS), exponent), MOST_OF_POWER);
    val fits = le(p, sub(p, exponent, LEAST_EXPONENT),
                  LARGEST_EXPONENT - LEAST_EXPONENT); /* less than 0 wraps */
    return select(p, fits, imm(U32, EXPONENT_BIAS), power);
}

val inverse_of_power(ptx *p, val exponent)
{
    return power_of_two(p, sub(p, imm(U32, 2 * EXPONENT_BIAS), exponent));
}
