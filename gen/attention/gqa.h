/* Decode attention of one warp for several query heads of a KV head, so that K and V are read once
 * for all of them: with f32 sums (gqa.c), or on the tensor cores (gqa_halves.c). */
#pragma once

#include "gen/attention/attention.h"

enum { GQA_HEADS = 8, GQA_SETS = 4, GQA_QUAD = 4, GQA_TILE = 64 };

/* Values in shared memory: products per warp and head, with padding between heads; and q per block
 * (for 7 heads, as much as for 8). */
enum { GQA_PRODUCTS = GQA_TILE + 16 };
unsigned gqa_query_values(const instance *in, unsigned heads);

/* A set of heads whose sums are reduced together, and the location of its products. */
typedef struct head_set {
    unsigned first, heads;
    unsigned size;           /* heads rounded up to a power of two; at most a group of lanes */
    unsigned offset, stride; /* byte offset of the first head's products; bytes per head */
    unsigned slot;           /* index of the set's first product in q */
    val q[GQA_HEADS][MAX_LANE_VALUES];
    var tile_max; /* largest product of head lane % size in a tile */
    val factor;   /* rescales earlier sums if the tile raises the maximum */
} head_set;

typedef struct gqa {
    const instance *in;
    unsigned heads;
    row_lane row;
    head_set sets[GQA_SETS];
    unsigned set_count;
    unsigned step;                      /* positions per iteration of a warp */
    unsigned depth;                     /* rows in flight */
    var raw[GQA_QUAD][MAX_LANE_VALUES]; /* rows in flight */
    val queries, products;              /* shared memory: the lane's q; the warp's products */
    val rows, lane_rows;                /* first head's partial row; the lane's pieces of it */
    unsigned row_stride;                /* bytes from a head's partial row to the next */
    cache_pages pages;
    val last; /* the last position */
    var results[GQA_HEADS][MAX_LANE_VALUES];
} gqa;

/* Returns the positions per iteration of a warp. Stretches should be multiples of it. */
unsigned gqa_step(const instance *in);

/* Initializes a warp for 1 to GQA_HEADS heads, with partial rows of zero. queries, products and
 * rows are addresses in shared memory: of the block's q, the warp's products and its partial rows,
 * which are row_stride bytes apart. gqa_clear resets the partial rows. */
gqa gqa_new(ptx *p, const instance *in, unsigned heads, val queries, val products, val rows,
            unsigned row_stride);
void gqa_clear(ptx *p, const gqa *g);

/* Stages q in shared memory with all warps of the block, and ends with a barrier. It stores the
 * query rows from `query` on, and last_query in place of later rows. */
void gqa_stage_queries(ptx *p, const gqa *g, val query, val last_query);

/* Adds a run of positions to the partial rows. k and v are the starts of a KV head's caches. The run
 * may be empty; with a ring it is at most as long as the ring and may wrap around. */
void gqa_attend(ptx *p, gqa *g, cache_pages pages, val k, val v, positions run);

enum {
    GQA_HALVES_VALUES = 64,     /* head_dim is a multiple of it */
    GQA_HALVES_LONG_HEAD = 128, /* values; with longer heads a warp processes one set */
    GQA_HALVES_SET = 8,
    GQA_HALVES_SETS = 2,
    GQA_HALVES_UNITS = 8,   /* units of 32 values per lane and row */
    GQA_HALVES_PIECES = 16, /* 16-byte pieces per lane */
    GQA_HALVES_MATRICES = 16,
};

typedef struct gqa_halves {
    const instance *in;
    unsigned heads, sets;
    bool paired;              /* two warps share positions */
    unsigned units, matrices; /* units of 32 and matrices of 16 values per row of a warp */
    unsigned depths;          /* tiles of 16 positions per iteration */
    unsigned v_pieces;        /* first piece of V; 0 if V reuses the registers of K */
    val group, part;          /* g and t */
    val half;                 /* paired: 0 or 1, the warp's half of a row */
    val products;             /* paired: shared memory: the lane's products of both halves */
    val rows;                 /* shared memory: the warp's first partial row */
    unsigned row_stride;      /* bytes from a head's partial row to the next */
    cache_pages pages;
    val last; /* the last position */
    val4 q[GQA_HALVES_SETS][GQA_HALVES_UNITS];
    val parked;                     /* address of q in shared memory, or no kind */
    val factor[GQA_HALVES_SETS][2]; /* factors of products, for heads 2t and 2t + 1 */
    var max[GQA_HALVES_SETS][2];
    var sums[GQA_HALVES_SETS][4];
    var results[GQA_HALVES_MATRICES][GQA_HALVES_SETS][4];
    var pieces[GQA_HALVES_PIECES][4];
} gqa_halves;

/* Do the same on the tensor cores, for 1 to 16 heads, or up to 8 long heads. gqa_halves_new also
 * loads q; the caller must add a barrier after it. gqa_halves_attend overwrites the partial rows.
 * All warps of the block must call it, with `length` of the longest run, rounded up to steps. */
unsigned gqa_halves_step(const instance *in);
gqa_halves gqa_halves_new(ptx *p, const instance *in, unsigned heads, val query, val last_query,
                          val queries, val rows, unsigned row_stride);
void gqa_halves_attend(ptx *p, gqa_halves *g, cache_pages pages, val k, val v, positions run,
                       val length);

/* Returns the register limit with which three blocks of four warps, or two, fit an SM. */
unsigned gqa_halves_registers(const instance *in, unsigned heads);
/* Returns the neighbouring warps that share positions and partial rows: 1 or 2. */
unsigned gqa_halves_sharers(const instance *in);
/* Returns the words of shared memory for the block's q and for the products of paired warps; 0 if
 * q stays in registers. */
unsigned gqa_halves_query_words(const instance *in, unsigned heads);
