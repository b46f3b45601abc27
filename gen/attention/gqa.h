/* Decode attention of one warp for several query heads of a KV head at once, so that K and V are
 * read once for all of them: with sums of f32 (gqa.c), or on the tensor cores (gqa_halves.c).
 */
#ifndef PTXGEN_GEN_ATTENTION_GQA_H
#define PTXGEN_GEN_ATTENTION_GQA_H

#include "gen/attention/attention.h"

enum { GQA_HEADS = 8, GQA_SETS = 4, GQA_QUAD = 4, GQA_TILE = 64 };

/* Values of shared memory: a warp's products, for each head, with what keeps heads apart; and of a
 * block q, for each head or, of 7 heads, for 8. */
enum { GQA_PRODUCTS = GQA_TILE + 16 };
unsigned gqa_query_values(const instance *in, unsigned heads);

/* Heads that are added up together, and where their products are. */
typedef struct head_set {
    unsigned first, heads;
    unsigned size;           /* heads or one more, a power of two and at most a group of lanes */
    unsigned offset, stride; /* bytes, of the first head's products and from head to head */
    unsigned slot;           /* number of the first product, of q */
    val q[GQA_HEADS][MAX_LANE_VALUES];
    var tile_max; /* of the products of head lane % size in a tile */
    val factor;   /* scales earlier sums where the tile raises the maximum */
} head_set;

typedef struct gqa {
    const instance *in;
    unsigned heads;
    row_lane row;
    head_set sets[GQA_SETS];
    unsigned set_count;
    unsigned step;                      /* positions of a warp's turn */
    unsigned depth;                     /* rows in flight */
    var raw[GQA_QUAD][MAX_LANE_VALUES]; /* the rows */
    val queries, products;              /* shared memory: the lane's of q, the warp's products, */
    val rows, lane_rows;                /* the partial row of the first head, the lane's pieces */
    unsigned row_stride;                /* bytes to the next head's */
    val last;                           /* the last position there is */
    var results[GQA_HEADS][MAX_LANE_VALUES];
} gqa;

/* Positions of a warp's turn: work is best handed out in multiples of it. */
unsigned gqa_step(const instance *in);

/* Makes a warp for some heads, 1 to GQA_HEADS. queries, products and rows are addresses in shared
 * memory: of the block's q, of the warp's products and of its partial rows, which lie row_stride
 * bytes apart. gqa_clear makes them zero; in a new warp they are. */
gqa gqa_new(ptx *p, const instance *in, unsigned heads, val queries, val products, val rows,
            unsigned row_stride);
void gqa_clear(ptx *p, const gqa *g);

/* Stores q to shared memory with all warps of the block, and waits for it: query row number query
 * and the next ones, or last_query in place of rows past that. */
void gqa_stage_queries(ptx *p, const gqa *g, val query, val last_query);

/* Adds a possibly empty run of positions of the caches of a KV head to the partial rows. A run is
 * at most as long as a ring, and may begin anywhere in it. */
void gqa_attend(ptx *p, gqa *g, val k, val v, positions run);

enum {
    GQA_HALVES_VALUES = 64,     /* head_dim is a multiple of it */
    GQA_HALVES_LONG_HEAD = 128, /* values: of more a warp takes one set of heads */
    GQA_HALVES_SET = 8,
    GQA_HALVES_SETS = 2,
    GQA_HALVES_UNITS = 8,   /* of 32 values, of the longest head */
    GQA_HALVES_PIECES = 16, /* of 16 bytes, that a lane has at a time */
    GQA_HALVES_MATRICES = 16,
};

typedef struct gqa_halves {
    const instance *in;
    unsigned heads, sets;
    unsigned units, matrices; /* of a row: 32 values, 16 values */
    unsigned depths;          /* tiles of 16 positions that are gone through together */
    unsigned v_pieces;        /* the first of V's: 0 where they take the place of K's */
    val group, part;          /* g and t */
    val rows;                 /* shared memory: the warp's partial row of the first head, */
    unsigned row_stride;      /* and bytes to the next head's */
    val last;                 /* the last position there is */
    val4 q[GQA_HALVES_SETS][GQA_HALVES_UNITS];
    val parked;                     /* or, with a kind, shared memory that the lane has it in */
    val factor[GQA_HALVES_SETS][2]; /* of products of the lane's heads of a set, 2t and 2t + 1 */
    var max[GQA_HALVES_SETS][2];
    var sums[GQA_HALVES_SETS][4];
    var results[GQA_HALVES_MATRICES][GQA_HALVES_SETS][4];
    var pieces[GQA_HALVES_PIECES][4];
} gqa_halves;

/* Do the same on the tensor cores, for 1 to 16 heads, or 8 of long ones. gqa_halves_new loads q as
 * well; a barrier comes next. gqa_halves_attend overwrites the partial rows. */
unsigned gqa_halves_step(const instance *in);
gqa_halves gqa_halves_new(ptx *p, const instance *in, unsigned heads, val query, val last_query,
                          val queries, val rows, unsigned row_stride);
void gqa_halves_attend(ptx *p, gqa_halves *g, val k, val v, positions run);

/* Registers of a lane, so that three blocks of four warps, or two, fit an SM; and words of shared
 * memory for the block's q, 0 where registers hold it. */
unsigned gqa_halves_registers(const instance *in, unsigned heads);
unsigned gqa_halves_query_words(const instance *in, unsigned heads);

#endif
