#include "gen/common/q8_1.h"

#include "gen/common/reduce.h"

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

/* The lowest byte of the float 1.5 * 2^23 + q is q. */
val q8_pack(ptx *p, const val x[4], val inverse)
{
    enum { LOWEST_BYTES = 0x0040, LOW_HALVES = 0x5410 };
    val q[4];
    for (int i = 0; i < 4; i++)
        q[i] = bits_as(p, U32, fma(p, x[i], inverse, imm(F32, DP4A_START)));
    val low = prmt(p, q[0], q[1], LOWEST_BYTES), high = prmt(p, q[2], q[3], LOWEST_BYTES);
    return as(p, S32, prmt(p, low, high, LOW_HALVES));
}

val q8_segment(ptx *p, const val x[Q8_SEGMENT], val q[Q8_SEGMENT_WORDS])
{
    val d = q8_scale(p, group_max(p, q8_largest(p, imm(U32, Q8_SMALLEST), x, Q8_SEGMENT), 2));
    val inverse = rcp_approx(p, d);
    for (int i = 0; i < Q8_SEGMENT_WORDS; i++)
        q[i] = q8_pack(p, x + 4 * i, inverse);
    return d;
}

q8_lane q8_quantize_lane(ptx *p, val x)
{
    val size = warp_max(p, q8_largest(p, imm(U32, 0), &x, 1));
    val d = div(p, bits_as(p, F32, size), 127.0f);
    val inverse = select(p, eq(p, d, 0.0f), imm(F32, 0), rcp(p, d));
    /* Rounds half away from zero; PTX rounds half to even. The distance to the truncated number is
     * exact, so it decides. */
    val q = mul(p, x, inverse), whole = convert(p, S32, q);
    val rest = sub(p, q, convert(p, F32, whole));
    val up = select(p, ge(p, rest, 0.5f), imm(S32, 1), imm(S32, 0));
    val down = select(p, le(p, rest, -0.5f), imm(S32, -1), imm(S32, 0));
    return (q8_lane){ .d = d, .q = add(p, add(p, whole, up), down) };
}

void q8_1_store_warp(ptx *p, val block, val x)
{
    q8_lane quantized = q8_quantize_lane(p, x);
    val lane = lane_id(p), sum = mul(p, convert(p, F32, warp_sum(p, quantized.q)), quantized.d);
    st_global(p, S8, add(p, block, convert(p, U64, lane)), Q8_1_QUANTS, quantized.q);
    PTX_IF (p, eq(p, lane, 0)) {
        st_global(p, F16, block, Q8_1_D, convert(p, F16, quantized.d));
        st_global(p, F16, block, Q8_1_S, convert(p, F16, sum));
    }
}
