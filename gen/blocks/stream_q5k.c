/* Streaming Q5_K weights: see blocks/stream.h.
 *
 * Four lanes cover a super-block of 176 bytes. Lane 2u + h has 64 weights, those of sub-blocks 4u
 * to 4u + 3 in half h: 16 of the 32 bytes of nibbles of chunks 2u and 2u + 1, low and high, and 16
 * of the 32 bytes of fifth bits, of which byte i has bit j for weight i of sub-block j. With its
 * neighbours it loads the 16 bytes ahead of them: four aligned 16-byte loads.
 *
 * Shifted by 4 where u = 0, the fifth bits of sub-block 4u + i are at bit 4 + i, and there they
 * stay: the nibbles come to meet them, so that q is 2^i times as large.
 */
#include "gen/blocks/bytes.h"
#include "gen/blocks/q4k.h"
#include "gen/blocks/stream.h"

enum { SUB_BLOCKS = 4, TWO_CHUNKS = 64 };
enum { HEADER, FIFTHS = 4, QUANTS = 8, NEXT_QUANTS = 12 }; /* loaded words */
enum { SHIFT, MASK_SIX, MASK_LAST, FIFTHS_SHIFT };         /* constants */
enum { AT_FIFTHS };                                        /* pointers */

static val upper_of(ptx *p, val part)
{
    return shr(p, part, 1);
}

static val half_of(ptx *p, val part)
{
    return mul(p, bit_and(p, part, 1), STREAM_LANE_BYTES);
}

static val piece(ptx *p, val part)
{
    return mad(p, upper_of(p, part), TWO_CHUNKS, half_of(p, part));
}

/* The packing of the scales is Q4_K's, that of chunks 2u and 2u + 1 the same. */
static void lane_new(ptx *p, stream_lane *lane)
{
    val upper = upper_of(p, lane->part);
    q4k_chunk c = q4k_chunk_new(p, mul(p, upper, 2));
    lane->constants[SHIFT] = c.shift;
    lane->constants[MASK_SIX] = c.mask_six;
    lane->constants[MASK_LAST] = c.mask_last;
    lane->constants[FIFTHS_SHIFT] = sub(p, imm(U32, 4), mul(p, upper, 4));
}

static void row_new(ptx *p, const stream_lane *lane, stream_row *row)
{
    row->at[AT_FIFTHS] = add(p, row->block, convert(p, U64, half_of(p, lane->part)));
}

static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    stream_load_lines(p, row->block, offset, 1, words + HEADER);
    stream_load_lines(p, row->at[AT_FIFTHS], offset + Q5_K_FIFTH_BITS, 1, words + FIFTHS);
    stream_load_lines(p, row->lines, offset, 1, words + QUANTS);
    stream_load_lines(p, row->lines, offset + Q4K_CHUNK_BYTES, 1, words + NEXT_QUANTS);
}

/* Scales, or mins, of four sub-blocks from bytes j of the first two words and the nibbles of the
 * last one: see q4k.c. */
static void six_bits(ptx *p, const stream_lane *lane, val first, val last, val f[SUB_BLOCKS])
{
    val upper = bit_and(p, shr(p, first, lane->constants[SHIFT]), lane->constants[MASK_SIX]);
    val bytes = lop3(p, last, lane->constants[MASK_LAST], upper, AND_OR);
    for (unsigned i = 0; i < SUB_BLOCKS; i++)
        f[i] = signed_byte_as_f32(p, bytes, i);
}

static stream_weights decode(ptx *p, const stream_lane *lane, const stream_row *row,
                             const val words[STREAM_LOADED])
{
    (void)row;
    val2 d = halves(p, words[HEADER]);
    val scales = words[HEADER + 1], mins = words[HEADER + 2], last = words[HEADER + 3];
    stream_weights w = { .d = convert(p, F32, d.v[0]), .dmin = convert(p, F32, d.v[1]) };
    six_bits(p, lane, scales, last, w.scale);
    six_bits(p, lane, mins, shr(p, last, 4), w.min);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        val fifths = shl(p, words[FIFTHS + j], lane->constants[FIFTHS_SHIFT]);
        val nibbles = words[QUANTS + j], next = words[NEXT_QUANTS + j];
        val moved[SUB_BLOCKS] = { nibbles, shr(p, nibbles, 3), shl(p, next, 2), shr(p, next, 1) };
        for (unsigned i = 0; i < SUB_BLOCKS; i++)
            w.q[i][j] = lop3(p, moved[i], IN_EACH_BYTE(0x0f << i),
                             bit_and(p, fifths, IN_EACH_BYTE(0x10 << i)), AND_OR);
    }
    return w;
}

/* Segment 8u + 2i + h of a super-block is that of lane 2u + h. */
const stream_format stream_Q5_K = {
    .crowded = 1,
    .crowded_end = true,
    .scales = SCALES,
    .minima = true,
    .segments = SUB_BLOCKS,
    .factors = { 1, 2, 4, 8 },
    .index_bit = 1,
    .words = STREAM_WORDS,
    .quants = Q5_K_QUANTS,
    .piece = piece,
    .lane_new = lane_new,
    .row_new = row_new,
    .load = load,
    .decode = decode,
};
