/* Tiles of a KV head's K and V in shared memory as f16, for products on the tensor cores.
 *
 * A tile is some neighbouring positions, a multiple of 16, from a multiple of so many on: a row of
 * head_dim values for each, 16 bytes further apart than it is long, so that eight neighbouring rows
 * of eight values, as ldmatrix reads them, are in eight different places modulo 128 bytes.
 *
 * Rows of f16 are copied as they are, ahead: while a tile of K is in use its V is copied, and while
 * that is in use the next K. A row behind the last position becomes zeros.
 *
 * Others are loaded, multiplied by a power of two that brings the largest value of a row to 2^14 ..
 * 2^15, so that nothing finite overflows, and rounded; in place of a row behind the last position
 * it is that one again. What the column of a product has for it stands beside the tile: of K's row
 * times 2^-e and V's times 2^-E, factor 2^e, exponent E and inverse 2^-E.
 *
 * Of a ring, whose rows are used again, position t is in row t % ring, and neither are positions
 * ahead of the first one read: others may be in their rows.
 */
#ifndef PTXGEN_GEN_ATTENTION_KV_TILES_H
#define PTXGEN_GEN_ATTENTION_KV_TILES_H

#include "gen/attention/cache_row.h"

enum {
    KV_FRAGMENT = 16, /* rows and columns that a lane's ldmatrix takes part in */
    KV_MOST_KEYS = 64,
    KV_MOST_PARTS = 4,
};

/* A part of all rows of a tile: a power of two of units of 16 bytes. A thread has one of them, in
 * every rows-th row, turns times. */
typedef struct kv_part {
    unsigned units, rows, turns;
    val row, within, exists; /* the thread's first row; bytes into it; whether it has one */
    val at;                  /* address of that in K */
} kv_part;

typedef struct kv_tiles {
    const instance *in;
    unsigned warps, keys, stride, bytes; /* bytes of a tile of K, or of V */
    bool rounded;
    val caches;     /* shared memory: the addresses of the KV head's K and V */
    val first, end; /* positions that the block is over */
    val ring_row;   /* of a ring: the row of the first of them */
    val memory, columns;
    val k_at, v_at; /* the lane's addresses for ldmatrix, of V but for bytes */
    unsigned part_count;
    kv_part parts[KV_MOST_PARTS];
    row_lane lane; /* of rows that are rounded */
} kv_tiles;

/* Returns true if rows are rounded. kv_tiles_bytes returns the bytes of dynamic shared memory that
 * tiles of a number of positions take. */
bool kv_tiles_round(const instance *in);
int64_t kv_tiles_bytes(const instance *in, unsigned keys);

/* Stores the addresses of a KV head's K and V to shared memory, to save registers; a barrier comes
 * next. */
val kv_tiles_put_caches(ptx *p, val k, val v);

/* Sets up the thread's part, after that barrier. A turn of the block's threads through a part of
 * the rows must take whole rows. */
kv_tiles kv_tiles_new(ptx *p, const instance *in, unsigned keys, unsigned warps, val caches,
                      val first, val end);

/* Begins to copy the first tile's K, where tiles are copied. */
void kv_tiles_begin(ptx *p, const kv_tiles *t, val tile);

/* Wait for K and then V of a tile, and begin to copy what comes next: V of the tile, K of the next
 * one. All threads of the block call each when they all have read what was there before. */
void kv_tiles_next_keys(ptx *p, const kv_tiles *t, val tile);
void kv_tiles_next_values(ptx *p, const kv_tiles *t, val tile);

/* Fragments of B for mma_m16n8k16_f16, two side by side: of K, where columns are positions, and of
 * V, where rows are; number across of columns and down of rows, 16 each. */
typedef struct kv_fragments {
    val2 b[2];
} kv_fragments;
kv_fragments kv_tiles_keys(ptx *p, const kv_tiles *t, unsigned down, unsigned across);
kv_fragments kv_tiles_values(ptx *p, const kv_tiles *t, val down, unsigned across);

/* Of two neighbouring columns that begin at a column, factors, exponents and inverses. */
typedef struct kv_columns {
    val2 factors, exponents, inverses;
} kv_columns;
kv_columns kv_tiles_columns(ptx *p, const kv_tiles *t, val column, unsigned further);

/* Infinities and NaN of V: the number of threads of the block that see one; make zeros of them,
 * with barriers on both sides; 0x8000 in each half of a pair that is one. */
val kv_tiles_count_strange(ptx *p, const kv_tiles *t);
void kv_tiles_clear_strange(ptx *p, const kv_tiles *t);
val strange_halves(ptx *p, val pair);

#endif
