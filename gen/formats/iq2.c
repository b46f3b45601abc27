/* IQ2_XXS, IQ2_XS and IQ2_S: runs of 8 weights in super-blocks of 256. Fields are drawn in
 * src/ref/decode_iq.c.
 *
 *   IQ2_XXS   0 f16 d   2 8 x (4 x u8 indices, u32 sign codes and scale)                 66 bytes
 *   IQ2_XS    0 f16 d   2 32 x u16 index and sign code   66 8 x u8 scales                74 bytes
 *   IQ2_S     0 f16 d   2 32 x u8 indices   34 32 x u8 signs   66 8 x u8 upper bits
 *             74 8 x u8 scales                                                           82 bytes
 *
 * Streaming, four lanes share a super-block: a lane owns 64 weights, eight runs.
 *
 *   IQ2_XXS   16 consecutive bytes: two groups of 32 weights, each with four indices and a word
 *   IQ2_XS    16 consecutive bytes: a halfword per run; two bytes of scales
 *   IQ2_S     8 bytes of indices, 8 of signs, two of upper bits, two of scales
 */
#include "gen/formats/grid.h"

enum { RUNS = 8, SCALE_BITS = 4, EIGHTHS = 3 };

/* Selects run r of the lane. All three grids have the same levels. */
static void select_run(ptx *p, const stream_lane *lane, val values, val signs, unsigned r,
                       stream_weights *w)
{
    grid_select(p, bit_or(p, values, signs), lane->constants[GRID_LANE_LEVELS],
                grid_levels(&grid_iq2_xxs, -1, 0), w->q[r / 2] + 2 * (r % 2));
}

/* Sets the scales from the four nibbles of the lane's two bytes. */
static void set_scales(ptx *p, val scales, stream_weights *w)
{
    for (unsigned i = 0; i < STREAM_SEGMENTS; i++)
        w->scale[i] = grid_scale(p, scales, SCALE_BITS * i, SCALE_BITS, EIGHTHS);
}

enum { XXS_ENTRIES = 256 };
enum { XXS_D, XXS_LINES };

static stream_weights decode_xxs(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { CODE_BITS = 7, SCALE = 28 };
    stream_weights w = { .d = convert(p, F32, words[XXS_D]) };
    val groups[STREAM_WORDS];
    stream_join(p, &row->shift, words + XXS_LINES, groups);
    for (unsigned r = 0; r < RUNS; r++) {
        unsigned group = r / 4, l = r % 4;
        val indices = groups[2 * group], codes = groups[2 * group + 1];
        val values = grid_look_up(p, row->lane, grid_field(p, indices, 8 * l, 8), 0);
        val code = grid_field(p, codes, CODE_BITS * l, CODE_BITS);
        val signs = grid_look_up(p, row->lane, code, XXS_ENTRIES * GRID_WORD);
        select_run(p, row->lane, values, signs, r, &w);
        if (l == 0)
            w.scale[2 * group] = grid_scale(p, codes, SCALE, SCALE_BITS, EIGHTHS);
    }
    return w;
}

enum { XS_ENTRIES = 512 };
enum { XS_SCALES_AT, XS_OTHER }; /* pointers */
enum { XS_D, XS_SCALES, XS_LINES };

static void row_xs(ptx *p, stream_row *row)
{
    row->at[XS_SCALES_AT] = mad_wide(p, row->lane->part, 2, row->block);
    row->at[XS_OTHER] = stream_other_line(p, row->lines);
}

static stream_weights decode_xs(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { INDEX_BITS = 9, CODE_BITS = 7 };
    stream_weights w = { .d = convert(p, F32, words[XS_D]) };
    val runs[STREAM_WORDS];
    stream_join(p, &row->shift, words + XS_LINES, runs);
    for (unsigned r = 0; r < RUNS; r++) {
        val word = runs[r / 2];
        unsigned first = 16 * (r % 2);
        val values = grid_look_up(p, row->lane, grid_field(p, word, first, INDEX_BITS), 0);
        val code = grid_field(p, word, first + INDEX_BITS, CODE_BITS);
        val signs = grid_look_up(p, row->lane, code, XS_ENTRIES * GRID_WORD);
        select_run(p, row->lane, values, signs, r, &w);
    }
    set_scales(p, words[XS_SCALES], &w);
    return w;
}

enum { S_ENTRIES = 1024 };
enum { S_PAIRS_AT = EIGHT_POINTERS }; /* pointers to the bytes of upper bits and of scales */
enum { S_D, S_HIGH, S_SCALES, S_INDICES, S_SIGNS = S_INDICES + EIGHT_LOADED };

static void row_s(ptx *p, stream_row *row)
{
    grid_eight_new(p, row, IQ2_S_INDICES);
    row->at[S_PAIRS_AT] = mad_wide(p, row->lane->part, 2, row->block);
}

static stream_weights decode_s(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { HIGH_BITS = 2 };
    stream_weights w = { .d = convert(p, F32, words[S_D]) };
    val indices[2], sign_bytes[2];
    grid_eight_join(p, row, words + S_INDICES, indices);
    grid_eight_join(p, row, words + S_SIGNS, sign_bytes);
    for (unsigned r = 0; r < RUNS; r++) {
        unsigned half = r / 4, byte = r % 4;
        val index = grid_index(p, indices[half], byte, words[S_HIGH], HIGH_BITS * r, HIGH_BITS);
        val values = grid_look_up(p, row->lane, index, 0);
        val code = grid_field(p, sign_bytes[half], 8 * byte, 8);
        val signs = grid_look_up(p, row->lane, code, S_ENTRIES * GRID_WORD);
        select_run(p, row->lane, values, signs, r, &w);
    }
    set_scales(p, words[S_SCALES], &w);
    return w;
}

/* Unpacks run l of the four in a group of 32 weights. */
static void unpack_iq2_xxs(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED])
{
    grid_number l = grid_bits(p, first, 3, 2);
    block_bytes group = grid_at(p, block, grid_times(p, grid_bits_above(p, first, 5), 8));
    val word = grid_load(p, U32, group, IQ2_XXS_GROUPS + 4);
    val code = bit_and(p, shr(p, word, grid_value(p, grid_times(p, l, 7))), 127);
    val index = grid_load(p, U8, grid_at(p, group, l), IQ2_XXS_GROUPS);
    val d = load_half_as_f32(p, block.base, IQ2_XXS_D);
    grid_unpack_run(p, &grid_iq2_xxs, index, grid_signs_of_code(p, code), 0,
                    grid_odd_scale(p, d, shr(p, word, 28), 0.125f), w);
}

static void unpack_iq2_xs(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED])
{
    grid_number r = grid_bits_above(p, first, 3);
    val word = grid_load(p, U16, grid_at(p, block, grid_times(p, r, 2)), IQ2_XS_INDICES);
    val s = grid_nibble_of(p, block, IQ2_XS_SCALES, first, 4);
    val scale = grid_odd_scale(p, load_half_as_f32(p, block.base, IQ2_XS_D), s, 0.125f);
    grid_unpack_run(p, &grid_iq2_xs, bit_and(p, word, 511), grid_signs_of_code(p, shr(p, word, 9)),
                    0, scale, w);
}

static void unpack_iq2_s(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED])
{
    block_bytes at = grid_at(p, block, grid_bits_above(p, first, 3));
    val highs = grid_byte_of(p, block, IQ2_S_INDICES_HIGH, first, 5);
    val shift = grid_value(p, grid_times(p, grid_bits(p, first, 3, 2), 2));
    val high = bit_and(p, shr(p, highs, shift), 3);
    val index = bit_or(p, grid_load(p, U8, at, IQ2_S_INDICES), shl(p, high, 8));
    val s = grid_nibble_of(p, block, IQ2_S_SCALES, first, 4);
    val scale = grid_odd_scale(p, load_half_as_f32(p, block.base, IQ2_S_D), s, 0.125f);
    grid_unpack_run(p, &grid_iq2_s, index, grid_load(p, U8, at, IQ2_S_SIGNS), 0, scale, w);
}

const weight_format weight_format_IQ2_XXS = {
    .unpack_known = unpack_iq2_xxs,
    .stream = { GRID_FORMAT, .twos = true, .at_end = true, .quants = IQ2_XXS_GROUPS,
                .piece = stream_piece_of_sixteen,
                GRID_TABLES(grid_iq2_xxs, XXS_ENTRIES, SIGN_CODES, 1, 0), .lane_new = grid_lane_new,
                .loads = { LOAD(F16, FROM_BLOCK, IQ2_XXS_D), LOAD_PIECE }, .decode = decode_xxs },
    .beyond_f16 = true,
    .largest = { load_half_as_f32, IQ2_XXS_D, 31 * 43 / 8.0f },
};

const weight_format weight_format_IQ2_XS = {
    .unpack_known = unpack_iq2_xs,
    .stream = { GRID_FORMAT, .quants = IQ2_XS_INDICES, .piece = stream_piece_of_sixteen,
                GRID_TABLES(grid_iq2_xs, XS_ENTRIES, SIGN_CODES, 1, 0), .lane_new = grid_lane_new,
                .row_new = row_xs, .swaps = true,
                .loads = { LOAD(F16, FROM_BLOCK, IQ2_XS_D), LOAD(U16, XS_SCALES_AT, IQ2_XS_SCALES),
                           LOAD_SWAPPED(XS_OTHER) },
                .decode = decode_xs },
    .beyond_f16 = true,
    .largest = { load_half_as_f32, IQ2_XS_D, 31 * 43 / 8.0f },
};

const weight_format weight_format_IQ2_S = {
    .unpack_known = unpack_iq2_s,
    .stream = { GRID_FORMAT, GRID_TABLES(grid_iq2_s, S_ENTRIES, SIGN_BYTES, 1, 0),
                .lane_new = grid_lane_new, .row_new = row_s,
                .loads = { LOAD(F16, FROM_BLOCK, IQ2_S_D),
                           LOAD(U16, S_PAIRS_AT, IQ2_S_INDICES_HIGH),
                           LOAD(U16, S_PAIRS_AT, IQ2_S_SCALES), LOAD_EIGHT(0),
                           LOAD_EIGHT(IQ2_S_SIGNS - IQ2_S_INDICES) },
                .decode = decode_s },
    .beyond_f16 = true,
    .largest = { load_half_as_f32, IQ2_S_D, 31 * 43 / 8.0f },
};
