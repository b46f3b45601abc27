/* The warps' sums of a tile of mma_gemm: products of the tiles of X and W in shared memory, and
 * where k is split the other parts of them.
 *
 * Each warp multiplies fragments by mma.sync, with rows of X as rows of the product. Or, where the
 * target has wgmma, four warps multiply 64 rows of W by all rows of X, which are the product's
 * columns then, while the next step's tiles are made: what is read of shared memory is least.
 *
 * A lane has the sums of some rows of X for some columns, which are rows of W. Both have numbers
 * here, and stand so much behind the lane's first.
 */
#ifndef PTXGEN_GEN_PRODUCTS_GEMM_SUMS_H
#define PTXGEN_GEN_PRODUCTS_GEMM_SUMS_H

#include "gen/products/gemm_weights.h"

enum {
    GEMM_FRAGMENT = 16, /* rows of an A and columns of two Bs, and their depth */
    GEMM_B_COLUMNS = 8,
    GEMM_DEPTHS = GEMM_STEP / GEMM_FRAGMENT,
    GEMM_MOST_DOWN = 4, /* fragments of a warp, of mma.sync; */
    GEMM_MOST_ACROSS = 2,
    GEMM_MOST_SUMS = 32,                         /* and of 8 columns, of both */
    GEMM_W_TILE = GEMM_COLUMNS * GEMM_ROW_BYTES, /* bytes of a tile of W */
    GEMM_MOST_SPLITS = 16,
};

typedef struct gemm_sums {
    const instance *in;
    unsigned rows;                      /* of the tile */
    bool by_fours;                      /* wgmma */
    unsigned down, across;              /* fragments of a warp: one, and rows of X, of wgmma */
    val row, column;                    /* the lane's first, in the tile */
    val ticket;                         /* in shared memory, where k is split */
    val a[GEMM_DEPTHS], b[GEMM_DEPTHS]; /* a lane's addresses for ldmatrix; or descriptors */
    var sums[GEMM_MOST_SUMS][4];        /* of fragments of 8 columns of the product, row by row */
} gemm_sums;

/* What the tiles have to begin at a multiple of. */
enum { GEMM_TILE_ALIGNMENT = 512 };

gemm_sums gemm_sums_of(ptx *p, const instance *in, unsigned rows);

/* Sums of zero. Of X and W there are two tiles each, one behind the other, those of X first. */
void gemm_sums_begin(ptx *p, gemm_sums *s, val x_tile, val w_tile);

/* Between what stores a step's tiles and what multiplies them: all threads meet. The other tiles
 * are free behind it. */
void gemm_sums_meet(ptx *p, const gemm_sums *s);

/* Adds the products of a step's tiles, the first or the second ones. */
void gemm_sums_multiply(ptx *p, const gemm_sums *s, unsigned parity);

/* Behind the last step. */
void gemm_sums_end(ptx *p, const gemm_sums *s);

/* Of the blocks that have a part of k of one tile, all store their sums, and the last one adds them
 * up in the order of k; the others end here. */
void gemm_sums_add_parts(ptx *p, const gemm_sums *s);

/* Finds the lane's first row and column, for which no registers are taken ahead. */
void gemm_sums_place(ptx *p, gemm_sums *s);

/* How many rows and columns a lane has sums of, how far one is behind its first, and the sum. */
unsigned gemm_sums_row_count(const gemm_sums *s);
unsigned gemm_sums_column_count(const gemm_sums *s);
unsigned gemm_sums_row(const gemm_sums *s, unsigned row);
unsigned gemm_sums_column(const gemm_sums *s, unsigned column);
var gemm_sums_at(const gemm_sums *s, unsigned row, unsigned column);

/* Rows of W, of a gate and of up by turns, that are neighbours in the tile: so that a lane has both
 * of a column, the one of up so many columns further on. */
unsigned gemm_sums_turn(const gemm_sums *s);
var gemm_sums_of_up(const gemm_sums *s, unsigned row, unsigned column_of_gate);

#endif
