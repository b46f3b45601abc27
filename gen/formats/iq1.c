/* IQ1_S and IQ1_M: runs of 8 weights in super-blocks of 256. Fields are drawn in
 * src/ref/decode_iq.c.
 *
 *   IQ1_S   0 f16 d   2 32 x u8 indices   34 8 x u16 upper bits, scale, delta            50 bytes
 *   IQ1_M   0 32 x u8 indices   32 16 x u8 upper bits, delta   48 4 x u16 scales, d      56 bytes
 *
 * Streaming, four lanes share a super-block: a lane owns 64 weights, eight runs, 8 bytes of
 * indices.
 *
 *   IQ1_S   two halfwords with upper bits of indices, scale and sign of delta
 *   IQ1_M   a word with upper bits and signs of delta; the super-block's 8 bytes of scales and d
 *
 * A weight with its delta of 1/8 is one integer in eighths: -8, 0 or 8, plus or minus 1. */
#include "gen/formats/grid.h"

enum { RUNS = 8, ENTRIES = 2048 };
enum { HIGH_BITS = 3, SCALE_BITS = 3, EIGHTHS = 3 };

/* Returns the levels for positive or negative delta, by a bit of word. */
static val levels_of(ptx *p, const stream_lane *lane, val word, unsigned bit)
{
    return select(p, ne(p, bit_and(p, word, 1u << bit), 0), grid_levels(&grid_iq1, 8, -1),
                  lane->constants[GRID_LANE_LEVELS]);
}

/* Looks up run r of the lane. */
static void look_up_run(ptx *p, const stream_lane *lane, val index, val levels, unsigned r,
                        stream_weights *w)
{
    grid_select(p, grid_look_up(p, lane, index, 0), levels, levels, w->q[r / 2] + 2 * (r % 2));
}

enum { S_HIGH_AT = EIGHT_POINTERS };
enum { S_D, S_HIGH, S_INDICES = S_HIGH + 2 };

static void row_s(ptx *p, stream_row *row)
{
    grid_eight_new(p, row, IQ1_S_INDICES);
    row->at[S_HIGH_AT] = mad_wide(p, row->lane->part, 4, row->block);
}

static stream_weights decode_s(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { SCALE = 12, DELTA = 15 };
    stream_weights w = { .d = convert(p, F32, words[S_D]) };
    val indices[2], levels = { 0 };
    grid_eight_join(p, row, words + S_INDICES, indices);
    for (unsigned r = 0; r < RUNS; r++) {
        unsigned group = r / 4, l = r % 4;
        val high = words[S_HIGH + group];
        if (l == 0) {
            levels = levels_of(p, row->lane, high, DELTA);
            w.scale[2 * group] = grid_scale(p, high, SCALE, SCALE_BITS, EIGHTHS);
        }
        val index = grid_index(p, indices[group], l, high, HIGH_BITS * l, HIGH_BITS);
        look_up_run(p, row->lane, index, levels, r, &w);
    }
    return w;
}

enum { M_INDICES_AT, M_HIGH_AT }; /* pointers */
enum { M_UPPER_HALF, M_SHIFT };   /* constants that locate a lane's scales */
enum { M_INDICES, M_SCALES = M_INDICES + 2, M_HIGH = M_SCALES + 2 };

static void lane_m(ptx *p, stream_lane *lane)
{
    lane->constants[M_UPPER_HALF] = ne(p, bit_and(p, lane->part, 2), 0);
    lane->constants[M_SHIFT] = mul(p, bit_and(p, lane->part, 1), 16);
    grid_lane_new(p, lane);
}

static void row_m(ptx *p, stream_row *row)
{
    row->at[M_INDICES_AT] = mad_wide(p, row->lane->part, 8, row->block);
    row->at[M_HIGH_AT] = mad_wide(p, row->lane->part, 4, row->block);
}

static stream_weights decode_m(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { NIBBLE = 4, UPPER_BYTES = 0x7531, LOWEST_OF_HALVES = 0x4420 };
    const val *c = row->lane->constants, *scales = words + M_SCALES;
    /* d is the top nibbles of four halfwords, the lowest nibble first. */
    val uppermost = prmt(p, scales[0], scales[1], UPPER_BYTES);
    val nibbles = shr(p, bit_and(p, uppermost, 0xf0f0f0f0), 4);
    val bytes = bit_or(p, nibbles, shr(p, nibbles, 4));
    val2 d = halves(p, prmt(p, bytes, imm(U32, 0), LOWEST_OF_HALVES));
    stream_weights w = { .d = convert(p, F32, d.v[0]) };
    val own = shr(p, select(p, c[M_UPPER_HALF], scales[1], scales[0]), c[M_SHIFT]);
    for (unsigned i = 0; i < STREAM_SEGMENTS; i++)
        w.scale[i] = grid_scale(p, own, SCALE_BITS * i, SCALE_BITS, EIGHTHS);
    for (unsigned r = 0; r < RUNS; r++) {
        val high = words[M_HIGH];
        val levels = levels_of(p, row->lane, high, NIBBLE * r + HIGH_BITS);
        val index = grid_index(p, words[M_INDICES + r / 4], r % 4, high, NIBBLE * r, HIGH_BITS);
        look_up_run(p, row->lane, index, levels, r, &w);
    }
    return w;
}

/* Unpacks a run of iq1 from the low eight bits of its index, and a nibble: upper bits, delta's
 * sign. */
static void unpack_ternary(ptx *p, val low, val upper, val scale, val w[UNPACKED])
{
    val index = bit_or(p, low, shl(p, bit_and(p, upper, 7), 8));
    val delta = select(p, ne(p, bit_and(p, upper, 8), 0), imm(F32, 0xbe000000),
                       imm(F32, 0x3e000000)); /* -1/8 and 1/8 */
    grid_load_run(p, &grid_iq1, index, w);
    for (unsigned i = 0; i < UNPACKED; i++)
        w[i] = mul(p, scale, add(p, convert(p, F32, w[i]), delta));
}

static void unpack_iq1_s(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED])
{
    grid_number l = grid_bits(p, first, 3, 2);
    block_bytes at = grid_at(p, block, grid_times(p, grid_bits_above(p, first, 5), 2));
    val word = grid_load(p, U16, at, IQ1_S_INDICES_HIGH);
    val high = bit_and(p, shr(p, word, grid_value(p, grid_times(p, l, 3))), 7);
    val delta = shl(p, shr(p, word, 15), 3);
    val d = load_half_as_f32(p, block.base, IQ1_S_D);
    val low = grid_byte_of(p, block, IQ1_S_INDICES, first, 3);
    unpack_ternary(p, low, bit_or(p, high, delta), grid_odd_scale(p, d, bfe(p, word, 12, 3), 1), w);
}

/* Loads d: its nibble k is the top nibble of halfword k. */
static val load_iq1_m_d(ptx *p, val block, unsigned scales)
{
    val bits = imm(U32, 0);
    for (unsigned k = 0; k < 4; k++) {
        val nibble = shr(p, load_packed(p, U16, block, scales + 2 * k), 12);
        bits = bit_or(p, bits, shl(p, nibble, 4 * k));
    }
    return convert(p, F32, halves(p, bits).v[0]);
}

static void unpack_iq1_m(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED])
{
    val d = load_iq1_m_d(p, block.base, IQ1_M_SCALES);
    block_bytes at = grid_at(p, block, grid_times(p, grid_bits_above(p, first, 6), 2));
    val word = grid_load(p, U16, at, IQ1_M_SCALES);
    val s = bit_and(p, shr(p, word, grid_value(p, grid_times(p, grid_bits(p, first, 4, 2), 3))), 7);
    val upper = grid_nibble_of(p, block, IQ1_M_INDICES_HIGH, first, 3);
    val low = grid_byte_of(p, block, IQ1_M_INDICES, first, 3);
    unpack_ternary(p, low, upper, grid_odd_scale(p, d, s, 1), w);
}

const weight_format weight_format_IQ1_S = {
    .unpack_known = unpack_iq1_s,
    .stream = { GRID_FORMAT, .twos = true, GRID_TABLES(grid_iq1, ENTRIES, 0, 8, 1),
                .lane_new = grid_lane_new, .row_new = row_s,
                .loads = { LOAD(F16, FROM_BLOCK, IQ1_S_D), LOAD(U16, S_HIGH_AT, IQ1_S_INDICES_HIGH),
                           LOAD(U16, S_HIGH_AT, IQ1_S_INDICES_HIGH + 2), LOAD_EIGHT(0) },
                .decode = decode_s },
    .beyond_f16 = true,
    .largest = { load_half_as_f32, IQ1_S_D, 15 * 1.125f },
};

const weight_format weight_format_IQ1_M = {
    .unpack_known = unpack_iq1_m,
    .stream = { GRID_FORMAT, GRID_TABLES(grid_iq1, ENTRIES, 0, 8, 1), .lane_new = lane_m,
                .row_new = row_m,
                .loads = { LOAD_WORDS(2, M_INDICES_AT, IQ1_M_INDICES),
                           LOAD_WORDS(2, FROM_BLOCK, IQ1_M_SCALES),
                           LOAD(U32, M_HIGH_AT, IQ1_M_INDICES_HIGH) },
                .decode = decode_m },
    .beyond_f16 = true,
    .largest = { load_iq1_m_d, IQ1_M_SCALES, 15 * 1.125f },
};
