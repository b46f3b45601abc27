/* Streaming Q4_K weights: see blocks/stream.h.
 *
 * Eight lanes cover a super-block. Lane 2c + h loads 16 of the 32 bytes of chunk c at once, whose
 * low nibbles are its low segment and whose high nibbles are its high one, and with its seven
 * neighbours the 16 bytes ahead of them: two aligned 16-byte loads for 32 weights, 144 bytes a
 * super-block and nothing twice.
 */
#include "gen/blocks/bytes.h"
#include "gen/blocks/q4k.h"
#include "gen/blocks/stream.h"

enum { HEADER, QUANTS = STREAM_WORDS }; /* loaded words */
enum { SELECTOR, SHIFT, MASK_SIX, MASK_LAST };

static void lane_new(ptx *p, stream_lane *lane)
{
    q4k_chunk c = q4k_chunk_new(p, div(p, lane->part, 2));
    lane->constants[SELECTOR] = c.selector;
    lane->constants[SHIFT] = c.shift;
    lane->constants[MASK_SIX] = c.mask_six;
    lane->constants[MASK_LAST] = c.mask_last;
}

static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    stream_load_lines(p, row->block, offset, 1, words + HEADER);
    stream_load_lines(p, row->lines, offset, 1, words + QUANTS);
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
        w.scale[i] = signed_byte_as_f32(p, h.packed, i);
        w.min[i] = signed_byte_as_f32(p, h.packed, 2 + i);
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            w.q[i][j] = bit_and(p, words[QUANTS + j], imm(U32, i ? 0xf0f0f0f0 : 0x0f0f0f0f));
    }
    return w;
}

/* Segment 4c + 2 high + h of a super-block is that of lane 2c + h. */
const stream_format stream_Q4_K = {
    .crowded_turn = true,
    .scales = SCALES,
    .minima = true,
    .segments = 2,
    .factors = { 1, 16 },
    .index_bit = 1,
    .words = STREAM_WORDS,
    .quants = Q4_K_QUANTS,
    .piece = stream_piece_of_sixteen,
    .lane_new = lane_new,
    .load = load,
    .decode = decode,
};
