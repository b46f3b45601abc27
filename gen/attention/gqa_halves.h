/* Decode attention of one warp on the tensor cores, for up to 16 query heads of a KV head whose
 * cache is of f16, so that K and V are read once for all of them.
 *
 * The heads are the columns of the products, in sets of 8, and positions or values their rows: of
 * few heads few results take registers. A warp does its positions in tiles of 16, or 32 of short
 * heads:
 *
 *   1. K q'. The order of the values in a product is free where both factors have the same: lane t
 *      = lane % 4 takes values 8t .. 8t + 7 of each 32, so that the 16 bytes that it loads of rows
 *      g = lane / 4 and g + 8 are its parts of two matrices.
 *   2. The online softmax. A lane has the products of positions g and g + 8 and of heads 2t and 2t
 *      + 1; their weights of f16, transposed, are its part of a matrix of the next product.
 *   3. V' P'. A lane has 8 neighbouring values of four positions, from which prmt makes its parts
 * of four matrices: rows g and g + 8 of matrix j are values 8g + 2j and 8g + 2j + 1 of 64. The sum
 *      of the weights is that of the rounded ones, as a product with ones, so that a rounding error
 *      moves a result by the distance of a value to the mean alone.
 *
 * Nothing goes through shared memory. What is loaded next takes the registers of what has just been
 * used: K and V of the next tile, or of long heads, where these are the same registers, V of this
 * tile in place of its K, and K of the next one in place of that. Behind the last position it is
 * the last one again, which counts nothing.
 *
 * So that nothing finite overflows as f16, a row of q is multiplied by a power of two, as in
 * common/halves.h.
 */
#ifndef PTXGEN_GEN_ATTENTION_GQA_HALVES_H
#define PTXGEN_GEN_ATTENTION_GQA_HALVES_H

#include "gen/attention/attention.h"

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
    unsigned depths;     /* tiles of 16 positions that are gone through together */
    unsigned v_pieces;   /* the first of V's: 0 where they take the place of K's */
    val group, part;     /* g and t */
    val rows;            /* shared memory: the warp's partial row of the first head, */
    unsigned row_stride; /* and bytes to the next head's */
    val last;            /* the last position there is */
    val4 q[GQA_HALVES_SETS][GQA_HALVES_UNITS];
    val parked; /* or, with a kind, shared memory that the lane has it in */
    val factor[GQA_HALVES_SETS]
              [2]; /* of the products of the lane's heads of a set, 2t and 2t + 1 */
    var max[GQA_HALVES_SETS][2];
    var sums[GQA_HALVES_SETS][4];
    var results[GQA_HALVES_MATRICES][GQA_HALVES_SETS][4];
    var pieces[GQA_HALVES_PIECES][4];
} gqa_halves;

/* Positions of a warp's turn: work is best handed out in multiples of it. */
unsigned gqa_halves_step(const instance *in);

/* Registers of a lane: three blocks of four warps, or two, fit an SM. */
unsigned gqa_halves_registers(const instance *in, unsigned heads);

/* Words of shared memory that the block's q takes, where it stands there. */
unsigned gqa_halves_query_words(const instance *in, unsigned heads);

/* A warp for some heads, 1 to 16, or 8 of long ones: loads query row number query and those behind
 * it, or in place of rows behind last_query, that one again; a barrier comes next. queries and rows
 * are addresses in shared memory: of the block's q, and of the warp's partial rows, which lie
 * row_stride bytes apart. */
gqa_halves gqa_halves_new(ptx *p, const instance *in, unsigned heads, val query, val last_query,
                          val queries, val rows, unsigned row_stride);

/* Makes the partial rows those of some positions, maybe none, of the caches of a KV head. Of a ring
 * they are at most as many as it has rows; they may begin anywhere in it. */
void gqa_halves_attend(ptx *p, gqa_halves *g, val k, val v, positions run);

#endif
