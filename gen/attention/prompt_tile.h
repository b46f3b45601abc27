/* Attention of a block's rows of a prompt with tiles of K and V, on the tensor cores: products of q
 * with keys, the online softmax, weighted values. mma_attention.c describes the block. */
#pragma once

#include "gen/attention/kv_tiles.h"

enum {
    PROMPT_COLUMNS = 8, /* columns of a fragment of B and of sums */
    PROMPT_QUAD = 4,    /* lanes with the same rows */
    PROMPT_HALVES = 2,  /* a lane's rows of a fragment: g and g + 8 */
    PROMPT_MOST_PARTS = 2,
    PROMPT_LANE_BYTES = 16, /* bytes of a fragment of A per lane */
    PROMPT_LANE_ROWS = PROMPT_MOST_PARTS * PROMPT_HALVES,
    PROMPT_MOST_DEPTHS = PROBLEM_MOST_HEAD_DIM / KV_FRAGMENT,
    PROMPT_MOST_COLUMNS = PROBLEM_SPLIT_HEAD_DIM / PROMPT_COLUMNS,
    PROMPT_KEY_COLUMNS = KV_MOST_KEYS / PROMPT_COLUMNS,
};

/* A block of rows of a KV head, as its lanes see it. */
typedef struct prompt_block {
    const instance *in;
    unsigned rows, parts, warps, ratio;
    unsigned depths, kept; /* fragments of a row of q; the first `kept` stay in registers */
    unsigned across;       /* fragments of a row of o */
    val kv_head;
    val first_value;              /* of o; no kind: 0 */
    val lane_column;              /* the first of the lane's two columns of each eight */
    val limits;                   /* shared memory: first and end of each row */
    val chunk;                    /* shared memory: the block's chunk; no kind: all positions */
    val factor[PROMPT_LANE_ROWS]; /* factors of the rows' products */
    val parked;                   /* address of the lane's other fragments of q in shared memory */
    val4 q[PROMPT_MOST_DEPTHS][PROMPT_MOST_PARTS];
    kv_tiles tiles;
    var scores[PROMPT_MOST_PARTS][PROMPT_KEY_COLUMNS][4];
    var max[PROMPT_LANE_ROWS], sum[PROMPT_LANE_ROWS]; /* sum: if rows of the cache are rounded */
    var sums[PROMPT_MOST_PARTS][4];                   /* sums otherwise; all columns are equal */
    var o[PROMPT_MOST_PARTS][PROMPT_MOST_COLUMNS][4];
} prompt_block;

/* Returns the index in the block of one of the lane's rows, and the address in shared memory of its
 * first position and end. */
val prompt_row(ptx *p, const prompt_block *w, unsigned row);
val prompt_limits(ptx *p, const prompt_block *w, unsigned row);

/* Returns the offset from w->parked of a fragment of q. */
unsigned prompt_parked(const prompt_block *w, unsigned depth, unsigned part);

/* Adds tiles [from, to) to the results. whole: no row needs a mask. */
void prompt_attend(ptx *p, const prompt_block *w, val from, val to, bool whole);
