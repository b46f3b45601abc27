/* Streaming weights that stand side by side in a byte, Q1_0 and Q2_0: see blocks/stream.h.
 *
 * A lane has 64 neighbouring weights. Of the words of a piece, shifted by as many bits as a weight
 * has, one bit field of each byte is a weight: every fourth of a segment. So the tile has the
 * activations of a segment spread alike. Pieces are turned back: what a word of the piece
 * has is one segment's. Layouts are in src/ref/decode_blocks.c.
 */
#include "gen/common/bytes.h"
#include "gen/products/stream.h"

enum { D_AT, LINES_AT }; /* loaded words */

static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    stream_load_lines(p, row->lines, offset, 2, words + LINES_AT);
    words[D_AT] = ld_const(p, F16, row->block, offset);
}

/* Two lanes cover a block of Q1_0, both with all of its bits as their piece. That of the second
 * one is turned by 8 bytes more, so that its own are the first. */
static void row_q1_0(ptx *p, const stream_lane *lane, stream_row *row)
{
    row->shift.by_eight = bit_xor(p, row->shift.by_eight, ne(p, lane->part, 0));
}

/* A word has the bits of two segments. Those of one become a word of its own: the first byte, its
 * upper half once more lowered, and so the second. A weight is d (2 bit - 1). */
static stream_weights decode_q1_0(ptx *p, const stream_lane *lane, const stream_row *row,
                                  const val words[STREAM_LOADED])
{
    enum { FIRST_TWO = 0x5140, OTHER_TWO = 0x7362 };
    (void)lane;
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

static stream_weights decode_q2_0(ptx *p, const stream_lane *lane, const stream_row *row,
                                  const val words[STREAM_LOADED])
{
    (void)lane;
    stream_weights w = { .d = convert(p, F32, words[D_AT]) };
    val quants[STREAM_WORDS];
    stream_join(p, &row->shift, words + LINES_AT, quants);
    for (unsigned i = 0; i < STREAM_SEGMENTS; i++)
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            w.q[i][j] = bit_and(p, shr(p, quants[i], 2 * j), IN_EACH_BYTE(3));
    return w;
}

const stream_format stream_Q1_0 = {
    .scales = SCALES,
    .offset = -1,
    .segments = 4,
    .factors = { 1, 1, 1, 1 },
    .twos = true,
    .spread = true,
    .words = STREAM_WORDS,
    .in_order = true,
    .at_end = true,
    .quants = Q1_0_BITS,
    .row_new = row_q1_0,
    .load = load,
    .decode = decode_q1_0,
    .crowded_passes = true,
};

const stream_format stream_Q2_0 = {
    .scales = SCALES,
    .offset = -1,
    .segments = 4,
    .factors = { 1, 1, 1, 1 },
    .twos = true,
    .spread = true,
    .words = STREAM_WORDS,
    .in_order = true,
    .at_end = true,
    .quants = Q2_0_QUANTS,
    .load = load,
    .decode = decode_q2_0,
};
