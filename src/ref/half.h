/* fp16 (IEEE 754 binary16) and bf16 (the upper half of a binary32), as block scales and
 * half-precision tensors store them. */
#ifndef PTXGEN_REF_HALF_H
#define PTXGEN_REF_HALF_H

#include <stdint.h>

/* Exact, subnormals, infinities and NaN included. */
float half_to_float(uint16_t half);

/* To the nearest, ties to even; what is too large becomes infinite, a NaN stays one. */
uint16_t half_from_float(float value);

float bfloat_to_float(uint16_t bfloat);
uint16_t bfloat_from_float(float value);

#endif
