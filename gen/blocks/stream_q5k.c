/* Streaming Q5_K weights: see blocks/stream.h.
 *
 * Four lanes cover a super-block of 176 bytes. Lane c has chunk c: 32 bytes whose low nibbles are a
 * sub-block and whose high ones are the next; and all 32 bytes of fifth bits, of which byte i has
 * bit j for weight i of sub-block j. With its neighbours it loads the 16 bytes ahead of them: five
 * aligned 16-byte loads.
 *
 * Turned so that bit 2c comes to bit 4, the fifth bits of sub-block 2c are where its nibbles need
 * them, and those of the next one are at bit 5: there its nibbles come to meet them, so that its q
 * are twice as large.
 */
#include "gen/blocks/bytes.h"
#include "gen/blocks/q4k.h"
#include "gen/blocks/stream.h"

enum { HEADER, FIFTHS = 4, QUANTS = 12 }; /* loaded words */
enum { LOW, HIGH = 2 };                   /* first segments of the two sub-blocks */
enum { SELECTOR, SHIFT, MASK_SIX, MASK_LAST, FIFTHS_TURN };

static val piece(ptx *p, val part)
{
    return mul(p, part, Q4K_CHUNK_BYTES);
}

static void lane_new(ptx *p, stream_lane *lane)
{
    q4k_chunk c = q4k_chunk_new(p, lane->part);
    lane->constants[SELECTOR] = c.selector;
    lane->constants[SHIFT] = c.shift;
    lane->constants[MASK_SIX] = c.mask_six;
    lane->constants[MASK_LAST] = c.mask_last;
    lane->constants[FIFTHS_TURN] = sub(p, imm(U32, 4), mul(p, lane->part, 2));
}

static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    stream_load_lines(p, row->block, offset, 1, words + HEADER);
    stream_load_lines(p, row->block, offset + Q5_K_FIFTH_BITS, 2, words + FIFTHS);
    stream_load_lines(p, row->lines, offset, 2, words + QUANTS);
}

static stream_weights decode(ptx *p, const stream_lane *lane, const stream_row *row,
                             const val words[STREAM_LOADED])
{
    (void)row;
    val4 header = { { words[0], words[1], words[2], words[3] } };
    const val *c = lane->constants;
    q4k_chunk chunk = { c[SELECTOR], c[SHIFT], c[MASK_SIX], c[MASK_LAST] };
    q4k_header h = q4k_header_of(p, header, &chunk);
    stream_weights w = { .d = h.d, .dmin = h.dmin };
    for (unsigned i = 0; i < 2; i++) {
        w.scale[2 * i] = signed_byte_as_f32(p, h.packed, i);
        w.min[2 * i] = signed_byte_as_f32(p, h.packed, 2 + i);
        for (unsigned j = 0; j < STREAM_WORDS; j++) {
            unsigned word = STREAM_WORDS * i + j;
            val nibbles = words[QUANTS + word];
            val fifths = rotate(p, words[FIFTHS + word], c[FIFTHS_TURN]);
            w.q[LOW + i][j] = lop3(p, nibbles, IN_EACH_BYTE(0x0f),
                                   bit_and(p, fifths, IN_EACH_BYTE(0x10)), AND_OR);
            w.q[HIGH + i][j] = lop3(p, shr(p, nibbles, 3), IN_EACH_BYTE(0x1e),
                                    bit_and(p, fifths, IN_EACH_BYTE(0x20)), AND_OR);
        }
    }
    return w;
}

/* Segment 4c + i of a super-block is that of lane c. */
const stream_format stream_Q5_K = {
    .crowded_end = true,
    .scales = SCALES,
    .minima = true,
    .segments = 4,
    .twos = true,
    .factors = { 1, 1, 2, 2 },
    .words = STREAM_WORDS,
    .quants = Q5_K_QUANTS,
    .piece = piece,
    .lane_new = lane_new,
    .load = load,
    .decode = decode,
};
