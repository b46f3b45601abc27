/* The logistic function of f32, by which gates multiply, and what else is made of exp. */
#ifndef PTXGEN_GEN_COMMON_SIGMOID_H
#define PTXGEN_GEN_COMMON_SIGMOID_H

#include "ptx/ptx.h"

/* g / (1 + exp(-x)), to a few units in the last place. An x beyond +-87 counts as that, since f32
 * has no use for more of it; a NaN counts as 87, and has to show in another way. */
val by_sigmoid(ptx *p, val g, val x);

/* exp(x), to a few units in the last place; 0 below -87, infinite from 89 on, NaN of infinity. */
val power_of_e(ptx *p, val x);

/* log(1 + exp(t)), to a few units in the last place. */
val softplus(ptx *p, val t);

#endif
