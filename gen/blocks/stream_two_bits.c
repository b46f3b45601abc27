/* Streaming weights whose quants are two bits, and what goes with them: Q2_K. See blocks/stream.h.
 *
 * Four lanes cover a super-block. Lane 2h + l loads 16 of the 32 bytes of half h, and of each byte
 * all four values, which are those of its four segments: bits 2g and 2g + 1 are segment g's. They
 * stay where they are, so that those of segment g are 4^g too large. Layouts are in
 * src/ref/decode_k.c.
 */
#include "gen/blocks/bytes.h"
#include "gen/blocks/stream.h"

enum { GROUPS = 4, ONE_BYTE = 0x1111 };

static val half_of(ptx *p, val part)
{
    return shr(p, part, 1);
}

static val sixteen_of(ptx *p, val part)
{
    return bit_and(p, part, 1);
}

static val piece(ptx *p, val part)
{
    return mul(p, part, STREAM_LANE_BYTES);
}

static void two_bits(ptx *p, const val words[STREAM_WORDS], stream_weights *w)
{
    for (unsigned i = 0; i < GROUPS; i++)
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            w->q[i][j] = bit_and(p, words[j], IN_EACH_BYTE(3 << 2 * i));
}

/* Q2_K. Of the eight bytes of scales and mins of a half a lane's are every second. */
enum { Q2_K_AT_D, Q2_K_AT_SCALES, Q2_K_AT_LINES = Q2_K_AT_SCALES + 2 };

static void lane_q2_k(ptx *p, stream_lane *lane)
{
    enum { EVEN_BYTES = 0x6420 };
    lane->constants[0] = mad(p, sixteen_of(p, lane->part), ONE_BYTE, imm(U32, EVEN_BYTES));
}

static void row_q2_k(ptx *p, const stream_lane *lane, stream_row *row)
{
    val scales = mul(p, half_of(p, lane->part), (Q2_K_QUANTS - Q2_K_SCALES) / 2);
    row->at[0] = add(p, row->block, convert(p, U64, scales));
}

static void load_q2_k(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    stream_load_lines(p, row->lines, offset, 2, words + Q2_K_AT_LINES);
    for (unsigned i = 0; i < 2; i++)
        words[Q2_K_AT_SCALES + i] = ld_const(p, U32, row->at[0], offset + Q2_K_SCALES + 4 * i);
    words[Q2_K_AT_D] = ld_const(p, U32, row->block, offset + Q2_K_D);
}

static stream_weights decode_q2_k(ptx *p, const stream_lane *lane, const stream_row *row,
                                  const val words[STREAM_LOADED])
{
    val2 d = halves(p, words[Q2_K_AT_D]);
    stream_weights w = { .d = convert(p, F32, d.v[0]), .dmin = convert(p, F32, d.v[1]) };
    val both = prmt(p, words[Q2_K_AT_SCALES], words[Q2_K_AT_SCALES + 1], lane->constants[0]);
    val scales = bit_and(p, both, IN_EACH_BYTE(0x0f));
    val mins = bit_and(p, shr(p, both, 4), IN_EACH_BYTE(0x0f)), quants[STREAM_WORDS];
    for (unsigned i = 0; i < GROUPS; i++) {
        w.scale[i] = byte_as_f32(p, scales, i);
        w.min[i] = byte_as_f32(p, mins, i);
    }
    stream_join(p, &row->shift, words + Q2_K_AT_LINES, quants);
    two_bits(p, quants, &w);
    return w;
}

/* Segment 8h + 2g + l of a super-block is that of lane 2h + l. */
const stream_format stream_Q2_K = {
    .scales = SCALES,
    .minima = true,
    .segments = 4,
    .factors = { 1, 4, 16, 64 },
    .index_bit = 1,
    .words = STREAM_WORDS,
    .quants = Q2_K_QUANTS,
    .piece = piece,
    .lane_new = lane_q2_k,
    .row_new = row_q2_k,
    .load = load_q2_k,
    .decode = decode_q2_k,
};
