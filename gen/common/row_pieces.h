/* A row that a block goes through, pass by pass: a thread has pieces of four columns, a block's
 * width apart. Few of them are numbered, so that what is known of them may stay in registers from
 * pass to pass; of more a loop goes through them, and what is needed is read again.
 */
#ifndef PTXGEN_GEN_COMMON_ROW_PIECES_H
#define PTXGEN_GEN_COMMON_ROW_PIECES_H

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { PIECE_COLUMNS = 4, MOST_KEPT_PIECES = 4 };

/* What families of such rows have in common: the columns, and warps of a block, a term of formulas.
 */
#define KEY_PIECE_COLUMNS                                                                          \
    KEY_NUMBER("k", "columns of x", shape.k, PIECE_COLUMNS, 1 << 24, .multiple_of = PIECE_COLUMNS, \
               .required = true, .tag = "k")
extern const term row_pieces_terms[];

/* A piece: its number; or, of many, how many bytes of f32 it is behind the thread's first. */
typedef struct row_piece {
    unsigned number;
    val behind;
} row_piece;

typedef struct row_pieces {
    unsigned columns, warps; /* of the row, and of the block */
    unsigned count;          /* of a thread */
    val first;               /* the thread's first column */
    var kept[MOST_KEPT_PIECES][PIECE_COLUMNS];
} row_pieces;
row_pieces row_pieces_new(ptx *p, const instance *in);

/* Whether they are numbered. */
bool row_pieces_are_few(const row_pieces *r);

/* If a row has few pieces, their values stay in registers between passes: row_piece_keep stores
 * them, row_piece_kept returns them. If it has many, nothing is kept. */
void row_pieces_make_room(ptx *p, row_pieces *r);
void row_piece_keep(ptx *p, const row_pieces *r, const row_piece *at, val4 values);
val4 row_piece_kept(ptx *p, const row_pieces *r, const row_piece *at);

/* Loads or stores a piece of an f32 array that launches write, whose place for the thread's first
 * piece is known. again: what was kept of it, if anything. weights: of an array that none writes.
 */
val4 row_piece_load(ptx *p, const row_pieces *r, const row_piece *at, val first);
val4 row_piece_again(ptx *p, const row_pieces *r, const row_piece *at, val first);
val4 row_piece_weights(ptx *p, const row_pieces *r, const row_piece *at, val first);
void row_piece_store(ptx *p, const row_pieces *r, const row_piece *at, val first, val4 values);

/* Returns the sum over the block of what threads have, to all of them. Sums of one kernel have
 * numbers: shared memory has a word for each warp and sum from the address sums on. */
val row_pieces_sum(ptx *p, const row_pieces *r, val sums, unsigned number, val own);

/* Where a piece of values of four or two bytes stands: an address, and an offset from it, of an
 * array whose place for the thread's first piece is known. */
val row_piece_address(ptx *p, const row_piece *at, val first, unsigned value_bytes);
int64_t row_piece_offset(const row_pieces *r, const row_piece *at, unsigned value_bytes);

/* Calls a function for each of the thread's pieces. */
typedef void row_pass(ptx *p, void *context, row_piece at);
void row_pieces_each(ptx *p, const row_pieces *r, row_pass *pass, void *context);

#endif
