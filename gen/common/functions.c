#include "gen/common/functions.h"

#include "ref/reference.h"

/* Returns exp(sign x). A factor corrects the rounding of the exponent, which grows with x. */
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

/* Uses log(1 + u) = 2 atanh(u / (2 + u)). For u <= 1 the series needs seven terms. */
val softplus(ptx *p, val t)
{
    enum { TERMS = 7 };
    val u = power_of_e(p, neg(p, abs(p, t))), s = mul(p, u, rcp(p, add(p, u, 2.0f)));
    val square = mul(p, s, s), series = val_of_f32(1.0f / (2 * TERMS - 1));
    for (int i = TERMS - 2; i >= 0; i--)
        series = fma(p, series, square, 1.0f / (float)(2 * i + 1));
    return fma(p, mul(p, s, 2.0f), series, max(p, t, 0.0f));
}

val hyperbolic_tangent(ptx *p, val x)
{
    static const float series[] = { -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                                    1.33314422036e-1f, -3.33332819422e-1f };
    val square = mul(p, x, x), small = imm(F32, 0);
    for (size_t i = 0; i < sizeof series / sizeof *series; i++)
        small = i ? fma(p, small, square, series[i]) : add(p, small, series[i]);
    small = fma(p, mul(p, small, square), x, x);
    val size = abs(p, x);
    val inverse = rcp_approx(p, add(p, ex2(p, mul(p, size, 2 * LOG2_E)), 1));
    val large = fma(p, inverse, -2, 1);
    large = select(p, lt(p, x, 0), neg(p, large), large);
    return select(p, lt(p, size, 0.625f), small, large);
}

val activation_argument(ptx *p, int64_t activation, val x)
{
    const float twice_root = 1.59576912f, cubic = 0.044715f; /* 2 sqrt(2 / pi) */
    if (activation == ACTIVATION_GELU)
        return mul(p, fma(p, mul(p, mul(p, x, x), cubic), x, x), twice_root);
    return activation == ACTIVATION_SWIGLU_OAI ? mul(p, x, 1.702f) : x;
}

/* by_sigmoid clamps z at -87. The result would be too large for a huge x, so it is 0 below that.
 * max drops a NaN and makes infinities finite; 0 * x restores them as NaN. */
val activation_of(ptx *p, int64_t activation, val x)
{
    const float least = -87;
    if (activation == ACTIVATION_GELU_ERF)
        return gelu_by_erf(p, x);
    if (activation == ACTIVATION_RELU || activation == ACTIVATION_RELU2) {
        val y = max(p, x, 0.0f);
        return fma(p, x, 0.0f, activation == ACTIVATION_RELU ? y : mul(p, y, y));
    }
    val z = activation_argument(p, activation, x);
    return select(p, lt(p, z, least), mul(p, x, 0.0f), by_sigmoid(p, x, z));
}

val limited_product(ptx *p, double limit, val activated, val g, val u)
{
    const float c = (float)limit;
    val y = mul(p, min(p, activated, c), max(p, min(p, u, c), -c));
    return fma(p, add(p, g, u), imm(F32, 0), y); /* min and max drop NaN and infinities */
}

val activation_times(ptx *p, const problem_options *o, val g, val u)
{
    const float limit = 7;
    int64_t activation = o->activation;
    if (o->limit > 0)
        return limited_product(p, o->limit, activation_of(p, activation, g), g, u);
    if (activation != ACTIVATION_SWIGLU_OAI)
        return mul(p, activation_of(p, activation, g), u);
    val limited = max(p, min(p, u, limit), -limit);
    val y = mul(p, activation_of(p, activation, min(p, g, limit)), add(p, limited, 1.0f));
    /* The limits turn infinities and NaN into numbers. Adding 0 * (g + u) restores the NaN. */
    return fma(p, add(p, g, u), imm(F32, 0), y);
}

/* With a = |x|, Phi(-a) = exp(-a^2 / 2) t P(t), t = 1 / (1 + 0.35 a). P is the polynomial of degree
 * 8 with the least relative error on 0 <= a <= 15, which is 3.3e-8; above 15, Phi(-a) is 0 in f32.
 * The exponential is corrected for the rounding errors of a^2 and of its product with log2(e) / 2.
 * Without that correction the tail is inaccurate. */
val gelu_by_erf(ptx *p, val x)
{
    static const float coefficients[] = {
        -0.02916379624f, 0.1440601903f, -0.2559006426f, 0.159391574f,  -0.0232629589f,
        0.1055744521f,   0.1198155807f, 0.1398643256f,  0.1396212589f,
    };
    const float most = 15, half_log2_e = 0.72134751f, half_log2_e_rest = 9.6298150e-9f;
    const float ln_2 = 0.693147182f;
    val a = min(p, abs(p, x), most), t = rcp(p, fma(p, a, 0.35f, 1.0f));
    val sum = val_of_f32(coefficients[0]);
    for (size_t i = 1; i < sizeof coefficients / sizeof *coefficients; i++)
        sum = fma(p, sum, t, coefficients[i]);

    val square = mul(p, a, a), lost = fma(p, a, a, neg(p, square));
    val turned = mul(p, square, -half_log2_e);
    val rest = fma(p, square, -half_log2_e_rest, neg(p, fma(p, square, half_log2_e, turned)));
    rest = fma(p, lost, -half_log2_e, rest);
    val power = ex2(p, turned);
    power = fma(p, mul(p, rest, ln_2), power, power);
    val tail = mul(p, mul(p, sum, t), power);
    return mul(p, x, select(p, lt(p, x, 0.0f), tail, sub(p, 1.0f, tail)));
}
