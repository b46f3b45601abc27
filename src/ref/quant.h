/* Blocks of weight and activation formats: decoding, random blocks, the q8_1 quantizer. */
#pragma once

#include <stddef.h>

#include "kernel/format.h"
#include "ref/random.h"

enum { Q8_1_LARGEST = 127 };

typedef struct q8_1_block {
    float d, s;
    int8_t q[Q8_1_VALUES];
} q8_1_block;

/* Decodes values, a multiple of the block size, exactly like ggml's dequantize_row in float. */
void ref_decode(format f, const void *blocks, uint64_t values, float *decoded);

/* Like ref_decode, with weights rounded as in products with 8-bit x, if the format does so. */
void ref_decode_rounded(format f, const void *blocks, uint64_t values, float *decoded);

/* Returns true if weights are d q - m. Both terms may be far larger than the weight. */
bool ref_has_minima(format f);

/* Fills a buffer with values of a format, a multiple of the block size. Quants and sub-scales of
 * weights take all bit patterns; q8_1 blocks are quantized floats. */
void ref_fill(format f, void *bytes, uint64_t values, fill_kind kind, random_source *r);

void ref_store(format f, void *bytes, float value);

/* Multiplies values by a factor of random sign per block. No-op without float scales. */
void ref_resize(format f, void *bytes, uint64_t values, float factor, random_source *r);

/* Makes all values positive or negative. No-op except for floats and q8_0. */
void ref_set_sign(format f, void *bytes, uint64_t values, bool negative);

/* Sets a value, or a scale of a block, to NaN or infinity. If the format has two scales, an odd
 * `which` selects the second. Returns false if the format has no such bit pattern. */
bool ref_spoil(format f, void *block, uint64_t which, bool infinite);

/* Sets a random float to NaN or infinity, chosen by the first value's bits. */
void ref_spoil_either(float *values, uint64_t count);

q8_1_block q8_1_load(const void *block);

/* Quantizes a multiple of 32 values, bit-exact with ggml's CPU code: d = amax / 127, q = x / d
 * rounded half away from zero, both before d is rounded to fp16. */
void ref_encode_q8_1(const float *x, uint64_t values, void *blocks);

/* Quantizes 32 values like kernels that quantize activations: q = x / d rounded to nearest even, d
 * = amax / 127, amax at least REF_LEAST_OF_8_BITS. Returns d. */
#define REF_LEAST_OF_8_BITS 1e-30
double ref_round_to_8_bits(const double *x, double *q);

/* A weight matrix for row-wise products in double precision. */
typedef struct ref_matrix {
    format format;
    const void *blocks;
    const float *values; /* decoded blocks, or NULL */
    uint64_t rows, columns;
    uint64_t repeat; /* stored rows, which repeat */
    uint64_t first;  /* stored row that is row 0 */
    bool halves;     /* round weights to f16, also d q and m of d q - m */
} ref_matrix;

/* y[v][r] = sum over c of W[r][c] x[v][c], for vectors x [count, columns]. y has a stride in values
 * between vectors; room holds a row. */
void ref_matrix_times(const ref_matrix *w, const double *x, size_t count, double *y, size_t stride,
                      double *room);

/* Rounds to 11 significant bits: f16 with an unlimited exponent. */
double ref_round_to_half(double value);

void ref_matrix_row(const ref_matrix *w, uint64_t row, double *values);
