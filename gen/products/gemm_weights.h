/* The weights of a tile of mma_gemm: how they come into shared memory as they stand in the GGUF,
 * and how they become f16 there.
 *
 * A block has 128 rows of W and 256 threads: each has half a row, on both ways. A row comes in
 * chunks, whole blocks of its format, by the 16-byte lines that they lie in; a ring holds some of
 * them. Only the row's two threads copy and read a chunk, so that their warp alone has to wait.
 *
 * A step is 32 values of a row, 16 of them a thread's. They become f16 in a tile that all warps
 * multiply by:
 *
 *     two rows are a line of 128 bytes; unit u = 0..3 of row r, 8 values, lies in line r / 2
 *     at place 4 (r % 2) + (u ^ (r / 2 % 4))
 *
 * Eight neighbouring rows of one unit, as ldmatrix reads them, then are in eight places, and so are
 * the 16 bytes that eight lanes store at once; and it is one of the ways that wgmma takes matrices.
 * Row 5's unit 2 is at 4 + (2 ^ 2) = 4 of line 2.
 */
#ifndef PTXGEN_GEN_PRODUCTS_GEMM_WEIGHTS_H
#define PTXGEN_GEN_PRODUCTS_GEMM_WEIGHTS_H

#include "gen/formats/weight_format.h"
#include "kernel/family.h"

enum {
    GEMM_THREADS = 256,
    GEMM_COLUMNS = 128, /* rows of W that a block takes */
    GEMM_UNIT = 8,      /* values in 16 bytes of f16 */
    GEMM_UNIT_BYTES = 16,
    GEMM_STEP_UNITS = GEMM_STEP / GEMM_UNIT,
    GEMM_ROW_BYTES = GEMM_STEP * 2, /* of a step */
};

/* The address of a unit of a row in a tile. */
val gemm_unit(ptx *p, val tile, val row, val unit);

typedef struct gemm_weights {
    format format;
    const gemm_decoder *decoder;
    unsigned chunk, chunk_bytes; /* values and bytes */
    unsigned whole, tail;        /* chunks of a row, and values of a shorter last one */
    unsigned row_bytes;
    unsigned stride, stages; /* from row to row in the ring, and chunks that it holds */
    bool scaled;             /* rows are multiplied by powers of two */

    val row;      /* the thread's, */
    gemm_row own; /* and its half of a chunk of that */
    val ring;     /* of the thread's row, */
    val store[2]; /* and its units in the tile */
    var source;   /* of the chunk that is copied next, its address, */
    var to;       /* and where in the ring it goes */
    var place;    /* of rows that are not aligned: where that starts, modulo 16 */
} gemm_weights;

/* How the weights of an instance are cut up. */
gemm_weights gemm_weights_of(const instance *in);

/* Parts of k, whole chunks each, that blocks of their own multiply: 1 where it is not split. */
int64_t gemm_splits(const instance *in);
unsigned gemm_ring_bytes(const gemm_weights *w);

/* The thread's row of the tile. */
val gemm_own_row(ptx *p);

/* Sets up the thread's part by its row's address; ring and tile are shared memory. */
void gemm_weights_begin(ptx *p, gemm_weights *w, val source, val ring, val tile);

/* Begins to copy the chunk of that number, a whole one or the last, if there is one: a group of
 * copies. chunk is a C number or a value. */
void gemm_copy_chunk(ptx *p, gemm_weights *w, val chunk);

/* Waits for the next chunk, and begins the copy of that which comes when all of the ring is taken;
 * then its decoding. */
void gemm_next_chunk(ptx *p, gemm_weights *w, val chunk);

/* Makes f16 of the thread's part of a step of the chunk and stores it in one of the tiles. */
void gemm_decode_step(ptx *p, gemm_weights *w, unsigned step, unsigned there, unsigned tile_offset);

#endif
