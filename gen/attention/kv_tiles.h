/* Tiles of a KV head's K and V in shared memory as f16, for the tensor cores.
 *
 * A tile is `keys` neighbouring positions (a multiple of 16), starting at a multiple of `keys`.
 * Each has a row of head_dim values, padded by 16 bytes. So eight neighbouring rows of eight
 * values, as ldmatrix reads them, are in eight different places modulo 128 bytes.
 *
 * f16 rows are copied asynchronously in advance: V of a tile while its K is used, and K of the next
 * tile while V is used. Rows after the last position become zeros.
 *
 * Rows of other types are loaded, multiplied by a power of two that brings the row's largest value
 * to 2^14 .. 2^15 (so no finite value overflows), and rounded. Rows after the last position repeat
 * the last one. The numbers that undo the powers are stored beside the tile, as a kv_columns per
 * position: for K's row times 2^-e and V's row times 2^-E, the factor 2^e, the exponent E and the
 * inverse 2^-E.
 *
 * If rows of V have more than PROBLEM_SPLIT_HEAD_DIM values, a block has half of their columns: the
 * caller's address of V selects the half.
 *
 * In a ring position t is in row t % ring. Positions before the first one are not read, since their
 * rows may already hold other positions. */
#pragma once

#include "gen/attention/attention.h"

enum {
    KV_FRAGMENT = 16, /* rows and columns of a lane's ldmatrix */
    KV_MOST_KEYS = 64,
    KV_MOST_PARTS = 4,
};

/* A part of the rows of a tile: a power of two of 16-byte units. A thread owns one unit, in every
 * `rows`-th row, `turns` times. */
typedef struct kv_part {
    unsigned units, rows, turns;
    val row, within, exists; /* the thread's first row; bytes into it; predicate: it has one */
    val at;                  /* address of the first unit in K */
} kv_part;

/* The rows of K, or of V, in a tile. */
typedef struct kv_layout {
    unsigned stride; /* bytes */
    unsigned part_count;
    kv_part parts[KV_MOST_PARTS];
    row_lane lane; /* the lane's share of rows that are rounded */
} kv_layout;

typedef struct kv_tiles {
    const instance *in;
    unsigned warps, keys, bytes; /* bytes of a tile of K */
    bool rounded;
    val caches; /* shared memory: starts of the KV head's K and V */
    cache_pages pages;
    val first, end; /* positions of the block */
    val ring_row;   /* ring row of the first position */
    val memory, columns;
    val k_at, v_at;    /* the lane's ldmatrix addresses; for V without `bytes` */
    kv_layout rows[2]; /* K and V */
} kv_tiles;

/* Returns the columns of V in a tile: head_dim, or half of it. */
unsigned kv_tiles_width(const instance *in);
/* Returns true if rows are rounded rather than copied. */
bool kv_tiles_round(const instance *in);
/* Returns the bytes of dynamic shared memory for tiles of `keys` positions. */
int64_t kv_tiles_bytes(const instance *in, unsigned keys);

/* Stores the starts of a KV head's K and V to shared memory, to save registers. The caller must
 * add a barrier. */
val kv_tiles_put_caches(ptx *p, val k, val v);

/* Initializes the thread's state, after that barrier. The block's threads must cover whole rows of
 * every part. */
kv_tiles kv_tiles_new(ptx *p, const instance *in, unsigned keys, unsigned warps, val caches,
                      cache_pages pages, val first, val end);

/* Starts to copy the first tile's K; no-op if rows are rounded. */
void kv_tiles_begin(ptx *p, const kv_tiles *t, val tile);

/* Wait for a tile's K, or V, and start to copy what follows: the tile's V, or the next tile's K.
 * All threads must call each of them, after they have read the previous contents. */
void kv_tiles_next_keys(ptx *p, const kv_tiles *t, val tile);
void kv_tiles_next_values(ptx *p, const kv_tiles *t, val tile);

/* Two adjacent fragments of B for mma_m16n8k16_f16. In fragments of K the columns are positions, in
 * fragments of V the rows are. across and down are indices of 16 columns and 16 rows. */
typedef struct kv_fragments {
    val2 b[2];
} kv_fragments;
kv_fragments kv_tiles_keys(ptx *p, const kv_tiles *t, unsigned down, unsigned across);
kv_fragments kv_tiles_values(ptx *p, const kv_tiles *t, val down, unsigned across);

/* Factors, exponents and inverses of two neighbouring columns. */
typedef struct kv_columns {
    val2 factors, exponents, inverses;
} kv_columns;
kv_columns kv_tiles_columns(ptx *p, const kv_tiles *t, val column, unsigned further);

/* Returns the number of threads of the block that see an infinity or NaN in V. */
val kv_tiles_count_nonfinite(ptx *p, const kv_tiles *t);
/* Replaces infinities and NaN of V by zeros, between two barriers. */
void kv_tiles_clear_nonfinite(ptx *p, const kv_tiles *t);
/* Returns 0x8000 in each half of pair that is an infinity or NaN. */
val nonfinite_halves(ptx *p, val pair);
