#include "gen/common/halves.h"

#include "gen/common/reduce.h"

enum {
    LEAST_EXPONENT = EXPONENT_BIAS, /* smallest exponent of a row's maximum that needs no scaling */
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
                  LARGEST_EXPONENT - LEAST_EXPONENT); /* smaller exponents wrap to large numbers */
    return select(p, fits, imm(U32, EXPONENT_BIAS), power);
}

val inverse_of_power(ptx *p, val exponent)
{
    return power_of_two(p, sub(p, imm(U32, 2 * EXPONENT_BIAS), exponent));
}

void powers_store(ptx *p, val largest, val row, val powers, val factors, val factor)
{
    val power = power_for_halves(p, warp_max(p, largest)), inverse = inverse_of_power(p, power);
    PTX_IF (p, eq(p, lane_id(p), 0)) {
        val offset = mul(p, row, F32_BYTES);
        st_shared(p, F32, add(p, powers, offset), 0, power_of_two(p, power));
        st_shared(p, F32, add(p, factors, offset), 0,
                  factor.kind ? mul(p, inverse, factor) : inverse);
    }
}

void fragment_add(ptx *p, const var sums[4], val4 a, val2 b)
{
    val4 c = { { V(sums[0]), V(sums[1]), V(sums[2]), V(sums[3]) } };
    val4 d = mma_m16n8k16_f16(p, a, b, c);
    for (unsigned i = 0; i < 4; i++)
        assign(p, sums[i], d.v[i]);
}
