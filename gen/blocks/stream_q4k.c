/* Streaming Q4_K weights: see blocks/stream.h.
 *
 * Four lanes cover a super-block. Lane c loads the 32 bytes of chunk c, whose low nibbles are a
 * sub-block and whose high ones are the next, and with its three neighbours the 16 bytes ahead of
 * them: three aligned 16-byte loads for 64 weights, 144 bytes a super-block and nothing twice.
 */
#include "gen/blocks/bytes.h"
#include "gen/blocks/q4k.h"
#include "gen/blocks/stream.h"

enum { HEADER, QUANTS = STREAM_WORDS }; /* loaded words */
enum { LOW, HIGH = 2 };                 /* first segments of the two sub-blocks */
enum { SELECTOR, SHIFT, MASK_SIX, MASK_LAST };

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
}

static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    stream_load_lines(p, row->block, offset, 1, words + HEADER);
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
            val nibbles = words[QUANTS + STREAM_WORDS * i + j];
            w.q[LOW + i][j] = bit_and(p, nibbles, imm(U32, 0x0f0f0f0f));
            w.q[HIGH + i][j] = bit_and(p, nibbles, imm(U32, 0xf0f0f0f0));
        }
    }
    return w;
}

/* Segment 4c + i of a super-block is that of lane c. */
const stream_format stream_Q4_K = {
    .scales = SCALES,
    .minima = true,
    .segments = 4,
    .twos = true,
    .factors = { 1, 1, 16, 16 },
    .words = STREAM_WORDS,
    .quants = Q4_K_QUANTS,
    .piece = piece,
    .lane_new = lane_new,
    .load = load,
    .decode = decode,
};
