/* Products of single rows of weights, of any format, with a few vectors: nothing rounded, and the
 * same bits for a vector alone and among others.
 *
 * So many neighbouring lanes share a row as it has pieces of 8 weights: 16 for 128 columns, so that
 * a warp has two rows at once, and all 32 from 256 columns on. */
#ifndef PTXGEN_GEN_PRODUCTS_ROW_PRODUCTS_H
#define PTXGEN_GEN_PRODUCTS_ROW_PRODUCTS_H

#include "kernel/family.h"
#include "ptx/ptx.h"

typedef struct row_products {
    format format;
    unsigned columns; /* a multiple of 8 and of the format's block */
    unsigned vectors; /* up to MAX_VECTORS */
    unsigned lanes;   /* of a row, a power of two */
    unsigned rows;    /* that a warp has at once */
    val x;            /* the first vector, f32: in shared memory where the address is of 32 bits */
    unsigned stride;  /* bytes from a vector to the next */
    val gamma;        /* f32 [columns] in global memory, by which vectors are multiplied; without a
                         kind: none */
} row_products;
row_products row_products_new(format f, unsigned columns, unsigned vectors, val x, unsigned stride);

/* Return the lane's row of those that the warp has; and whether the lane is the first of its row.
 */
val row_products_own(ptx *p, const row_products *r);
val row_products_first(ptx *p, const row_products *r);

/* The products of the row at the lane's address: each of the row's lanes gets all of them. */
void row_products_of(ptx *p, const row_products *r, val row, val *sums);

#endif
