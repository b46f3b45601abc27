#include "gen/blocks/sigmoid.h"

val by_sigmoid(ptx *p, val g, val x)
{
    /* The exponent's rounding, which grows with x, is put right by a factor. */
    const float log2_e = 1.44269502f, log2_e_rest = 1.92596299e-8f, ln_2 = 0.693147182f, most = 87;
    val kept = max(p, min(p, x, most), -most);
    val turned = mul(p, kept, -log2_e);
    val rest = fma(p, kept, -log2_e_rest, neg(p, fma(p, kept, log2_e, turned)));
    val power = ex2(p, turned);
    power = fma(p, mul(p, rest, ln_2), power, power);
    return mul(p, g, rcp(p, add(p, power, 1.0f)));
}
