/* A lane's share of a row of head_dim values: of K and V in f32, f16, bf16 or q8_0, of queries and
 * results in f32.
 *
 * A group of lanes shares a position's row. A lane has every group-size-th piece of 16 bytes (8
 * where that divides the row better), so that neighbouring lanes read neighbouring bytes. A warp
 * has several groups, each with its own positions.
 *
 * A row of q8_0 is head_dim / 32 blocks as ggml stores them, 34 bytes each:
 *
 *   offset  0  f16  d          value = d * q
 *           2  32 x s8         q
 *
 * A lane has one piece, 8 or 16 quants of one block. Rows of whole pairs of blocks are 4-byte
 * aligned, so that a lane's quants are at a multiple of 4 (odd blocks) or two bytes past one (even
 * blocks), in every row alike. A lane loads d, and one word more than it has words of quants, from
 * two or four bytes ahead of them: still bytes of the row. prmt with one selector for all rows
 * makes a word of quants of each two neighbouring words.
 *
 * Rows of an odd number of blocks (head_dim = 32, 96, 160, 224) are only 2-byte aligned: of
 * head_dim = 96, rows begin at 0, 102, 204. A lane then loads its quants two by two.
 */
#ifndef PTXGEN_GEN_ATTENTION_CACHE_ROW_H
#define PTXGEN_GEN_ATTENTION_CACHE_ROW_H

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { MAX_LANE_VALUES = 16 };

/* Bytes of a position's row of the cache. */
unsigned cache_row_bytes(const instance *in);

/* How lanes share a row: with at most lane_values a lane, where a warp is enough for that. */
typedef struct row_split {
    format format;   /* of the cache */
    unsigned piece;  /* values that a lane loads at once */
    unsigned group;  /* lanes a position, a power of two */
    unsigned pieces; /* a lane has at most */
    bool ragged;     /* some lanes have no last piece */
    bool in_pairs;   /* q8_0: quants are loaded two by two */
} row_split;

row_split row_split_of(const instance *in, unsigned lane_values, unsigned least_group);
unsigned row_split_values(const row_split *s); /* of a lane */

/* The share of this lane. A lane without a last piece reads its first piece again, and takes it for
 * zeros. */
typedef struct row_lane {
    row_split split;
    unsigned row_pieces; /* of all lanes */
    val lane, group;     /* its number in its group, its group's number */
    val first_piece;     /* number in the row; 0 where the lane has none */
    val has_last;        /* predicate: the lane's last piece exists */
    val last_offset;     /* u64, of the cache: from the first of its two addresses to the second */
    val words_offset;    /* q8_0: u64, from the row to the lane's words or pairs */
    val selector;        /* q8_0: of prmt, for a word of quants of two neighbouring words */
} row_lane;
row_lane row_lane_new(ptx *p, const instance *in, row_split split);

/* Bytes from a row of the cache to the first of the lane's two addresses in it. */
val row_lane_offset(ptx *p, const row_lane *l);

/* Loads the lane's values of an f32 row, multiplied by scale; zeros where it has no last piece,
 * since an infinity of another piece times the zeros of the cache's row would be a NaN. */
void row_lane_load(ptx *p, const row_lane *l, val row, float scale, val values[MAX_LANE_VALUES]);

/* The address of the lane's first piece of an f32 row in shared or global memory, and stores of its
 * values there, multiplied by scale unless it is NULL. Where all groups have the same values, one
 * of them stores. */
val row_lane_at(ptx *p, const row_lane *l, val row);
void row_lane_store(ptx *p, const row_lane *l, val at, const var *values, const val *scale);

/* Makes an f32 row in shared memory row * factor + values, with one of the groups; at is the
 * address of the lane's first piece. */
void row_lane_add(ptx *p, const row_lane *l, val at, val factor, const var *values);

/* The lane's share of a row of the cache, as loaded: f32 values, words of two values, or q8_0's
 * words or pairs, then d. first and last are addresses of its first and its last piece, less the
 * offset; with q8_0, of its words or pairs and of d. */
typedef struct raw_row {
    val words[MAX_LANE_VALUES];
} raw_row;
raw_row raw_row_load(ptx *p, const row_lane *l, val first, val last, int64_t offset);
unsigned raw_row_words(const row_split *s);
void raw_row_unpack(ptx *p, const row_lane *l, const raw_row *row, val values[MAX_LANE_VALUES]);

#endif
