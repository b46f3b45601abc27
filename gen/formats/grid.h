/* Weights that are looked up in grids (kernel/grid.h).
 *
 * For streaming (gen/products/stream_plan.h) a block keeps two tables of words in shared memory:
 * the grid's words, then the sign words. One prmt makes four weights, and the signs are part of its
 * selector:
 *
 *   runs of 8    A grid word has one nibble per weight, the first lowest: its code, 0 to 2. A sign
 *                word has 4 in the nibbles of negative weights. Both or'ed select bytes of two
 *                words: the levels and the negated levels.
 *   runs of 4    A grid word has the four values. A sign word has one nibble per weight of two
 *                runs: the byte's position, plus 4 if the weight is negative. It selects bytes of
 *                the values and of the negated values.
 *
 * Lanes look up random words, so lookups have bank conflicts. On average 32 lanes need 2.8 passes
 * over a table of 128 words, 3.1 over 256, 3.3 over 512, 3.4 over 1024 and 3.5 over 2048. */
#pragma once

#include "gen/formats/tools.h"

enum {
    GRID_WORD = 4,
    SIGN_CODES = 128, /* words of seven signs; the eighth follows from them */
    SIGN_BYTES = 256  /* words of eight signs */
};

/* Initializers of a format's tables: grid, sign words, and the word of levels. ptxas would
 * rematerialize the levels as a constant at each use; loaded, they stay in a register. */
enum { GRID_LEVELS = 16 };
#define GRID_TABLES(of, entries, of_signs, ...)                                       \
    .table_bytes = ((entries) + (of_signs)) * GRID_WORD + GRID_LEVELS, .grid = &(of), \
    .signs = (of_signs), .levels = { __VA_ARGS__ }
/* Fills a format's tables at shared address `at`, by all threads of the block. */
void grid_stage(ptx *p, const stream_format *f, val at);

/* Index of the lane constant that holds the word of levels. */
enum { GRID_LANE_LEVELS = 2 };
/* Loads the word of levels; lane_new of formats without other constants. */
void grid_lane_new(ptx *p, stream_lane *lane);

/* Fields that all grid formats share. */
#define GRID_FORMAT .scales = SCALES, .order = IN_ORDER, .segments = 4

/* Returns the levels of a grid with runs of 8 as bytes, times a factor, plus an offset. */
val grid_levels(const weight_grid *g, int factor, int offset);

/* Returns bits first .. first + bits - 1 of a word. */
val grid_field(ptx *p, val word, unsigned first, unsigned bits);

/* Returns byte `byte` of low, with a field of high above it from bit 8 on. */
val grid_index(ptx *p, val low, unsigned byte, val high, unsigned first, unsigned bits);

/* Loads word index of the table that starts `table` bytes into the lane's tables. */
val grid_look_up(ptx *p, const stream_lane *lane, val index, unsigned table);

/* Selects eight weights: bit 2 of each selector nibble chooses between levels and others. */
void grid_select(ptx *p, val selector, val levels, val others, val q[2]);

/* Applies a sign word to two runs of 4 weights. */
void grid_negate(ptx *p, val first, val second, val signs, val q[2]);

/* Returns (2 s + 1) / 2^shift as f32, for a field s of three or four bits. */
val grid_scale(ptx *p, val word, unsigned first, unsigned bits, unsigned shift);

/* Eight bytes at an even address, read as the aligned eight around the first byte and around the
 * last, which may be the same. They use the row's first two pointers and constants, also for bytes
 * a multiple of eight away. */
enum { EIGHT_LOADED = 4, EIGHT_POINTERS = 2 };
void grid_eight_new(ptx *p, stream_row *row, unsigned offset);
#define LOAD_EIGHT(at) LOAD_WORDS(2, 0, at), LOAD_WORDS(2, 1, at)
void grid_eight_join(ptx *p, const stream_row *row, const val words[EIGHT_LOADED], val eight[2]);

/* A number for unpacking: part (a register, or VAL_NONE) + known (a constant). */
typedef struct grid_number {
    val part;
    unsigned known;
} grid_number;

/* Returns `count` bits of the first weight's index, from `bit` on. If a thread owns one half of
 * every 32 weights, bit 4 is that half and all other bits are constants. */
grid_number grid_bits(ptx *p, unpack_first first, unsigned bit, unsigned count);
/* Returns all bits of the first weight's index from `bit` on. */
grid_number grid_bits_above(ptx *p, unpack_first first, unsigned bit);
grid_number grid_times(ptx *p, grid_number n, unsigned factor);
val grid_value(ptx *p, grid_number n);
block_bytes grid_at(ptx *p, block_bytes from, grid_number n);

/* Loads a U8, U16 or U32 of a block; a U32 needs an alignment of 2 only. */
val grid_load(ptx *p, type t, block_bytes at, unsigned offset);
/* Loads the first weight's byte of a field with one byte per 2^bit weights. */
val grid_byte_of(ptx *p, block_bytes block, unsigned offset, unpack_first first, unsigned bit);
/* Loads the first weight's nibble of a field with one nibble per 2^bit weights. */
val grid_nibble_of(ptx *p, block_bytes block, unsigned offset, unpack_first first, unsigned bit);

/* Returns eight signs from a code of seven: the eighth makes the number of minus signs even. */
val grid_signs_of_code(ptx *p, val code);

/* Returns d (2 s + 1) unit. */
val grid_odd_scale(ptx *p, val d, val s, float unit);

/* Looks up the s32 values of a grid entry. The grid is an array of the module. */
void grid_load_run(ptx *p, const weight_grid *g, val index, val *values);
/* Looks up the weights of a grid entry: scale times value, negated by bits first_sign on of
 * signs. */
void grid_unpack_run(ptx *p, const weight_grid *g, val index, val signs, unsigned first_sign,
                     val scale, val *w);
