/* A row that a block processes in several passes. A thread has pieces of four columns, one block
 * width apart. Up to MOST_KEPT_PIECES pieces are unrolled and may stay in registers between passes.
 * More pieces are processed by a loop, and their values are loaded again in each pass. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { PIECE_COLUMNS = 4, MOST_KEPT_PIECES = 4 };

/* The key k of families with such rows, and the number of warps per block as a formula term. */
#define KEY_PIECE_COLUMNS                                                                          \
    KEY_NUMBER("k", "columns of x", shape.k, PIECE_COLUMNS, 1 << 24, .multiple_of = PIECE_COLUMNS, \
               .required = true, .tag = "k")
extern const term row_pieces_terms[];

/* One piece of a thread: its number if pieces are unrolled, else its byte offset from the thread's
 * first piece, for f32 values. */
typedef struct row_piece {
    unsigned number;
    val behind;
} row_piece;

typedef struct row_pieces {
    unsigned columns, warps; /* columns of the row; warps of the block */
    unsigned count;          /* pieces per thread */
    val first;               /* the thread's first column */
    var kept[MOST_KEPT_PIECES][PIECE_COLUMNS];
} row_pieces;
row_pieces row_pieces_new(ptx *p, const instance *in);

/* Returns true if the pieces are unrolled. */
bool row_pieces_are_few(const row_pieces *r);

/* Keep values in registers between passes: row_piece_keep writes them and row_piece_kept reads
 * them. If pieces are not unrolled, row_piece_keep does nothing and row_piece_kept must not be
 * called. */
void row_pieces_make_room(ptx *p, row_pieces *r);
void row_piece_keep(ptx *p, const row_pieces *r, const row_piece *at, val4 values);
val4 row_piece_kept(ptx *p, const row_pieces *r, const row_piece *at);

/* Load or store a piece of an f32 array; first is the address of the thread's first piece.
 * row_piece_again returns the kept values, or loads them if pieces are not unrolled.
 * row_piece_weights loads from an array that no launch writes. */
val4 row_piece_load(ptx *p, const row_pieces *r, const row_piece *at, val first);
val4 row_piece_again(ptx *p, const row_pieces *r, const row_piece *at, val first);
val4 row_piece_weights(ptx *p, const row_pieces *r, const row_piece *at, val first);
void row_piece_store(ptx *p, const row_pieces *r, const row_piece *at, val first, val4 values);

/* Returns the sum of own over the block, to all threads. Sum `number` of the kernel uses one word
 * of shared memory per warp, in the array at address sums. */
val row_pieces_sum(ptx *p, const row_pieces *r, val sums, unsigned number, val own);

/* Return the address of a piece and the byte offset to add to it, for values of four or two bytes.
 * first is the address of the thread's first piece. */
val row_piece_address(ptx *p, const row_piece *at, val first, unsigned value_bytes);
int64_t row_piece_offset(const row_pieces *r, const row_piece *at, unsigned value_bytes);

/* Generates code that calls pass for each of the thread's pieces. */
typedef void row_pass(ptx *p, void *context, row_piece at);
void row_pieces_each(ptx *p, const row_pieces *r, row_pass *pass, void *context);
