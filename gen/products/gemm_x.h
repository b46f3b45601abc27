/* The rows of X of a tile of mma_gemm: the powers of two that bring them into reach of f16, and how
 * a step of them comes into the tile that all warps multiply by, laid out as weights are
 * (gemm_weights.h). Rows are f32, or f16 with what their products are to be multiplied by, as
 * f16_rows.c makes them.
 *
 * A step's values are loaded while the one ahead is multiplied, and stored when that is done.
 */
#ifndef PTXGEN_GEN_PRODUCTS_GEMM_X_H
#define PTXGEN_GEN_PRODUCTS_GEMM_X_H

#include "gen/products/experts.h"
#include "gen/products/gemm_weights.h"

enum { GEMM_X_PIECES = 4 }; /* units that a thread has of a step, at most */

typedef struct gemm_x {
    const instance *in;
    bool f16;                   /* rows are f16 already */
    unsigned rows, k;           /* of the tile, and values of each */
    val base;                   /* of all rows; */
    val m, first;               /* how many there are, and the block's first */
    const expert_entry *expert; /* rows are those that use it; NULL: there are none */
    bool apart;                 /* pairs are as a decoder of weights has them: values 0 and 2 */
    bool scaled;                /* some of the powers may be other than 1 */
    val powers, factors;        /* of rows, in shared memory; of f16 factors alone, those of all
                                   rows in global memory */
    unsigned pieces;            /* units that the thread stages; */
    val staging;                /* whether it has any; */
    val store;                  /* where the first goes, */
    val first_value;            /* number of its first value in the step, */
    val power;                  /* that of its row, */
    var from[GEMM_X_PIECES];    /* and where they are, of the step that is loaded next */
    var gamma;
    var loaded[GEMM_X_PIECES][GEMM_UNIT]; /* values, or where they are f16 pairs */
    var norm[GEMM_UNIT];
} gemm_x;

gemm_x gemm_x_of(const instance *in, unsigned rows);

/* Finds the powers and factors. Whether some powers are other than 1; without a kind where rows are
 * f16. All threads have met behind it. */
val gemm_x_find_powers(ptx *p, gemm_x *x);

/* The thread's part of a tile. */
void gemm_x_begin(ptx *p, gemm_x *x, val tile);

/* Begins to load the next step, of which so many values are there; where there is none, the latest
 * one again. */
void gemm_x_load(ptx *p, const gemm_x *x, unsigned there);

/* The next step is so many bytes further on. */
void gemm_x_advance(ptx *p, const gemm_x *x, val bytes);
unsigned gemm_x_step_bytes(const gemm_x *x);

/* Stores what was loaded in the tile that is so many bytes behind the first one. */
void gemm_x_store(ptx *p, const gemm_x *x, unsigned tile_offset);

/* What a row's sums are multiplied by: number of the tile, and own of all rows. */
val gemm_x_factor(ptx *p, const gemm_x *x, val number, val own);

#endif
