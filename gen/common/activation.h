/* Activations of f32 by themselves, right for every x: results that no normal f32 holds may become
 * 0, and what is no number stays none.
 */
#ifndef PTXGEN_GEN_COMMON_ACTIVATION_H
#define PTXGEN_GEN_COMMON_ACTIVATION_H

#include "ptx/ptx.h"

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
