/* Tensor-core products of a tile of rows of X and 128 rows of W: what blocks of mma_gemm and its
 * relatives share. gemm.c has the order of the work.
 *
 * Weights are copied to shared memory as ggml stores them and decoded to f16 there. A block has 128
 * rows of W and 256 threads: two threads copy and decode each row. A row is cut into chunks, whole
 * blocks of its format, copied as the 16-byte lines around them. A ring holds `stages` chunks. Only
 * a row's two threads copy and read a chunk, so only their warp has to wait.
 *
 * A step is 32 values of a row, 16 per thread. They become f16 in a tile that all warps multiply
 * by:
 *
 *     two rows are a line of 128 bytes; unit u = 0..3 of row r, 8 values, lies in line r / 2
 *     at place 4 (r % 2) + (u ^ (r / 2 % 4))
 *
 * This swizzle avoids bank conflicts, both when ldmatrix reads one unit of eight neighbouring rows
 * and when eight lanes store 16 bytes each. It is also a layout that wgmma reads. Example: unit 2 of
 * row 5 is at place 4 + (2 ^ 2) = 4 of line 2.
 *
 * X is f32, scaled by a power of two per row to fit f16, or f16 with a factor per row from
 * f16_rows.c. It is laid out as W is. A step of X is loaded while the preceding one is multiplied,
 * and then stored.
 *
 * Each warp multiplies fragments by mma.sync, with rows of X as rows of the product. If the target
 * has wgmma, four warps multiply 64 rows of W by all rows of X, which are then the product's
 * columns, while the next step's tiles are made. That reads shared memory least.
 *
 * A lane has the sums of some rows of X for some columns of Y (rows of W). Both are numbered here,
 * with offsets from the lane's first row and column. */
#pragma once

#include "gen/formats/weight_format.h"
#include "gen/products/experts.h"

enum {
    GEMM_THREADS = 256,
    GEMM_COLUMNS = 128, /* rows of W per block */
    GEMM_UNIT = 8,      /* values in 16 bytes of f16 */
    GEMM_UNIT_BYTES = 16,
    GEMM_STEP_UNITS = GEMM_STEP / GEMM_UNIT,
    GEMM_ROW_BYTES = GEMM_STEP * 2,              /* bytes of a row per step */
    GEMM_W_TILE = GEMM_COLUMNS * GEMM_ROW_BYTES, /* bytes of a tile of W */
    GEMM_TILE_ALIGNMENT = 512,                   /* alignment of tiles that wgmma reads */
    GEMM_MOST_SPLITS = 16,
    GEMM_FRAGMENT = 16, /* rows of an A, columns of two B fragments, and their depth */
    GEMM_B_COLUMNS = 8,
    GEMM_DEPTHS = GEMM_STEP / GEMM_FRAGMENT,
    GEMM_MOST_DOWN = 4, /* fragments per warp with mma.sync, at most */
    GEMM_MOST_ACROSS = 2,
    GEMM_MOST_SUMS = 32, /* sums of 16 x 8 fragments per warp, mma.sync or wgmma, at most */
    GEMM_X_PIECES = 4,   /* units per thread in a step of X, at most */
};

/* Returns the address of a unit of a row in a tile. */
val gemm_unit(ptx *p, val tile, val row, val unit);

/* Returns the parts of k in split-K, 1 without. A part is whole chunks and has its own blocks. */
int64_t gemm_splits(const instance *in);

/* W on its way to the tile, as one thread sees it. */
typedef struct gemm_weights {
    format format;
    const gemm_decoder *decoder;
    unsigned chunk, chunk_bytes; /* values and bytes of a chunk */
    unsigned whole, tail;        /* whole chunks of a row, and values of a shorter last one */
    unsigned row_bytes;
    unsigned stride, stages; /* bytes from row to row in the ring, and chunks in it */
    bool scaled;             /* rows are multiplied by powers of two */

    val row;      /* the thread's row of the tile */
    gemm_row own; /* the thread's half of a chunk of it */
    val ring;     /* the thread's row in the ring */
    val store[2]; /* the thread's units in the tile */
    var source;   /* address of the chunk that is copied next */
    var to;       /* its offset in the ring */
    var place;    /* start of the next decoded chunk modulo 16, if rows are not aligned */
} gemm_weights;

/* Returns how the weights of an instance are cut into chunks. */
gemm_weights gemm_weights_of(const instance *in);
/* Returns bytes of the ring of weights. */
unsigned gemm_ring_bytes(const gemm_weights *w);

/* Returns the thread's row of the tile. */
val gemm_own_row(ptx *p);
/* Sets up the thread's part from the address of its row; ring and tile are shared memory. */
void gemm_weights_begin(ptx *p, gemm_weights *w, val source, val ring, val tile);

/* Begins the async copy of a chunk, whole or last; a number past the end commits an empty group. */
void gemm_copy_chunk(ptx *p, gemm_weights *w, val chunk);

/* Waits for the next chunk, begins the copy of the one `stages` - 1 later, and begins to decode. */
void gemm_next_chunk(ptx *p, gemm_weights *w, val chunk);

/* Decodes the thread's part of a step of the chunk to f16 and stores it in one of the tiles. */
void gemm_decode_step(ptx *p, gemm_weights *w, unsigned step, unsigned valid, unsigned tile_offset);

/* X on its way to the tile, as one thread sees it. */
typedef struct gemm_x {
    const instance *in;
    bool f16; /* X is f16 already */
    unsigned value_bytes;
    unsigned rows, k;           /* rows of the tile, and values per row */
    val base;                   /* address of row 0 */
    val m, first;               /* number of rows, and the block's first */
    const expert_entry *expert; /* the expert whose rows these are; NULL: no experts */
    bool apart;                 /* pairs are values 0 and 2, as in the weights' decoder */
    bool scaled;                /* some powers may be other than 1 */
    val powers, factors;        /* shared memory; f16 X: global factors of all rows */
    unsigned pieces;            /* units that the thread stages */
    val staging;                /* predicate: the thread has units */
    val store;                  /* address of its first unit in the tile */
    val first_value;            /* index of its first value in the step */
    val power;                  /* address of its row's power */
    var from[GEMM_X_PIECES];    /* addresses of its units in the next step */
    var gamma;
    var loaded[GEMM_X_PIECES][GEMM_UNIT]; /* f32 values, or pairs of f16 */
    var norm[GEMM_UNIT];
} gemm_x;

/* Finds powers and factors of the rows. Returns a predicate: some power is not 1; VAL_NONE if X is
 * f16. Ends with a barrier. */
val gemm_x_find_powers(ptx *p, gemm_x *x);

/* Sets up the thread's part of a tile. */
void gemm_x_begin(ptx *p, gemm_x *x, val tile);

/* Begins to load the step `bytes` further, which has `valid` values. 0 bytes repeat the last step;
 * VAL_NONE loads the first one. */
void gemm_x_load(ptx *p, const gemm_x *x, val bytes, unsigned valid);

/* Stores the loaded step in the tile, tile_offset bytes past the first tile. */
void gemm_x_store(ptx *p, const gemm_x *x, unsigned tile_offset);

/* Returns the factor of a row's sums: row `number` of the tile, `own` of all rows. */
val gemm_x_factor(ptx *p, const gemm_x *x, val number, val own);

/* A lane's sums of a tile of Y. */
typedef struct gemm_sums {
    const instance *in;
    unsigned rows;                      /* rows of the tile */
    bool by_wgmma;                      /* wgmma, by four warps */
    unsigned down, across;              /* fragments per warp; wgmma: 1, rows / 16 */
    val row, column;                    /* the lane's first row and column in the tile */
    val ticket;                         /* shared memory, for split-K */
    val a[GEMM_DEPTHS], b[GEMM_DEPTHS]; /* a lane's addresses for ldmatrix, or wgmma descriptors */
    var sums[GEMM_MOST_SUMS][4];        /* fragments of 8 columns of the product, row by row */
} gemm_sums;

/* Sets the sums to zero. X has two consecutive tiles, followed by two of W. */
void gemm_sums_begin(ptx *p, gemm_sums *s, val x_tile, val w_tile);

/* Barrier between the stores of a step's tiles and their use. It frees the other two tiles. */
void gemm_sums_sync(ptx *p, const gemm_sums *s);

/* Adds the products of a step's tiles, the first (parity 0) or second ones. */
void gemm_sums_multiply(ptx *p, const gemm_sums *s, unsigned parity);

/* Waits for all products. With split-K all blocks of a tile store their sums; the last one adds
 * them in the order of k, and the others end. */
void gemm_sums_end(ptx *p, const gemm_sums *s);

/* Finds the lane's first row and column, only here to save registers. */
void gemm_sums_place(ptx *p, gemm_sums *s);

/* Return a lane's number of rows and of columns, the offset of one from its first, and its sum. */
unsigned gemm_sums_row_count(const gemm_sums *s);
unsigned gemm_sums_column_count(const gemm_sums *s);
unsigned gemm_sums_row(const gemm_sums *s, unsigned row);
unsigned gemm_sums_column(const gemm_sums *s, unsigned column);
var gemm_sums_at(const gemm_sums *s, unsigned row, unsigned column);

/* Returns how many neighbouring rows of the tile are gate's before as many of up's follow: a lane
 * has gate and up of a column, up gemm_gate_rows() columns further. */
unsigned gemm_gate_rows(const gemm_sums *s);
var gemm_sums_of_up(const gemm_sums *s, unsigned row, unsigned column_of_gate);

/* Rows of X per block, at most: with wgmma, and without. */
enum { GEMM_MOST_ROWS = 256, GEMM_USUAL_ROWS = 128 };

/* Sizes in launch formulas. gemm_rows: rows of X that a tile has room for. */
int64_t gemm_rows(const instance *in);
/* Rows of an expert per block at a time. */
int64_t gemm_expert_rows(const instance *in);
/* Columns of Y per block. */
int64_t gemm_columns(const instance *in);
/* Bytes of dynamic shared memory. */
int64_t gemm_shared_bytes(const instance *in);
/* Bytes of the powers of two of W's rows, for formats beyond the range of f16. */
int64_t gemm_powers_bytes(const instance *in);
/* Values that a block with a part of k stores of a tile. */
int64_t gemm_tile_values(const instance *in);

/* Refuses a split of k into parts that are not whole chunks, and what check_product refuses. */
const char *gemm_check(const instance *in, arena *a, const char **blamed);

/* Computes the block's tile of Y and stores it. */
void gemm_build(ptx *p, const instance *in);
