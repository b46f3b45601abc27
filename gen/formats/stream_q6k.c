/* Streaming Q6_K weights: see blocks/stream.h.
 *
 * Four lanes cover a super-block of 210 bytes. Lane 2h + l (of half h, and the lower or upper 16 of
 * the 32 bytes of each of its fields) has 64 weights: two pieces of nibbles, 32 bytes apart, and
 * the piece of upper bits, of which each byte has those of all four groups. Group g takes the low
 * or high nibbles of the first piece (g = 0, 2) or the second (1, 3). What is highest in its bytes,
 * the upper bits of groups 2 and 3, stays where it is. Block offsets are in q6k.h.
 */
#include "gen/common/bytes.h"
#include "gen/products/stream.h"

enum { GROUPS = 4, HALF_BYTES = 64, SECOND = 32 };
enum { HIGH, SCALES_AT }; /* pointers */
enum { AT_D, AT_SCALE, AT_LOW = AT_SCALE + GROUPS, AT_HIGH = AT_LOW + 2 * STREAM_LINES };

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
    return mad(p, half_of(p, part), HALF_BYTES, mul(p, sixteen_of(p, part), STREAM_LANE_BYTES));
}

/* The pieces of upper bits lie 32 h bytes closer together. */
static void row_new(ptx *p, const stream_lane *lane, stream_row *row)
{
    val half = half_of(p, lane->part);
    val high = sub(p, imm(U32, Q6_K_HIGH_BITS), mul(p, half, HALF_BYTES / 2));
    row->at[HIGH] = add(p, row->lines, convert(p, U64, high));
    val scale = mad(p, half, 2 * GROUPS, sixteen_of(p, lane->part));
    row->at[SCALES_AT] = add(p, row->block, convert(p, U64, scale));
}

static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    stream_load_lines(p, row->lines, offset, 2, words + AT_LOW);
    stream_load_lines(p, row->lines, offset + SECOND, 2, words + AT_LOW + STREAM_LINES);
    stream_load_lines(p, row->at[HIGH], offset, 2, words + AT_HIGH);
    for (unsigned i = 0; i < GROUPS; i++)
        words[AT_SCALE + i] = ld_const(p, S8, row->at[SCALES_AT], offset + Q6_K_SCALES + 2 * i);
    words[AT_D] = ld_const(p, F16, row->block, offset + Q6_K_D);
}

static stream_weights decode(ptx *p, const stream_lane *lane, const stream_row *row,
                             const val words[STREAM_LOADED])
{
    (void)lane;
    stream_weights w = { .d = convert(p, F32, words[AT_D]) };
    val low[2][STREAM_WORDS], high[STREAM_WORDS];
    for (unsigned i = 0; i < GROUPS; i++)
        w.scale[i] = convert(p, F32, words[AT_SCALE + i]);
    for (unsigned i = 0; i < 2; i++)
        stream_join(p, &row->shift, words + AT_LOW + i * STREAM_LINES, low[i]);
    stream_join(p, &row->shift, words + AT_HIGH, high);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        val nibbles = IN_EACH_BYTE(0x0f), upper = IN_EACH_BYTE(0x30), h = high[j];
        w.q[0][j] = lop3(p, low[0][j], nibbles, bit_and(p, shl(p, h, 4), upper), AND_OR);
        w.q[1][j] = lop3(p, low[1][j], nibbles, bit_and(p, shl(p, h, 2), upper), AND_OR);
        w.q[2][j] = lop3(p, shr(p, low[0][j], 4), nibbles, bit_and(p, h, upper), AND_OR);
        w.q[3][j] = lop3(p, shr(p, low[1][j], 2), IN_EACH_BYTE(0x3c),
                         bit_and(p, h, IN_EACH_BYTE(0xc0)), AND_OR);
    }
    return w;
}

/* Segment 8h + 2g + l of a super-block is that of lane 2h + l. */
const stream_format stream_Q6_K = {
    .scales = SCALES,
    .registers = 96,
    .crowded_vectors = true,
    .offset = -32,
    .segments = 4,
    .factors = { 1, 1, 1, 4 },
    .index_bit = 1,
    .words = STREAM_WORDS,
    .quants = Q6_K_QUANTS,
    .piece = piece,
    .row_new = row_new,
    .load = load,
    .decode = decode,
};
