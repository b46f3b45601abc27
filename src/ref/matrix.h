/* Products of a matrix and several vectors in double precision, a row at a time. */
#ifndef PTXGEN_REF_MATRIX_H
#define PTXGEN_REF_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/format.h"

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
