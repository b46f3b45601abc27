/* Multiplies up to eight rows of X by rows of whole steps of Q8_0 as they are stored, for mma_q8.h. Lanes
 * copy the 17 units of a row's step to the tile, asynchronously. x has its values in the same places,
 * with zeros beside the scales. The units of a step hold
 *
 *     2i        the last 2i values of block i - 1, scale i, and 14 - 2i values of block i
 *     2i + 1    16 values of block i
 *     2i + 2    the last 2i + 2 values of block i, scale i + 1, and values of block i + 1
 *
 * A block is the product of its first two units, plus that of its tail, the third. Where two blocks
 * share a unit, x is masked. The last block has units 15 and 16, and no tail. */
#pragma once

#include "gen/products/stream_plan.h"

enum {
    MMA_ROWS = 16,  /* rows of W of a warp */
    MMA_STEP = 256, /* values of a step */
    MMA_UNIT_BYTES = 16,
    MMA_ROW_BYTES = MMA_STEP + MMA_UNIT_BYTES, /* of the tile */
    /* A record has the scales of a quad's groups of a row, of two groups with the start's parts. Quads
     * have a gap between their records: lanes then store them without bank conflicts. */
    MMA_RECORD_BYTES = 4 * F32_BYTES,
    MMA_RECORD_STRIDE = MMA_ROWS * MMA_RECORD_BYTES + 2 * MMA_UNIT_BYTES,
    MMA_STORED_LANES = 4, /* copy a row */
    MMA_BLOCKS = 8        /* of a step */
};

#define MMA_START 12582912.0f /* DP4A_START */

/* A lane's state: addresses, masks and fragments. */
typedef struct mma_q8_stored {
    val store, a;                /* of the first unit to copy, and for ldmatrix */
    val scale, record;           /* of the scales in the tile, and of their records */
    val has_last;                /* predicate: the lane copies unit 16 */
    val masks[MMA_BLOCKS];       /* of the bytes of unit 2i before scale i */
    val4 w[MMA_BLOCKS + 1];      /* units 2i and 2i + 1, then 15 and 16 */
    val x[2 * MMA_BLOCKS];       /* block i's first two units */
    val x_tails[MMA_BLOCKS - 1]; /* and its third one */
} mma_q8_stored;

/* Sets the lane's places in the warp's tile and records. of_row: the lane among those of a row. */
void mma_q8_stored_begin(ptx *p, mma_q8_stored *s, val of_row, val tile, val records);
/* Begins to copy a step of the rows of W. */
void mma_q8_stored_copy(ptx *p, const mma_q8_stored *s, const stream_row rows[]);
/* Waits for the copies, loads the fragments of W, and stores the scales as records. */
void mma_q8_stored_load_w(ptx *p, mma_q8_stored *s);
/* Loads the fragments of the step of x at an address. */
void mma_q8_stored_load_x(ptx *p, mma_q8_stored *s, val base, int64_t offset);
/* Returns the products of a block, plus their start. */
val4 mma_q8_stored_product(ptx *p, const mma_q8_stored *s, unsigned block, val4 starts);
