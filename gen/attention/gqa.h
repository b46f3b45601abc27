/* Decode attention of one warp for several query heads of a KV head at once, so that K and V are
 * read once for all of them.
 *
 * A warp does its positions in tiles of 64, each in three passes:
 *
 *   1. q K'. A group of lanes has a position's row (see cache_row.h), 8 values a lane and the same
 *      of q for every head in registers. Products go to shared memory, [head, position]. q comes
 *      from there: the block has put it down as lanes want it, [product, four values, lane].
 *   2. The online softmax of each head, whose positions lanes share out: each product is capped and
 *      exponentiated once, and becomes a weight in place.
 *   3. P V, with the same lanes' 8 values of V and of every head's result in registers. Results are
 *      added to the warp's partial rows in shared memory.
 *
 * q is gone when the results come: that is what leaves registers for 8 heads.
 *
 * In the first two passes heads stand in sets of 1, 2, 4 or 8. A lane's product number i of a set
 * is that of head i ^ lane, so that two lanes add up theirs by exchanging halves: of the products i
 * and i + size/2, a lane keeps the first and gets the first's other part, which its neighbour at
 * size/2 has at i + size/2. For 8 heads that takes 7 shuffles instead of 24, and no selection.
 * Seven heads are a set of 8 whose last one comes twice: fewer shuffles than sets of 4, 2 and 1.
 *
 * A group takes four positions a turn, so that the products of a head are one 16-byte word in
 * shared memory. When a row is in use, the one that will take its registers is loaded; behind a
 * tile's last position that is a row of the next tile, which is then in the cache, and behind the
 * last one of all that one again, which counts nothing.
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
    unsigned slot;           /* of q: number of the first product's */
    val q[GQA_HEADS][MAX_LANE_VALUES];
    var tile_max; /* of the products of head lane % size in a tile */
    val factor;   /* of what is there, where the tile raises the maximum */
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
    val queries;                        /* of the lane, in shared memory; */
    val products;                       /* the warp's there, */
    val rows, lane_rows;                /* and its partial row of the first head, whole and the
                                           lane's pieces: */
    unsigned row_stride;                /* bytes to the next head's */
    val last;                           /* the last position there is */
    var results[GQA_HEADS][MAX_LANE_VALUES];
} gqa;

/* Positions of a warp's turn: work is best handed out in multiples of it. */
unsigned gqa_step(const instance *in);

/* A warp for some heads, 1 to GQA_HEADS. queries, products and rows are addresses in shared memory:
 * of the block's q, of the warp's products and of its partial rows, which lie row_stride bytes
 * apart and are made zero. */
gqa gqa_new(ptx *p, const instance *in, unsigned heads, val queries, val products, val rows,
            unsigned row_stride);

/* Makes the warp's partial rows zero again. */
void gqa_clear(ptx *p, const gqa *g);

/* Puts q into shared memory, all warps of the block together, and waits for them: query row number
 * query and those behind it; in place of rows behind last_query, that one again. */
void gqa_stage_queries(ptx *p, const gqa *g, val query, val last_query);

/* Adds some positions, maybe none, of the caches of a KV head to the partial rows. Of a ring they
 * are at most as many as it has rows; they may begin anywhere in it. */
void gqa_attend(ptx *p, gqa *g, val k, val v, positions run);

#endif
