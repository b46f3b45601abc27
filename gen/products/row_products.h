/* Products of single rows of weights, of any format, with a few vectors: without rounding. A vector
 * gets the same bits alone and among others.
 *
 * A row of c columns is shared by c / 8 neighbouring lanes, at most 32: 16 lanes for 128 columns,
 * so a warp has two rows at once. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

/* How a warp's lanes share the rows. */
typedef struct row_products {
    format format;
    unsigned columns; /* a multiple of 8 and of the format's block */
    unsigned vectors; /* up to MAX_VECTORS */
    unsigned lanes;   /* lanes per row, a power of two */
    unsigned rows;    /* rows per warp at once */
    val x;            /* first vector, f32; in shared memory if the address is u32 */
    unsigned stride;  /* bytes from a vector to the next */
    val gamma;        /* f32 [columns] in global memory, factors of the vectors; VAL_NONE: none */
} row_products;
row_products row_products_new(format f, unsigned columns, unsigned vectors, val x, unsigned stride);

/* Returns the lane's row among the warp's. */
val row_products_own(ptx *p, const row_products *r);
/* Returns a predicate: the lane is the first of its row. */
val row_products_first(ptx *p, const row_products *r);

/* Multiplies the row at the lane's address with all vectors. All lanes of the row get all sums. */
void row_products_of(ptx *p, const row_products *r, val row, val *sums);
