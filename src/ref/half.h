/* fp16: IEEE 754 binary16, as block scales and half-precision tensors store it. */
#ifndef PTXGEN_REF_HALF_H
#define PTXGEN_REF_HALF_H

#include <stdint.h>

/* Exact, subnormals, infinities and NaN included. */
float half_to_float(uint16_t half);

/* To the nearest, ties to even; what is too large becomes infinite, a NaN stays one. */
uint16_t half_from_float(float value);

#endif
