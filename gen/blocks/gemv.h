/* What every GEMV starts and ends with: its parameters, the rows of its weights, the store of a
 * result. */
#ifndef PTXGEN_GEN_BLOCKS_GEMV_H
#define PTXGEN_GEN_BLOCKS_GEMV_H

#include "gen/family.h"
#include "ptx/ptx.h"

/* A size as an immediate or, with dynamic dims, as the kernel's parameter NAME_dim. */
val dim_k(ptx *p, const instance *in);
val dim_n(ptx *p, const instance *in);
val dim_m(ptx *p, const instance *in);

typedef struct gemv {
    val y, w, x;
    val n;         /* rows */
    val blocks;    /* of the weights' format in a row */
    val row_bytes; /* of a row of W */
} gemv;

/* Loads the parameters y, w and x and sizes the rows by the family's weight format. */
gemv gemv_parameters(ptx *p, const instance *in);

/* &W[row]. */
val gemv_row(ptx *p, const gemv *g, val row);

/* y[row] = sum, by thread 0 of the block alone. */
void gemv_store(ptx *p, const gemv *g, val row, val sum);

#endif
