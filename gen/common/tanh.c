#include "gen/common/tanh.h"

#include "gen/common/softmax.h"

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
