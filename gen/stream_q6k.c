/* Streaming GEMV with Q6_K weights: see blocks/stream.h.
 *
 * Eight lanes cover a super-block of 210 bytes, which is only 2-byte aligned. Lane 4h + 2b + l (of
 * half h, the bytes of groups b and b + 2, and their lower or upper 16) takes 16 bytes of low
 * nibbles, whose low halves are its low segment, and the 16 bytes with their upper bits. Both lie
 * equally far from a multiple of 4: the lane reads the words around them and shifts them together.
 * Block offsets are in q6k.h.
 */
#include "gen/blocks/bytes.h"
#include "gen/blocks/q6k.h"
#include "gen/blocks/stream.h"
#include "gen/stream_keys.h"

enum { LANES = 8, PIECE = 16, AROUND = STREAM_WORDS + 1 };
enum { LOW, HIGH, SCALES, BLOCK };                                             /* pointers */
enum { AT_LOW, AT_HIGH = AROUND, AT_SCALE = 2 * AROUND, AT_D = AT_SCALE + 2 }; /* loaded words */

/* Segment 8h + 2g + l of a super-block, where g is b or, for the high segment, b + 2. */
static val lane_of(ptx *p, val segment)
{
    val super_block = shr(p, segment, 4), half = bfe(p, segment, 3, 1);
    val of_half = bit_and(p, segment, 3); /* 2b + l */
    return mad(p, super_block, LANES, mad(p, half, 4, of_half));
}

static val is_high(ptx *p, val segment)
{
    return bfe(p, segment, 2, 1);
}

static stream_lane lane_new(ptx *p)
{
    val lane = lane_id(p), half = bfe(p, lane, 2, 1), group = bfe(p, lane, 1, 1);
    val upper = bit_and(p, lane, 1);
    val low = mad(p, half, 64, mad(p, group, 32, mul(p, upper, PIECE)));
    val high = mad(p, half, 32, mul(p, upper, PIECE));
    val scale = mad(p, half, 8, mad(p, group, 2, upper));
    return (stream_lane){ .block = div(p, lane, LANES),
                          .offset = { low, add(p, high, Q6K_HIGH_BITS), add(p, scale, Q6K_SCALES) },
                          .shift = mul(p, group, 2) };
}

static stream_row row_new(ptx *p, const stream_lane *lane, val block)
{
    enum { AS_IS = 0x3210, SHIFTED = 0x5432 };
    val odd = bit_and(p, convert(p, U32, block), 2);
    val below = sub(p, block, convert(p, U64, odd));
    stream_row row = { .selector = select(p, ne(p, odd, 0), imm(U32, SHIFTED), imm(U32, AS_IS)) };
    row.at[LOW] = add(p, below, convert(p, U64, lane->offset[LOW]));
    row.at[HIGH] = add(p, below, convert(p, U64, lane->offset[HIGH]));
    row.at[SCALES] = add(p, block, convert(p, U64, lane->offset[SCALES]));
    row.at[BLOCK] = block;
    return row;
}

/* Behind both pieces follows more of the block: the fifth word lies in it. */
static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    for (unsigned i = 0; i < AROUND; i++) {
        words[AT_LOW + i] = ld_const(p, U32, row->at[LOW], offset + 4 * i);
        words[AT_HIGH + i] = ld_const(p, U32, row->at[HIGH], offset + 4 * i);
    }
    for (unsigned i = 0; i < 2; i++)
        words[AT_SCALE + i] = ld_const(p, S8, row->at[SCALES], offset + 4 * i);
    words[AT_D] = ld_const(p, F16, row->at[BLOCK], offset + Q6K_D);
}

static stream_weights decode(ptx *p, const stream_lane *lane, const stream_row *row,
                             const val words[STREAM_LOADED])
{
    stream_weights w = { .d = convert(p, F32, words[AT_D]) };
    for (unsigned i = 0; i < 2; i++)
        w.scale[i] = convert(p, F32, words[AT_SCALE + i]);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        val low = prmt(p, words[AT_LOW + j], words[AT_LOW + j + 1], row->selector);
        val bits = prmt(p, words[AT_HIGH + j], words[AT_HIGH + j + 1], row->selector);
        bits = shr(p, bits, lane->shift);
        val nibbles = IN_EACH_BYTE(0x0f), upper = IN_EACH_BYTE(0x30);
        w.q[0][j] = lop3(p, low, nibbles, bit_and(p, shl(p, bits, 4), upper), AND_OR);
        w.q[1][j] = lop3(p, shr(p, low, 4), nibbles, bit_and(p, bits, upper), AND_OR);
    }
    return w;
}

static const stream_format q6k = {
    .scales = TWO_SCALES,
    .offset = -32,
    .high_factor = 1,
    .lane_of = lane_of,
    .is_high = is_high,
    .lane_new = lane_new,
    .row_new = row_new,
    .load = load,
    .decode = decode,
};

static void build(ptx *p, const instance *in)
{
    stream_gemv(p, in, &q6k);
}

const family stream_q6k_gemv = {
    .name = "stream_q6k_gemv",
    .summary = "streaming Q6_K x f32 GEMV, x quantized once a block",
    STREAM_GEMV(Q6_K, Q6K_VALUES, 16, 2, build),
};
