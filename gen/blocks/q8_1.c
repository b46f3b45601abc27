#include "gen/blocks/q8_1.h"

val dp4a_sum_as_f32(ptx *p, val sum)
{
    return sub(p, bits_as(p, F32, sum), imm(F32, DP4A_START));
}

val q8_scale(ptx *p, val largest)
{
    const float smallest = 1e-30f; /* so that 1 / d stays finite */
    return mul(p, max(p, largest, smallest), 1.0f / 127);
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
