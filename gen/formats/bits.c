/* Q1_0 and Q2_0: neighbouring weights side by side in a byte (src/ref/decode_blocks.c).
 *
 *   Q1_0   0 f16 d   2 16 x u8, 8 weights per byte, low bit first      w = d (2 bit - 1)
 *   Q2_0   0 f16 d   2 16 x u8, 4 weights per byte, low bits first     w = d (q - 1)
 *
 * Streaming, a lane owns 64 neighbouring weights. A word of a piece, shifted right by a weight's
 * bits, has one weight in each byte: every fourth weight of a segment. The tile has the activations
 * of a segment in the same order (SPREAD). Pieces are rotated back, so that each word belongs to
 * one segment. */
#include "gen/formats/tools.h"

enum { LINES_AT, D_AT = STREAM_LINES }; /* loaded words */

/* Rotates the second lane's piece. Two lanes share a block of Q1_0, and each loads all of its bits.
 * The second lane's piece is rotated by 8 bytes more, so that its own bits come first. */
static void row_q1_0(ptx *p, stream_row *row)
{
    row->shift.by_eight = bit_xor(p, row->shift.by_eight, ne(p, row->lane->part, 0));
}

/* Decodes Q1_0. A word has the bits of two segments. A segment's two bytes become a word of their
 * own: byte 0, byte 0 >> 4, byte 1, byte 1 >> 4. The quants are 2 bit, with an offset of -1. */
static stream_weights decode_q1_0(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { FIRST_TWO = 0x5140, OTHER_TWO = 0x7362 };
    stream_weights w = { .d = convert(p, F32, words[D_AT]) };
    val bits[STREAM_WORDS];
    stream_join(p, &row->shift, words + LINES_AT, bits);
    for (unsigned i = 0; i < STREAM_SEGMENTS; i++) {
        val word = bits[i / 2];
        val own = prmt(p, word, shr(p, word, 4), i % 2 ? OTHER_TWO : FIRST_TWO);
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            w.q[i][j] = bit_and(p, j ? shr(p, own, j - 1) : shl(p, own, 1), IN_EACH_BYTE(2));
    }
    return w;
}

static stream_weights decode_q2_0(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = { .d = convert(p, F32, words[D_AT]) };
    val quants[STREAM_WORDS];
    stream_join(p, &row->shift, words + LINES_AT, quants);
    for (unsigned i = 0; i < STREAM_SEGMENTS; i++)
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            w.q[i][j] = bit_and(p, shr(p, quants[i], 2 * j), IN_EACH_BYTE(3));
    return w;
}

/* Loads a byte and splits it into fields of `bits` bits. */
static void split_byte(ptx *p, val at, unsigned offset, unsigned bits, unsigned count, val *fields)
{
    val byte = load_packed(p, U8, at, offset);
    for (unsigned i = 0; i < count; i++)
        fields[i] = bfe(p, byte, i * bits, bits);
}

/* Unpacks d * (2 bit - 1). */
static void unpack_q1_0(ptx *p, val block, val first, val w[UNPACKED])
{
    split_byte(p, byte_at(p, block, shr(p, first, 3)), Q1_0_BITS, 1, 8, w);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = shl(p, w[i], 1);
    scale_integers(p, load_half_as_f32(p, block, Q1_0_D), -1, w);
}

static void unpack_q2_0(ptx *p, val block, val first, val w[UNPACKED])
{
    val at = byte_at(p, block, shr(p, first, 2));
    for (unsigned i = 0; i < 2; i++)
        split_byte(p, at, Q2_0_QUANTS + i, 2, 4, w + 4 * i);
    scale_integers(p, load_half_as_f32(p, block, Q2_0_D), -1, w);
}

#define OF_BITS \
    .scales = SCALES, .order = SPREAD, .offset = -1, .segments = 4, .twos = true, .at_end = true

const weight_format weight_format_Q1_0 = {
    .unpack = unpack_q1_0,
    .stream = { OF_BITS, .quants = Q1_0_BITS, .row_new = row_q1_0,
                .loads = { LOAD_PIECE, LOAD(F16, FROM_BLOCK, Q1_0_D) }, .decode = decode_q1_0 },
};

const weight_format weight_format_Q2_0 = {
    .unpack = unpack_q2_0,
    .stream = { OF_BITS, .quants = Q2_0_QUANTS,
                .loads = { LOAD_PIECE, LOAD(F16, FROM_BLOCK, Q2_0_D) }, .decode = decode_q2_0 },
};
