/* IQ3_XXS and IQ3_S: runs of 4 weights in super-blocks of 256. Fields are drawn in
 * src/ref/decode_iq.c.
 *
 *   IQ3_XXS   0 f16 d   2 64 x u8 indices   66 8 x u32 sign codes and scale              98 bytes
 *   IQ3_S     0 f16 d   2 64 x u8 indices   66 8 x u8 upper bits   74 32 x u8 signs
 *             106 4 x u8 scales                                                         110 bytes
 *
 * Streaming, four lanes share a super-block: a lane owns 64 weights, 16 consecutive bytes of
 * indices.
 *
 *   IQ3_XXS   two words of sign codes and scales
 *   IQ3_S     8 bytes of signs, two of upper bits, one with two scales
 */
#include "gen/formats/grid.h"

enum { PAIRS = 8 /* pairs of runs */, SCALE_BITS = 4 };

/* Looks up pair i of the lane's runs and the sign word of `code`. */
static void look_up_pair(ptx *p, const stream_lane *lane, const val runs[2], val code,
                         unsigned entries, unsigned i, stream_weights *w)
{
    val signs = grid_look_up(p, lane, code, entries * GRID_WORD);
    grid_negate(p, grid_look_up(p, lane, runs[0], 0), grid_look_up(p, lane, runs[1], 0), signs,
                w->q[i / 2] + 2 * (i % 2));
}

enum { XXS_ENTRIES = 256 };
enum { XXS_D, XXS_SIGNS, XXS_LINES = XXS_SIGNS + EIGHT_LOADED };

static void row_xxs(ptx *p, stream_row *row)
{
    grid_eight_new(p, row, IQ3_XXS_SIGNS);
}

static stream_weights decode_xxs(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { CODE_BITS = 7, SCALE = 28, QUARTERS = 2 };
    stream_weights w = { .d = convert(p, F32, words[XXS_D]) };
    val indices[STREAM_WORDS], codes[2];
    stream_join(p, &row->shift, words + XXS_LINES, indices);
    grid_eight_join(p, row, words + XXS_SIGNS, codes);
    for (unsigned i = 0; i < PAIRS; i++) {
        val of_group = codes[i / 4], runs[2];
        for (unsigned j = 0; j < 2; j++)
            runs[j] = grid_field(p, indices[i / 2], 16 * (i % 2) + 8 * j, 8);
        look_up_pair(p, row->lane, runs, grid_field(p, of_group, CODE_BITS * (i % 4), CODE_BITS),
                     XXS_ENTRIES, i, &w);
        if (i % 4 == 0)
            w.scale[i / 2] = grid_scale(p, of_group, SCALE, SCALE_BITS, QUARTERS);
    }
    return w;
}

enum { S_ENTRIES = 512 };
enum { S_HIGH_AT = EIGHT_POINTERS, S_SCALES_AT, S_OTHER }; /* pointers */
enum { S_D, S_HIGH, S_SCALES, S_SIGNS, S_LINES = S_SIGNS + EIGHT_LOADED };

static void row_s(ptx *p, stream_row *row)
{
    grid_eight_new(p, row, IQ3_S_SIGNS);
    row->at[S_HIGH_AT] = mad_wide(p, row->lane->part, 2, row->block);
    row->at[S_SCALES_AT] = add(p, row->block, convert(p, U64, row->lane->part));
    row->at[S_OTHER] = stream_other_line(p, row->lines);
}

static stream_weights decode_s(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { HIGH_BITS = 1, WHOLE = 0 };
    stream_weights w = { .d = convert(p, F32, words[S_D]) };
    val indices[STREAM_WORDS], signs[2];
    stream_join(p, &row->shift, words + S_LINES, indices);
    grid_eight_join(p, row, words + S_SIGNS, signs);
    for (unsigned i = 0; i < PAIRS; i++) {
        val runs[2];
        for (unsigned j = 0; j < 2; j++)
            runs[j] =
                grid_index(p, indices[i / 2], 2 * (i % 2) + j, words[S_HIGH], 2 * i + j, HIGH_BITS);
        look_up_pair(p, row->lane, runs, grid_field(p, signs[i / 4], 8 * (i % 4), 8), S_ENTRIES, i,
                     &w);
    }
    for (unsigned i = 0; i < 2; i++)
        w.scale[2 * i] = grid_scale(p, words[S_SCALES], SCALE_BITS * i, SCALE_BITS, WHOLE);
    return w;
}

/* Unpacks eight weights: two runs. */
static void unpack_iq3_xxs(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED])
{
    grid_number j = grid_bits_above(p, first, 5), l = grid_bits(p, first, 3, 2);
    val word = grid_load(p, U32, grid_at(p, block, grid_times(p, j, 4)), IQ3_XXS_SIGNS);
    val signs =
        grid_signs_of_code(p, bit_and(p, shr(p, word, grid_value(p, grid_times(p, l, 7))), 127));
    block_bytes at = grid_at(p, block, grid_bits_above(p, first, 2));
    val d = load_half_as_f32(p, block.base, IQ3_XXS_D);
    val scale = grid_odd_scale(p, d, shr(p, word, 28), 0.25f);
    for (unsigned i = 0; i < 2; i++)
        grid_unpack_run(p, &grid_iq3_xxs, grid_load(p, U8, at, IQ3_XXS_INDICES + i), signs, 4 * i,
                        scale, w + 4 * i);
}

static void unpack_iq3_s(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED])
{
    block_bytes at = grid_at(p, block, grid_bits_above(p, first, 2));
    val highs = grid_byte_of(p, block, IQ3_S_INDICES_HIGH, first, 5);
    val signs = grid_byte_of(p, block, IQ3_S_SIGNS, first, 3);
    val s = grid_nibble_of(p, block, IQ3_S_SCALES, first, 5);
    val scale = grid_odd_scale(p, load_half_as_f32(p, block.base, IQ3_S_D), s, 1);
    highs = shr(p, highs, grid_value(p, grid_bits(p, first, 2, 3)));
    for (unsigned i = 0; i < 2; i++) {
        val high = shl(p, bfe(p, highs, i, 1), 8);
        grid_unpack_run(p, &grid_iq3_s, bit_or(p, grid_load(p, U8, at, IQ3_S_INDICES + i), high),
                        signs, 4 * i, scale, w + 4 * i);
    }
}

const weight_format weight_format_IQ3_XXS = {
    .unpack_known = unpack_iq3_xxs,
    .stream = { GRID_FORMAT, .twos = true, .quants = IQ3_XXS_INDICES,
                .piece = stream_piece_of_sixteen,
                GRID_TABLES(grid_iq3_xxs, XXS_ENTRIES, SIGN_CODES, 0, 0), .row_new = row_xxs,
                .loads = { LOAD(F16, FROM_BLOCK, IQ3_XXS_D), LOAD_EIGHT(0), LOAD_PIECE },
                .decode = decode_xxs },
    .beyond_f16 = true,
    .largest = { load_half_as_f32, IQ3_XXS_D, 31 * 62 / 4.0f },
};

const weight_format weight_format_IQ3_S = {
    .unpack_known = unpack_iq3_s,
    .stream = { GRID_FORMAT, .twos = true, .quants = IQ3_S_INDICES,
                .piece = stream_piece_of_sixteen,
                GRID_TABLES(grid_iq3_s, S_ENTRIES, SIGN_BYTES, 0, 0), .row_new = row_s,
                .loads = { LOAD(F16, FROM_BLOCK, IQ3_S_D), LOAD(U16, S_HIGH_AT, IQ3_S_INDICES_HIGH),
                           LOAD(U8, S_SCALES_AT, IQ3_S_SCALES), LOAD_EIGHT(0),
                           LOAD_SWAPPED(S_OTHER) },
                .swaps = true, .decode = decode_s },
};
