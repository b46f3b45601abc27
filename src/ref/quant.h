/* Blocks of the weight and activation formats as numbers: decoding, and the q8_1 quantizer. */
#ifndef PTXGEN_REF_QUANT_H
#define PTXGEN_REF_QUANT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/format.h"

enum { Q8_1_LARGEST = 127 };

/* The fields of one q8_1 block. */
typedef struct q8_1_block {
    float d, s;
    int8_t q[Q8_1_VALUES];
} q8_1_block;

/* Decodes a number of values that is a multiple of the format's block, exactly as ggml's
 * dequantize_row does in float. */
void ref_decode(format f, const void *blocks, uint64_t values, float *decoded);

/* Returns true if a weight of the format is d q - m, where both parts may be far larger than it. */
bool ref_has_minima(format f);

q8_1_block q8_1_load(const void *block);

/* Quantizes a multiple of 32 values as ggml's CPU code does, to the bit: d = amax / 127, q = x / d
 * rounded half away from zero (both before d is rounded to fp16). */
void ref_encode_q8_1(const float *x, uint64_t values, void *blocks);

/* The least amax that kernels take which quantize activations themselves. What they make of 32: d
 * q, where d, which is returned, is amax / 127, and q is x / d rounded to the nearest even. */
#define REF_LEAST_OF_8_BITS 1e-30
double ref_round_to_8_bits(const double *x, double *q);

#endif
