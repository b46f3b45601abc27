/* fp16 (IEEE 754 binary16) and bf16 (the upper half of a binary32), as block scales and
 * half-precision tensors store them. */
#ifndef PTXGEN_REF_HALF_H
#define PTXGEN_REF_HALF_H

#include <stdint.h>
#include <string.h>

/* Exact, subnormals, infinities and NaN included. Without a branch, so that loops over it become
 * vector code: a subnormal is what its fraction adds to 2^-14, less that. */
static inline float half_to_float(uint16_t half)
{
    uint32_t sign = (half & 0x8000u) << 16, magnitude = (half & 0x7fffu) << 13;
    uint32_t bits = magnitude + (112u << 23), raised = magnitude + (113u << 23);
    float value;
    memcpy(&value, &raised, sizeof value);
    value -= 0x1p-14f;
    memcpy(&raised, &value, sizeof value);
    bits = magnitude < 1u << 23 ? raised : magnitude >= 31u << 23 ? magnitude | 0x7f800000 : bits;
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To the nearest, ties to even; what is too large becomes infinite, a NaN stays one. */
uint16_t half_from_float(float value);

float bfloat_to_float(uint16_t bfloat);
uint16_t bfloat_from_float(float value);

#endif
