/* Weights that are looked up in grids (kernel/grid.h).
 *
 * Streaming (gen/products/stream_plan.h), a block of threads keeps two tables of words in shared
 * memory, the grid's and behind it the signs'. Four weights are one permutation of bytes, and signs
 * are part of what it selects:
 *
 *   runs of 8    A grid word has a nibble a weight, the first one lowest: its code, 0 to 2. A sign
 *                word has 4 in the nibbles of negative weights. The two or-ed are selectors of
 *                bytes of two words, the levels and the negated levels.
 *   runs of 4    A grid word has the four values. A sign word has a nibble a weight of two runs:
 *                4i of the positions of bytes, and 4 more where the weight is negative. It selects
 *                bytes of the values and of the negated values.
 *
 * Lanes look up at random, so that several want different words of the same of 32 banks: for 32
 * lanes it takes 2.8 passes on average over a table of 128 words, 3.1 of 256, 3.3 of 512, 3.4 of
 * 1024 and 3.5 of 2048.
 */
#ifndef PTXGEN_GEN_FORMATS_GRID_H
#define PTXGEN_GEN_FORMATS_GRID_H

#include "gen/formats/tools.h"

enum {
    GRID_WORD = 4,
    SIGN_CODES = 128, /* words of seven signs, of which the eighth follows */
    SIGN_BYTES = 256  /* words of eight signs */
};

/* The tables of a format, and the filling of them by all threads of the block. Behind them stands
 * the word of levels, if there is one: what ptxas knows as a constant it makes anew wherever it is
 * used, and this one stays in a register. */
enum { GRID_LEVELS = 16 };
#define GRID_TABLES(of, entries, of_signs, ...)                                       \
    .table_bytes = ((entries) + (of_signs)) * GRID_WORD + GRID_LEVELS, .grid = &(of), \
    .signs = (of_signs), .levels = { __VA_ARGS__ }
void grid_stage(ptx *p, const stream_format *f, val at);

/* The lane's constant with that word, for a format that needs no others. */
enum { GRID_LANE_LEVELS = 2 };
void grid_lane_new(ptx *p, stream_lane *lane);

/* What the formats have in common. */
#define GRID_FORMAT .scales = SCALES, .order = IN_ORDER, .segments = 4

/* The levels of a grid with runs of 8, times a factor, plus an offset. */
val grid_levels(const weight_grid *g, int factor, int offset);

/* Bits first .. first + bits - 1 of a word. */
val grid_field(ptx *p, val word, unsigned first, unsigned bits);

/* A byte of a word, and above its bits those of a field of another one. */
val grid_index(ptx *p, val low, unsigned byte, val high, unsigned first, unsigned bits);

/* The word of that number, of a table that starts so many bytes behind the lane's tables. */
val grid_look_up(ptx *p, const stream_lane *lane, val index, unsigned table);

/* Eight weights: the selector's bit 2 says of which levels. */
void grid_select(ptx *p, val selector, val levels, val others, val q[2]);

/* Eight weights of two runs of 4 and their sign word. */
void grid_negate(ptx *p, val first, val second, val signs, val q[2]);

/* (2 s + 1) / 2^shift for a field s of three or four bits. */
val grid_scale(ptx *p, val word, unsigned first, unsigned bits, unsigned shift);

/* Eight bytes at an even address: read as the aligned eight that hold the first of them and those
 * that hold the last, which may be the same. They take a row's first two pointers and constants,
 * also for eight bytes that lie a multiple of eight from them. */
enum { EIGHT_LOADED = 4, EIGHT_POINTERS = 2 };
void grid_eight_new(ptx *p, stream_row *row, unsigned offset);
#define LOAD_EIGHT(at) LOAD_WORDS(2, 0, at), LOAD_WORDS(2, 1, at)
void grid_eight_join(ptx *p, const stream_row *row, const val words[EIGHT_LOADED], val eight[2]);

/* Unpacking: what follows from the number of the first weight, a part that a register has, if any,
 * and one that is known. */
typedef struct grid_number {
    val part;
    unsigned known;
} grid_number;

/* So many of the number's bits, from one on, and all from one on. Of a thread that has a half of
 * every 32 weights bit 4 is that half and all others are known, so that they cost neither
 * instructions nor registers. */
grid_number grid_bits(ptx *p, unpack_first first, unsigned bit, unsigned count);
grid_number grid_bits_above(ptx *p, unpack_first first, unsigned bit);
grid_number grid_times(ptx *p, grid_number n, unsigned factor);
val grid_value(ptx *p, grid_number n);
block_bytes grid_behind(ptx *p, block_bytes from, grid_number n);

/* What is loaded of a block: a U8, U16 or U32; of a field with a byte or a nibble for each 2^bit
 * weights the first weight's. */
val grid_load(ptx *p, type t, block_bytes at, unsigned offset);
val grid_byte_of(ptx *p, block_bytes block, unsigned offset, unpack_first first, unsigned bit);
val grid_nibble_of(ptx *p, block_bytes block, unsigned offset, unpack_first first, unsigned bit);

/* The eighth sign of a code of seven makes their number even. */
val grid_signs_of_code(ptx *p, val code);

/* d (2 s + 1) times a power of two. */
val grid_odd_scale(ptx *p, val d, val s, float unit);

/* The values of entry index of a grid, as s32; and as weights, with signs of bit first_sign on
 * (set: minus). The grid is an array of the module. */
void grid_load_run(ptx *p, const weight_grid *g, val index, val *values);
void grid_unpack_run(ptx *p, const weight_grid *g, val index, val signs, unsigned first_sign,
                     val scale, val *w);

#endif
