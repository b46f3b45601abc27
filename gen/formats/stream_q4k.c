/* Streaming Q4_K and Q5_K weights: see blocks/stream.h.
 *
 * Four lanes cover a super-block. Lane c loads the 32 bytes of chunk c, whose low nibbles are a
 * sub-block and whose high ones are the next, and with its three neighbours the 16 bytes ahead of
 * them: three aligned 16-byte loads for 64 weights of Q4_K, 144 bytes a super-block and nothing
 * twice.
 *
 * A super-block of Q5_K has 176 bytes: behind the first 16 are 32 of fifth bits, of which byte i
 * has bit j for weight i of sub-block j, and each lane loads them all. Turned so that bit 2c comes
 * to bit 4, the fifth bits of sub-block 2c are where its nibbles need them, and those of the next
 * one are at bit 5: there its nibbles come to meet them, so that its q are twice as large.
 */
#include "gen/common/bytes.h"
#include "gen/formats/q4k.h"
#include "gen/products/stream.h"

enum { HEADER, QUANTS = STREAM_WORDS, FIFTHS = QUANTS + 2 * STREAM_WORDS }; /* loaded words */
enum { SELECTOR, SHIFT, MASK_SIX, MASK_LAST, FIFTHS_TURN };                 /* constants */
enum { LOW, HIGH = 2 }; /* first segments of the two sub-blocks */

static val piece(ptx *p, val part)
{
    return mul(p, part, Q4K_CHUNK_BYTES);
}

static void lane_q4_k(ptx *p, stream_lane *lane)
{
    q4k_chunk c = q4k_chunk_new(p, lane->part);
    lane->constants[SELECTOR] = c.selector;
    lane->constants[SHIFT] = c.shift;
    lane->constants[MASK_SIX] = c.mask_six;
    lane->constants[MASK_LAST] = c.mask_last;
}

static void lane_q5_k(ptx *p, stream_lane *lane)
{
    lane_q4_k(p, lane);
    lane->constants[FIFTHS_TURN] = sub(p, imm(U32, 4), mul(p, lane->part, 2));
}

static void load_q4_k(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    stream_load_lines(p, row->block, offset, 1, words + HEADER);
    stream_load_lines(p, row->lines, offset, 2, words + QUANTS);
}

static void load_q5_k(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    load_q4_k(p, row, offset, words);
    stream_load_lines(p, row->block, offset + Q5_K_FIFTH_BITS, 2, words + FIFTHS);
}

/* All but the quants. */
static stream_weights decode_header(ptx *p, const stream_lane *lane, const val words[STREAM_LOADED])
{
    val4 header = { { words[0], words[1], words[2], words[3] } };
    const val *c = lane->constants;
    q4k_chunk chunk = { c[SELECTOR], c[SHIFT], c[MASK_SIX], c[MASK_LAST] };
    q4k_header h = q4k_header_of(p, header, &chunk);
    stream_weights w = { .d = h.d, .dmin = h.dmin };
    for (unsigned i = 0; i < 2; i++) {
        w.scale[2 * i] = signed_byte_as_f32(p, h.packed, i);
        w.min[2 * i] = signed_byte_as_f32(p, h.packed, 2 + i);
    }
    return w;
}

static stream_weights decode_q4_k(ptx *p, const stream_lane *lane, const stream_row *row,
                                  const val words[STREAM_LOADED])
{
    (void)row;
    stream_weights w = decode_header(p, lane, words);
    for (unsigned j = 0; j < 2 * STREAM_WORDS; j++) {
        unsigned half = j / STREAM_WORDS, word = j % STREAM_WORDS;
        w.q[LOW + half][word] = bit_and(p, words[QUANTS + j], IN_EACH_BYTE(0x0f));
        w.q[HIGH + half][word] = bit_and(p, words[QUANTS + j], IN_EACH_BYTE(0xf0));
    }
    return w;
}

static stream_weights decode_q5_k(ptx *p, const stream_lane *lane, const stream_row *row,
                                  const val words[STREAM_LOADED])
{
    (void)row;
    stream_weights w = decode_header(p, lane, words);
    for (unsigned j = 0; j < 2 * STREAM_WORDS; j++) {
        unsigned half = j / STREAM_WORDS, word = j % STREAM_WORDS;
        val fifths = rotate(p, words[FIFTHS + j], lane->constants[FIFTHS_TURN]);
        w.q[LOW + half][word] = lop3(p, words[QUANTS + j], IN_EACH_BYTE(0x0f),
                                     bit_and(p, fifths, IN_EACH_BYTE(0x10)), AND_OR);
        w.q[HIGH + half][word] = lop3(p, shr(p, words[QUANTS + j], 3), IN_EACH_BYTE(0x1e),
                                      bit_and(p, fifths, IN_EACH_BYTE(0x20)), AND_OR);
    }
    return w;
}

/* Segment 4c + i of a super-block is that of lane c. */
#define OF_CHUNKS                                                                         \
    .scales = SCALES, .minima = true, .segments = 4, .twos = true, .words = STREAM_WORDS, \
    .piece = piece

const stream_format stream_Q4_K = {
    OF_CHUNKS,
    .factors = { 1, 1, 16, 16 }, /* high nibbles stay where they are */
    .quants = Q4_K_QUANTS,
    .lane_new = lane_q4_k,
    .load = load_q4_k,
    .decode = decode_q4_k,
};

const stream_format stream_Q5_K = {
    OF_CHUNKS,
    .crowded_end = true,
    .factors = { 1, 1, 2, 2 },
    .quants = Q5_K_QUANTS,
    .lane_new = lane_q5_k,
    .load = load_q5_k,
    .decode = decode_q5_k,
};
