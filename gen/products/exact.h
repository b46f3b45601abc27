/* Products of rows of weights and f32 vectors, nothing rounded: a warp takes rows, a lane eight
 * neighbouring weights of them at a time (see weight_format.h).
 *
 * With norm = rms x is multiplied by gamma on the way, and what is left of the norm is a factor of
 * the sums.
 */
#ifndef PTXGEN_GEN_PRODUCTS_EXACT_H
#define PTXGEN_GEN_PRODUCTS_EXACT_H

#include "gen/products/gemv.h"

enum { EXACT_ROWS = 2 /* at once, at most */ };

/* Rows of matrices of the same size, one of each, and the vectors they are multiplied with. */
typedef struct exact {
    const instance *in; /* m vectors, and the norm */
    const gemv_operands *x;
    unsigned rows, vectors; /* vectors: filled in */
    format formats[EXACT_ROWS];
    val at[EXACT_ROWS], columns, gamma;
    var sums[EXACT_ROWS][MAX_VECTORS], squares[MAX_VECTORS];
} exact;

/* The lane's parts of the rows' products with all vectors: results[rows * vector + row]. */
void exact_multiply(ptx *p, exact *s, val *results);

/* Stores activation(gate) * up of a row of both, with biases number bias. */
void exact_gated_row(ptx *p, const gemv_pair *pair, val row, val bias);

#endif
