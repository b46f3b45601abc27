#include "gen/common/sigmoid.h"

/* exp(sign x). The exponent's rounding, which grows with x, is put right by a factor. */
static val corrected_power(ptx *p, val x, float sign)
{
    const float log2_e = 1.44269502f, log2_e_rest = 1.92596299e-8f, ln_2 = 0.693147182f;
    val turned = mul(p, x, sign * log2_e);
    val rest = fma(p, x, sign * log2_e_rest, neg(p, fma(p, x, -sign * log2_e, turned)));
    val power = ex2(p, turned);
    return fma(p, mul(p, rest, ln_2), power, power);
}

val by_sigmoid(ptx *p, val g, val x)
{
    const float most = 87;
    val kept = max(p, min(p, x, most), -most);
    return mul(p, g, rcp(p, add(p, corrected_power(p, kept, -1), 1.0f)));
}

val power_of_e(ptx *p, val x)
{
    const float least = -104;
    return corrected_power(p, select(p, lt(p, x, least), least, x), 1);
}

/* log(1 + u) = 2 atanh(u / (2 + u)), whose series needs seven terms for u of at most 1. */
val softplus(ptx *p, val t)
{
    enum { TERMS = 7 };
    val u = power_of_e(p, neg(p, abs(p, t))), s = mul(p, u, rcp(p, add(p, u, 2.0f)));
    val square = mul(p, s, s), series = val_of_f32(1.0f / (2 * TERMS - 1));
    for (int i = TERMS - 2; i >= 0; i--)
        series = fma(p, series, square, 1.0f / (float)(2 * i + 1));
    return fma(p, mul(p, s, 2.0f), series, max(p, t, 0.0f));
}
