/* The hyperbolic tangent of f32, with which results are capped: c tanh(x / c). */
#ifndef PTXGEN_GEN_COMMON_TANH_H
#define PTXGEN_GEN_COMMON_TANH_H

#include "ptx/ptx.h"

/* tanh: x + x^3 P(x^2) below 0.625, where the other form would cancel (Moshier's Cephes has these
 * coefficients, good to 1 unit in the last place), else 1 - 2 / (exp(2x) + 1). The relative error
 * is below 4e-7. */
val hyperbolic_tangent(ptx *p, val x);

#endif
