/* Products of 8-bit rows of X on int8 tensor cores: each block of W is read once for up to 64 rows.
 *
 * A warp multiplies 16 rows of W at a time. In a step it takes 256 values of each. Its lanes load
 * and decode them as those of a streaming product do (stream_plan.h): 4 lanes share a row, or 8 if
 * a lane has two segments, so two or four loads hold the 16 rows. The quants go to the warp's tile
 * in shared memory, their scales to records beside it, and ldmatrix reads both fragments of
 * mma.m16n8k32: W's rows are those of A, X's rows are the columns of B.
 *
 * A tile has a row of 256 bytes for each row of W: 16 units, which are segments of the stream. Four
 * units are a quad: with four segments per lane those of a lane, else those of two lanes. A quad
 * has two groups of 32 values with a scale, or four of 16, each with a product of its own. Unit j
 * of quad q is the tile's unit 2q + j % 2 + 8 (j / 2), or with two segments 2q + j / 2 + 8 (j % 2).
 * Rows are a unit apart, so neither the stores of eight lanes nor ldmatrix have bank conflicts.
 *
 * Some formats have a stream of fragments (stream_format.fragments): lanes load their parts of A,
 * and there is no tile of W. A lane's part of a group is then values 8l .. 8l + 7, and that of B
 * alike. A warp then multiplies two sets of 16 rows with the same loads of x: those of gate and up,
 * or with more rows of X neighbours.
 *
 * Up to eight rows of X multiply rows of whole steps of Q8_0 as they are stored: mma_q8_stored.h.
 *
 * A product starts from 1.5 * 2^23, plus the format's offset times the sum of x, so that its sum is
 * the mantissa of a float (q8_1.h). With s the scale of a row of W and d that of a row of X,
 *
 *     sum of Y += d * fma(product, s, -1.5 * 2^23 * s)
 *
 * is rounded only twice, and takes two instructions. Minima are multiplied by the sums of x.
 * Products of halves (stream_format.halves) start from 0. The sum of two, times their scales, is
 * exact: its integer has 26 bits, the last two 0. The sums of a turn are multiplied by the factor
 * of a row's block.
 *
 * The warps of a block share x. A team of four of them shares 16 rows at a time: warp i takes steps
 * i, i + 4, ... and the four sums are added in this order. So a result has the same bits for any
 * grid and for any m up to 64. For more rows of X each warp is a team, and its sums stay in
 * registers. */
#pragma once

#include "gen/products/mma_q8_stored.h"
#include "gen/products/stream_plan.h"

enum {
    MMA_FEW_ROWS = 64, /* rows of X with the same bits */
    MMA_COLUMNS = 8,   /* rows of X of a product */
    MMA_QUADS = 4,
    MMA_MOST_SETS = 2,
    MMA_MOST_LOADS = 4, /* loads that hold a warp's rows */
    MMA_MOST_TILES = 8, /* tiles of eight rows of X, at most */
    MMA_MOST_OWN = 32   /* results of a group per thread, at most */
};

/* A block's plan of its products, and a lane's state in it. */
typedef struct mma_q8_block {
    stream s;             /* x, and the decoder of W */
    stream_format format; /* of s */
    unsigned parts;       /* warps that share rows of W */
    unsigned turns;       /* steps of each warp */
    unsigned pass_turns;  /* of which x is in the tile */
    unsigned sets;        /* of 16 rows per warp, which share loads of x */
    bool pair;            /* the two sets are the same rows of gate and up */
    unsigned lanes;       /* per row of a load */
    unsigned loads;       /* loads that hold the rows of a set */
    unsigned groups;      /* groups of a quad */
    unsigned tiles;       /* tiles of rows of X */
    bool ragged, steady;  /* rows end before the last step does; lanes' rotations do not change */
    bool alternates;      /* only shift.selector changes, and is one of two */
    bool sign;            /* quants have signs */
    bool direct;          /* lanes load fragments */
    val first_turn;       /* of the pass; VAL_NONE: 0 */
    val part, team;       /* the warp's index in its team, and the team's in the block */
    val lane;             /* the lane among those of its row */
    unsigned row_bytes;
    bool alike; /* the rows are always MMA_ROWS neighbours at multiples of 16 bytes */
    val selectors[2][STREAM_WORDS]; /* of even and of odd turns */
    bool whole_steps;               /* few rows of X, and rows of whole lines and steps */
    val first_block;                /* the lane's in turn 0; with whole_steps its offset */
    var step;                       /* with whole_steps the turn's, counted from row[i] */
    val matrix[MMA_MOST_LOADS];     /* of row[i] */
    unsigned sums_bytes;            /* from a warp's sums to the next */
    val4 starts;
    val record;         /* address of the lane's scales */
    val store, records; /* addresses of the lane's units, and of all records */
    mma_q8_stored stored;
    val a, read; /* its addresses for ldmatrix, and of records of its product's rows */
    place b[MMA_MOST_TILES], beside[MMA_MOST_TILES][2]; /* the same in the tile of x */
    place sums_of_x[MMA_MOST_TILES];
    val partial;             /* shared memory for sums of the team's warps */
    var row[MMA_MOST_LOADS]; /* addresses of the lane's rows of W */
    var loaded[MMA_MOST_LOADS][STREAM_LOADED];
    var sums[MMA_MOST_SETS][MMA_MOST_TILES][4];
    val4 two_quads[2]; /* of two rows of X: d of two quads */
    /* Sums of a turn, to multiply by d; with stream_format.halves. */
    var of_turn[MMA_MOST_TILES][4];
} mma_q8_block;

/* How blocks share the work. */
typedef struct mma_q8_form {
    unsigned warps; /* per block */
    unsigned sets;  /* of 16 rows of W per warp, at most MMA_MOST_SETS */
    bool pair;      /* the sets are the same rows of gate and up */
} mma_q8_form;

/* Returns the form for a matrix, or for gate and up. Fragments leave room for two
 * sets, if that leaves no SM without work. */
mma_q8_form mma_q8_form_of(const instance *in, bool gated);
/* Returns rows of X of a block, at most. */
int64_t mma_q8_block_rows(const instance *in);
/* Return rows of W of a team at a time, teams of a block, and bytes of dynamic shared memory. */
int64_t mma_q8_rows(mma_q8_form form);
int64_t mma_q8_teams(const instance *in, mma_q8_form form);
int64_t mma_q8_bytes(const instance *in, mma_q8_form form);

/* Begins the products with a matrix: stages x by all threads of the block, unless it has several
 * passes, and sets the lane's places. shared is dynamic shared memory. */
void mma_q8_begin(ptx *p, const instance *in, mma_q8_form form, const gemv_operands *g, val shared,
                  mma_q8_block *m);

/* Sets the rows of W that the team's lanes load, those of a group. A pair has the operands of gate
 * and of up. */
void mma_q8_set_rows(ptx *p, mma_q8_block *m, const gemv_operands *g, val group);

/* Loads the rows' first step. */
void mma_q8_load_first(ptx *p, mma_q8_block *m);

/* Adds the products of the rows' next turn, and begins to load the turn after it. After the last one
 * that is the first turn of other rows, which `next` sets. */
typedef struct mma_q8_next {
    void (*set_rows)(ptx *p, mma_q8_block *m, const void *context);
    const void *context;
} mma_q8_next;
void mma_q8_add(ptx *p, mma_q8_block *m, val turn, const mma_q8_next *next);

/* Returns a predicate: a tile has rows of X. All tiles have, unless a list chooses the rows. */
val mma_q8_tile_exists(ptx *p, const mma_q8_block *m, unsigned tile);

/* Barrier of the team. */
void mma_q8_barrier(ptx *p, const mma_q8_block *m);

/* Stores the sums of a set in place of the warps' tiles and zeros them, if a team has several
 * warps. */
void mma_q8_store_sums(ptx *p, const mma_q8_block *m, unsigned set);
/* Ends the use of a set's sums: waits for the team. After the last set a lone warp zeros its sums. */
void mma_q8_end_set(ptx *p, const mma_q8_block *m, unsigned set);

/* Adds the parts' sums of a set. Result e of its rows is row e % MMA_ROWS of W and row e / MMA_ROWS
 * of X. A thread gets `own` results in sums[i]: mma_q8_result returns their numbers. */
unsigned mma_q8_own(const mma_q8_block *m);
val mma_q8_result(ptx *p, const mma_q8_block *m, unsigned i);
void mma_q8_sum(ptx *p, const mma_q8_block *m, unsigned set, val sums[MMA_MOST_OWN]);

/* A matrix, gate and up, or neighbours of Q, K and V with one format, in groups of mma_q8_rows. */
typedef struct mma_q8_run {
    const instance *in;
    mma_q8_form form;
    gemv_run of;
    gemv_operands g[QKV_MATRICES]; /* with `chosen`: the block's rows of X and Y, at most m */
    val factors;                   /* of rows of X, in shared memory */
    val first_bias;                /* element of bg and bu of the first row; VAL_NONE: 0 */
    bool gated;                    /* g[0] is gate and g[1] up; a group is one of both, or a pair */
} mma_q8_run;

/* Loads the factors of the block's rows of X to shared memory. */
void mma_q8_load_factors(ptx *p, const gemv_operands *g, unsigned vectors, val factors);

/* Multiplies the run's groups `first`, first + nctaid_x, ... and stores the results. A barrier
 * follows the last use of shared memory. */
void mma_q8_multiply_run(ptx *p, const mma_q8_run *run, val first, val shared);
