/* Functions of f32, defined for every x. Results too small for a normal f32 may become 0. A NaN
 * gives NaN unless the function's comment says otherwise. */
#pragma once

#include "kernel/problem.h"
#include "ptx/ptx.h"

#define LOG2_E 1.44269504088896340736

/* Returns g / (1 + exp(-x)), to a few units in the last place. Clamps x to [-87, 87]. A NaN counts
 * as 87, so the caller must propagate it in another way. */
val by_sigmoid(ptx *p, val g, val x);

/* Returns exp(x), to a few units in the last place: 0 below -87, infinity or NaN from 89 on. */
val power_of_e(ptx *p, val x);
/* Returns log(1 + exp(t)), to a few units in the last place. */
val softplus(ptx *p, val t);

/* Returns tanh(x). Below 0.625 it is x + x^3 P(x^2), which avoids cancellation; the coefficients
 * are from Moshier's Cephes and good to 1 unit in the last place. Otherwise it is 1 - 2 / (exp(2x)
 * + 1). The relative error is below 4e-7. */
val hyperbolic_tangent(ptx *p, val x);

/* Returns z such that the activation is x sigmoid(z): x, 2 sqrt(2 / pi) (x + 0.044715 x^3), or
 * 1.702 x. */
val activation_argument(ptx *p, int64_t activation, val x);

/* Returns an ACTIVATION_ of x, but not xielu. Ignores the limit of swiglu_oai. Infinities give NaN
 * or infinities. The relative error is below 4e-7 (1 + |z|) for x sigmoid(z), else below 1e-6. */
val activation_of(ptx *p, int64_t activation, val x);

/* Returns min(activated, limit) max(min(u, limit), -limit), where activated is an activation of g.
 * NaN if g or u is not finite. */
val limited_product(ptx *p, double limit, val activated, val g, val u);

/* Returns activation(g) u, with the limits of swiglu_oai and of the options. */
val activation_times(ptx *p, const problem_options *o, val g, val u);

/* Returns x Phi(x) = x (1 + erf(x / sqrt(2))) / 2, where Phi is the normal distribution. The
 * relative error is below 1e-6 for every x, also where Phi(x) is small. */
val gelu_by_erf(ptx *p, val x);
