/* A lane's share of a row of head_dim values: K and V in f32, f16, bf16 or q8_0, queries and
 * results in f32.
 *
 * A group of lanes shares the row of a position. A lane has every group-size-th piece of 16 bytes
 * (or 8 if they divide the row better), so that neighbouring lanes read neighbouring bytes. A warp
 * has several groups, each with its own positions.
 *
 * A row of q8_0 is head_dim / 32 blocks as ggml stores them, 34 bytes each:
 *
 *   offset  0  f16  d          value = d * q
 *           2  32 x s8         q
 *
 * A lane has one piece, 8 or 16 quants of one block. Rows with an even number of blocks are 4-byte
 * aligned. A lane's quants are then at a multiple of 4 (odd blocks) or two bytes after one (even
 * blocks), the same in every row. A lane loads d, and one word more than its quants need, from two
 * or four bytes before them; these bytes belong to the row. prmt, with one selector for all rows,
 * makes a word of quants from two neighbouring words.
 *
 * Rows with an odd number of blocks (head_dim = 32, 96, 160, ...) are only 2-byte aligned: with
 * head_dim = 96, rows begin at 0, 102, 204. A lane then loads two quants at a time. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { MAX_LANE_VALUES = 16 };

unsigned cache_row_bytes(const instance *in);

/* The split of a row over lanes: at most lane_values per lane, if a warp has enough lanes for that.
 */
typedef struct row_split {
    format format;   /* format of the cache */
    unsigned piece;  /* values per load of a lane */
    unsigned group;  /* lanes per position, a power of two */
    unsigned pieces; /* maximum pieces per lane */
    bool ragged;     /* some lanes do not have the last piece */
    bool in_pairs;   /* q8_0: two quants per load */
} row_split;

row_split row_split_of(const instance *in, unsigned lane_values, unsigned least_group);
unsigned row_split_values(const row_split *s); /* values per lane */

/* The lane's share. A lane without a last piece reads its first piece again and treats it as zeros.
 */
typedef struct row_lane {
    row_split split;
    unsigned row_pieces; /* pieces of all lanes */
    val lane, group;     /* index in its group; index of its group */
    val first_piece;     /* index in the row; 0 if the lane has none */
    val has_last;        /* predicate: the lane has its last piece */
    val last_offset;     /* u64, in the cache: from the first address to the second */
    val words_offset;    /* q8_0, u64: from the row to the lane's words or pairs */
    val selector;        /* q8_0: prmt selector for a word of quants */
} row_lane;
row_lane row_lane_new(ptx *p, const instance *in, row_split split);

/* Returns the bytes from a row of the cache to the lane's first address in it. */
val row_lane_offset(ptx *p, const row_lane *l);

/* Loads the lane's values of an f32 row, multiplied by scale. Values of a missing last piece are 0:
 * an infinity times the zeros of the cache's row would be NaN. */
void row_lane_load(ptx *p, const row_lane *l, val row, float scale, val values[MAX_LANE_VALUES]);

/* Returns the address of the lane's first piece of an f32 row in shared or global memory. */
val row_lane_at(ptx *p, const row_lane *l, val row);
/* Stores the lane's values there, multiplied by *scale unless scale is NULL. If all groups have the
 * same values, only one group may call it. */
void row_lane_store(ptx *p, const row_lane *l, val at, const var *values, const val *scale);

/* Replaces an f32 row in shared memory by row * factor + values. One of the groups does it; at is
 * the address of the lane's first piece. */
void row_lane_add(ptx *p, const row_lane *l, val at, val factor, const var *values);

/* The lane's share of a cache row as loaded: f32 values, words of two values, or for q8_0 words or
 * pairs and then d. first and last are the addresses of its first and last piece (q8_0: of its
 * words or pairs, and of d), minus offset. */
typedef struct raw_row {
    val words[MAX_LANE_VALUES];
} raw_row;
raw_row raw_row_load(ptx *p, const row_lane *l, val first, val last, int64_t offset);
unsigned raw_row_words(const row_split *s);
void raw_row_unpack(ptx *p, const row_lane *l, const raw_row *row, val values[MAX_LANE_VALUES]);
