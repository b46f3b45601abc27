/* Products of a tile of rows of X and of 128 rows of W on the tensor cores: what blocks of mma_gemm
 * and its like share. See gemm.c for the order of the work.
 *
 * Weights come into shared memory as they stand in the GGUF, and become f16 there. A block has 128
 * rows of W and 256 threads: each has half a row, on both ways. A row comes in chunks, whole blocks
 * of its format, by the 16-byte lines that they lie in; a ring holds some of them. Only the row's
 * two threads copy and read a chunk, so that their warp alone has to wait.
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
 *
 * Rows of X are f32, which powers of two bring into reach of f16, or f16 with what their products
 * are to be multiplied by, as f16_rows.c makes them. They are laid out as weights are. A step's
 * values are loaded while the one ahead is multiplied, and stored when that is done.
 *
 * Each warp multiplies fragments by mma.sync, with rows of X as rows of the product. Or, where the
 * target has wgmma, four warps multiply 64 rows of W by all rows of X, which are the product's
 * columns then, while the next step's tiles are made: what is read of shared memory is least.
 *
 * A lane has the sums of some rows of X for some columns, which are rows of W. Both have numbers
 * here, and stand so much behind the lane's first.
 */
#ifndef PTXGEN_GEN_PRODUCTS_GEMM_TILE_H
#define PTXGEN_GEN_PRODUCTS_GEMM_TILE_H

#include "gen/formats/weight_format.h"
#include "gen/products/experts.h"

enum {
    GEMM_THREADS = 256,
    GEMM_COLUMNS = 128, /* rows of W that a block takes */
    GEMM_UNIT = 8,      /* values in 16 bytes of f16 */
    GEMM_UNIT_BYTES = 16,
    GEMM_STEP_UNITS = GEMM_STEP / GEMM_UNIT,
    GEMM_ROW_BYTES = GEMM_STEP * 2,              /* of a step */
    GEMM_W_TILE = GEMM_COLUMNS * GEMM_ROW_BYTES, /* bytes of a tile of W */
    GEMM_TILE_ALIGNMENT = 512,                   /* of tiles that wgmma reads */
    GEMM_MOST_SPLITS = 16,
    GEMM_FRAGMENT = 16, /* rows of an A and columns of two Bs, and their depth */
    GEMM_B_COLUMNS = 8,
    GEMM_DEPTHS = GEMM_STEP / GEMM_FRAGMENT,
    GEMM_MOST_DOWN = 4, /* fragments of a warp, of mma.sync; */
    GEMM_MOST_ACROSS = 2,
    GEMM_MOST_SUMS = 32, /* and of 8 columns, of both */
    GEMM_X_PIECES = 4,   /* units that a thread has of a step of X, at most */
};

/* The address of a unit of a row in a tile. */
val gemm_unit(ptx *p, val tile, val row, val unit);

/* Parts of k, whole chunks each, that blocks of their own multiply: 1 where it is not split. */
int64_t gemm_splits(const instance *in);

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

/* How the weights of an instance are cut up, and bytes of their ring. */
gemm_weights gemm_weights_of(const instance *in);
unsigned gemm_ring_bytes(const gemm_weights *w);

/* Returns the thread's row of the tile; and sets up its part by that row's address. ring and tile
 * are shared memory. */
val gemm_own_row(ptx *p);
void gemm_weights_begin(ptx *p, gemm_weights *w, val source, val ring, val tile);

/* Begins to copy the chunk of that number, a whole one or the last, if there is one: a group of
 * copies. chunk is a C number or a value. */
void gemm_copy_chunk(ptx *p, gemm_weights *w, val chunk);

/* Waits for the next chunk, and begins the copy of that which comes when all of the ring is taken;
 * then its decoding. */
void gemm_next_chunk(ptx *p, gemm_weights *w, val chunk);

/* Makes f16 of the thread's part of a step of the chunk and stores it in one of the tiles. */
void gemm_decode_step(ptx *p, gemm_weights *w, unsigned step, unsigned there, unsigned tile_offset);

typedef struct gemm_x {
    const instance *in;
    bool f16; /* rows are f16 already */
    unsigned value_bytes;
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

/* Finds the powers and factors. Whether some powers are other than 1; without a kind where rows are
 * f16. All threads have met behind it. */
val gemm_x_find_powers(ptx *p, gemm_x *x);

/* Sets up the thread's part of a tile. */
void gemm_x_begin(ptx *p, gemm_x *x, val tile);

/* Begins to load the step that is so many bytes further on, without a kind the first one, of which
 * so many values are there; where there is none, the latest one again. */
void gemm_x_load(ptx *p, const gemm_x *x, val bytes, unsigned there);

/* Stores what was loaded in the tile that is so many bytes behind the first one. */
void gemm_x_store(ptx *p, const gemm_x *x, unsigned tile_offset);

/* What a row's sums are multiplied by: number of the tile, and own of all rows. */
val gemm_x_factor(ptx *p, const gemm_x *x, val number, val own);

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

/* Sums of zero. Of X and W there are two tiles each, one behind the other, those of X first. */
void gemm_sums_begin(ptx *p, gemm_sums *s, val x_tile, val w_tile);

/* Between what stores a step's tiles and what multiplies them: all threads meet. The other tiles
 * are free behind it. */
void gemm_sums_meet(ptx *p, const gemm_sums *s);

/* Adds the products of a step's tiles, the first or the second ones. */
void gemm_sums_multiply(ptx *p, const gemm_sums *s, unsigned parity);

/* Behind the last step waits for all products. Of the blocks that have a part of k of one tile, all
 * store their sums, and the last one adds them up in the order of k; the others end here. */
void gemm_sums_end(ptx *p, const gemm_sums *s);

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

/* At once: with wgmma, and else. */
enum { GEMM_MOST_ROWS = 256, GEMM_USUAL_ROWS = 128 };

/* Sizes that formulas of launches name: rows of X that a tile has room for; of experts those of one
 * that a block has at a time; columns of Y that a block makes; bytes of dynamic shared memory, and
 * of the powers of two that rows of W have, too, of formats that f16 has no room for; values that a
 * block with a part of k stores of a tile. */
int64_t gemm_rows(const instance *in);
int64_t gemm_expert_rows(const instance *in);
int64_t gemm_columns(const instance *in);
int64_t gemm_shared_bytes(const instance *in);
int64_t gemm_powers_bytes(const instance *in);
int64_t gemm_tile_values(const instance *in);

/* Refuses parts of k that are not whole chunks of weights, and what check_product does. */
const char *gemm_check(const instance *in, arena *a, const char **blamed);

/* Computes the block's tile of Y and stores it. */
void gemm_build(ptx *p, const instance *in);

#endif
