/* Floats of 16 and 8 bits, as block scales and tensors store them: fp16 (IEEE 754 binary16), bf16
 * (the upper half of a binary32), e4m3 (4 bits of exponent with bias 7, 3 of mantissa, no
 * infinities, 0x7f and 0xff are NaN: E4M3FN of OCP, up to 448) and e5m2 (the upper byte of an
 * fp16).
 */
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

float e4m3_to_float(uint8_t byte);

/* To the nearest, ties to even; what is too large becomes the largest finite one. */
uint8_t e4m3_from_float(float value);
uint8_t e5m2_from_float(float value);

#endif
