/* Functions of f32, for every x: results that no normal f32 holds may become 0, and a NaN gives NaN
 * unless a function says otherwise.
 */
#ifndef PTXGEN_GEN_COMMON_FUNCTIONS_H
#define PTXGEN_GEN_COMMON_FUNCTIONS_H

#include "ptx/ptx.h"

#define LOG2_E 1.44269504088896340736

/* g / (1 + exp(-x)), to a few units in the last place. An x beyond +-87 counts as that, since f32
 * has no use for more of it; a NaN counts as 87, and has to show in another way. */
val by_sigmoid(ptx *p, val g, val x);

/* exp(x), 0 below -87, infinite from 89 on, NaN of infinity; log(1 + exp(t)). Both to a few units
 * in the last place. */
val power_of_e(ptx *p, val x);
val softplus(ptx *p, val t);

/* tanh: x + x^3 P(x^2) below 0.625, where the other form would cancel (Moshier's Cephes has these
 * coefficients, good to 1 unit in the last place), else 1 - 2 / (exp(2x) + 1). The relative error
 * is below 4e-7. */
val hyperbolic_tangent(ptx *p, val x);

/* Returns z of an activation x sigmoid(z): x, 2 sqrt(2 / pi) (x + 0.044715 x^3), or 1.702 x. */
val activation_argument(ptx *p, int64_t activation, val x);

/* Returns x sigmoid(z) by ACTIVATION_, where swiglu_oai is without its limit. The relative error is
 * below 4e-7 (1 + |z|). */
val activation_of(ptx *p, int64_t activation, val x);

/* Returns activation(g) u by ACTIVATION_, with the limits of swiglu_oai. */
val activation_times(ptx *p, int64_t activation, val g, val u);

/* Returns x Phi(x), Phi being the normal distribution: x (1 + erf(x / sqrt(2))) / 2. The relative
 * error is below 1e-6 for every x, where Phi(x) is small too. */
val gelu_by_erf(ptx *p, val x);

#endif
