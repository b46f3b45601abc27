/* 16 and 8-bit floats of block scales and tensors: fp16 (IEEE 754 binary16), bf16 (upper half of a
 * binary32), e4m3 (E4M3FN of OCP: exponent bias 7, no infinities, NaN 0x7f and 0xff, up to 448) and
 * e5m2 (upper byte of an fp16). */
#pragma once

#include <stdint.h>
#include <string.h>

/* Converts exactly and branch-free: a subnormal is 2^-14 plus its fraction, minus 2^-14. */
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

/* Rounds to nearest even. Overflow gives infinity; NaN stays NaN. */
uint16_t half_from_float(float value);

float bfloat_to_float(uint16_t bfloat);
uint16_t bfloat_from_float(float value);

float e4m3_to_float(uint8_t byte);

/* Round to nearest even. Overflow gives the largest finite value. */
uint8_t e4m3_from_float(float value);
uint8_t e5m2_from_float(float value);
