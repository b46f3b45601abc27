#include "gen/blocks/q8_1.h"

val dp4a_sum_as_f32(ptx *p, val sum)
{
    return sub(p, bits_as(p, F32, sum), imm(F32, DP4A_START));
}

val q8_largest(ptx *p, val largest, const val *x, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        largest = max(p, largest, bit_and(p, bits_as(p, U32, x[i]), 0x7fffffff));
    return largest;
}

val q8_scale(ptx *p, val largest)
{
    return mul(p, bits_as(p, F32, largest), 1.0f / 127);
}

/* The lowest byte of 1.5 * 2^23 + q is q's. */
val q8_pack(ptx *p, const val x[4], val inverse)
{
    enum { LOWEST_BYTES = 0x0040, LOW_HALVES = 0x5410 };
    val q[4];
    for (int i = 0; i < 4; i++)
        q[i] = bits_as(p, U32, fma(p, x[i], inverse, imm(F32, DP4A_START)));
    val low = prmt(p, q[0], q[1], LOWEST_BYTES), high = prmt(p, q[2], q[3], LOWEST_BYTES);
    return as(p, S32, prmt(p, low, high, LOW_HALVES));
}
