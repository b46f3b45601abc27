/* Blocks of the weight and activation formats as numbers: decoding, random ones, the q8_1
 * quantizer.
 */
#ifndef PTXGEN_REF_QUANT_H
#define PTXGEN_REF_QUANT_H

#include <stddef.h>

#include "kernel/format.h"
#include "ref/random.h"

enum { Q8_1_LARGEST = 127 };

/* The fields of one q8_1 block. */
typedef struct q8_1_block {
    float d, s;
    int8_t q[Q8_1_VALUES];
} q8_1_block;

/* Decodes a number of values that is a multiple of the format's block, exactly as ggml's
 * dequantize_row does in float. */
void ref_decode(format f, const void *blocks, uint64_t values, float *decoded);

/* The same as products with x of 8 bits take weights of the format, which some round. */
void ref_decode_rounded(format f, const void *blocks, uint64_t values, float *decoded);

/* Returns true if a weight of the format is d q - m, where both parts may be far larger than it. */
bool ref_has_minima(format f);

/* Fills a buffer with values of a format, a multiple of its block. Quants and sub-scales of weight
 * blocks take all their values; q8_1 blocks are quantized floats. */
void ref_fill(format f, void *bytes, uint64_t values, fill_kind kind, random_source *r);

/* Stores a value of a format of floats. */
void ref_store(format f, void *bytes, float value);

/* Multiplies values that are there by a factor, each block by its negative as likely. Formats whose
 * scales are no floats stay as they are. */
void ref_resize(format f, void *bytes, uint64_t values, float factor, random_source *r);

/* Makes all values that are there positive, or negative; formats without a float or an fp16 scale
 * and signed bytes stay as they are. */
void ref_set_sign(format f, void *bytes, uint64_t values, bool negative);

/* Makes a value, or a scale of a block, a NaN or an infinity. Of a format with two scales,
 * odd numbers make it the second one. Returns false where no bits of the format are either. */
bool ref_spoil(format f, void *block, uint64_t which, bool infinite);

/* The same of floats, by themselves: which of them becomes what follows from the first. */
void ref_spoil_either(float *values, uint64_t count);

q8_1_block q8_1_load(const void *block);

/* Quantizes a multiple of 32 values as ggml's CPU code does, to the bit: d = amax / 127, q = x / d
 * rounded half away from zero (both before d is rounded to fp16). */
void ref_encode_q8_1(const float *x, uint64_t values, void *blocks);

/* The least amax that kernels take which quantize activations themselves. What they make of 32: d
 * q, where d, which is returned, is amax / 127, and q is x / d rounded to the nearest even. */
#define REF_LEAST_OF_8_BITS 1e-30
double ref_round_to_8_bits(const double *x, double *q);

/* A matrix, for products with several vectors in double precision, a row at a time. */
typedef struct ref_matrix {
    format format;
    const void *blocks;
    const float *values; /* the blocks decoded, or NULL */
    uint64_t rows, columns;
    uint64_t repeat; /* rows that are there, which repeat */
    uint64_t first;  /* of these the one that is row 0 */
    bool
        halves; /* values are rounded to f16, see ref_round_to_half; so are both parts of d q - m */
} ref_matrix;

/* y[v][r] = sum over c of W[r][c] x[v][c], of count vectors [count, columns]. A row of y has stride
 * values. room has place for a row. */
void ref_matrix_times(const ref_matrix *w, const double *x, size_t count, double *y, size_t stride,
                      double *room);

/* The number of 11 bits that is nearest: an f16 with any exponent. */
double ref_round_to_half(double value);

/* A row, decoded. */
void ref_matrix_row(const ref_matrix *w, uint64_t row, double *values);

#endif
