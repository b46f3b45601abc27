/* The warps' sums of a tile of mma_gemm: products of fragments of the tiles of X and W in shared
 * memory, and where k is split the other parts of them.
 */
#ifndef PTXGEN_GEN_BLOCKS_GEMM_SUMS_H
#define PTXGEN_GEN_BLOCKS_GEMM_SUMS_H

#include "gen/blocks/gemm_weights.h"

enum {
    GEMM_FRAGMENT = 16, /* rows of an A and columns of two Bs, and their depth */
    GEMM_B_COLUMNS = 8,
    GEMM_DEPTHS = GEMM_STEP / GEMM_FRAGMENT,
    GEMM_MOST_DOWN = 4, /* fragments of a warp */
    GEMM_MOST_ACROSS = 2,
    GEMM_W_TILE = GEMM_COLUMNS * GEMM_ROW_BYTES, /* bytes of a tile of W */
    GEMM_MOST_SPLITS = 16,
};

typedef struct gemm_sums {
    const instance *in;
    unsigned rows;                      /* of the tile */
    unsigned down, across;              /* fragments of a warp */
    val ticket;                         /* in shared memory, where k is split */
    val a[GEMM_DEPTHS], b[GEMM_DEPTHS]; /* a lane's addresses for ldmatrix */
    var sums[GEMM_MOST_DOWN][2 * GEMM_MOST_ACROSS][4];
} gemm_sums;

gemm_sums gemm_sums_of(ptx *p, const instance *in, unsigned rows);

/* Sums of zero. Of X and W there are two tiles each, one behind the other. */
void gemm_sums_begin(ptx *p, gemm_sums *s, val x_tile, val w_tile);

/* Adds the products of a step's tiles, the first or the second ones. */
void gemm_sums_multiply(ptx *p, const gemm_sums *s, unsigned parity);

/* Of the blocks that have a part of k of one tile, all store their sums, and the last one adds them
 * up in the order of k; the others end here. */
void gemm_sums_add_parts(ptx *p, const gemm_sums *s);

#endif
