/* Streaming weights whose four-bit codes index a table, IQ4_NL, IQ4_XS and MXFP4: see
 * blocks/stream.h.
 *
 * A lane takes 32 weights, 16 bytes of codes: a block, or a sub-block of IQ4_XS, of which eight
 * lanes read the 8 bytes ahead of the codes. Looking up leaves the codes in the order of nibbles,
 * and the activations are staged in that order. The value of a code is the sum of two bytes: see
 * codes.h.
 */
#include "gen/common/bytes.h"
#include "gen/formats/codes.h"
#include "gen/products/stream.h"
#include "kernel/grid.h"

enum { SCALE, HEADER = SCALE, AT_LINES = HEADER + 2, LINES = 2 }; /* loaded words */

enum { LOW, HIGH = LOW + 2, SHIFT_LOW = HIGH + 2, SHIFT_HIGH }; /* constants */

static void keep_table(ptx *p, stream_lane *lane, const int8_t values[16])
{
    code_table table = code_table_new(p, values);
    for (unsigned i = 0; i < 2; i++) {
        lane->constants[LOW + i] = table.low[i];
        lane->constants[HIGH + i] = table.high[i];
    }
}

static void look_up_piece(ptx *p, const stream_lane *lane, const stream_row *row, const val *lines,
                          stream_weights *w)
{
    const val *c = lane->constants;
    code_table table = { { c[LOW], c[LOW + 1] }, { c[HIGH], c[HIGH + 1] } };
    val codes[STREAM_WORDS], parts[2][2];
    stream_join(p, &row->shift, lines, codes);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        look_up_codes(p, &table, codes[j], parts);
        for (unsigned i = 0; i < 2; i++) {
            w->q[i][j] = parts[i][0];
            w->q[i][STREAM_WORDS + j] = parts[i][1];
        }
    }
}

static void lane_iq4(ptx *p, stream_lane *lane)
{
    keep_table(p, lane, iq4_values);
}

static void load_iq4_nl(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    words[SCALE] = convert(p, F32, ld_const(p, F16, row->block, offset + IQ4_NL_D));
    stream_load_lines(p, row->lines, offset, LINES, words + AT_LINES);
}

static stream_weights decode_iq4_nl(ptx *p, const stream_lane *lane, const stream_row *row,
                                    const val words[STREAM_LOADED])
{
    stream_weights w = { .d = words[SCALE] };
    look_up_piece(p, lane, row, words + AT_LINES, &w);
    return w;
}

/* Lane j of a super-block has the lower bits of its scale from bit 4j on, and the upper ones from
 * bit 16 + 2j on of the word ahead, whence they come to bit 4. */
static void lane_iq4_xs(ptx *p, stream_lane *lane)
{
    keep_table(p, lane, iq4_values);
    lane->constants[SHIFT_LOW] = mul(p, lane->part, 4);
    lane->constants[SHIFT_HIGH] = mad(p, lane->part, 2, imm(U32, 12));
}

static void load_iq4_xs(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    val2 header = ld_const_v2(p, U32, row->block, offset + IQ4_XS_D);
    words[HEADER] = header.v[0];
    words[HEADER + 1] = header.v[1];
    stream_load_lines(p, row->lines, offset, LINES, words + AT_LINES);
}

/* A number below 2^23 is a float without a conversion: the lower bits of 2^23 and the number. */
static stream_weights decode_iq4_xs(ptx *p, const stream_lane *lane, const stream_row *row,
                                    const val words[STREAM_LOADED])
{
    const uint32_t two_to_23 = 0x4b000000;
    val low = shr(p, words[HEADER + 1], lane->constants[SHIFT_LOW]);
    val high = shr(p, words[HEADER], lane->constants[SHIFT_HIGH]);
    val bits = lop3(p, high, imm(U32, 0x30), imm(U32, two_to_23), AND_OR);
    bits = lop3(p, low, imm(U32, 0x0f), bits, AND_OR);
    val scale = sub(p, bits_as(p, F32, bits), 0x1p23f + 32);
    stream_weights w = {
        .d = mul(p, convert(p, F32, halves(p, words[HEADER]).v[0]), scale),
    };
    look_up_piece(p, lane, row, words + AT_LINES, &w);
    return w;
}

static void lane_mxfp4(ptx *p, stream_lane *lane)
{
    keep_table(p, lane, fp4_values);
}

static void load_mxfp4(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    words[SCALE] = ld_const(p, U8, row->block, offset + MXFP4_E);
    stream_load_lines(p, row->lines, offset, LINES, words + AT_LINES);
}

/* 2^(e - 128) has the bits (e - 1) << 23, but the bits (e + 1) << 21 where e is 0 or 1, and it is
 * subnormal: as signed numbers those are the greater ones there, and only there. */
static stream_weights decode_mxfp4(ptx *p, const stream_lane *lane, const stream_row *row,
                                   const val words[STREAM_LOADED])
{
    val e = as(p, S32, words[SCALE]);
    val normal = mad(p, e, 1 << 23, imm(S32, -(1 << 23)));
    val subnormal = mad(p, e, 1 << 21, imm(S32, 1 << 21));
    stream_weights w = { .d = bits_as(p, F32, max(p, normal, subnormal)) };
    look_up_piece(p, lane, row, words + AT_LINES, &w);
    return w;
}

const stream_format stream_IQ4_NL = {
    .crowded_turn = true,
    .scales = ONE_SCALE,
    .segments = 2,
    .factors = { 1, 1 },
    .pairs = true,
    .words = STREAM_FACTORS,
    .at_end = true,
    .quants = IQ4_NL_QUANTS,
    .lane_new = lane_iq4,
    .load = load_iq4_nl,
    .decode = decode_iq4_nl,
};

const stream_format stream_IQ4_XS = {
    .scales = ONE_SCALE,
    .segments = 2,
    .factors = { 1, 1 },
    .pairs = true,
    .words = STREAM_FACTORS,
    .at_end = true,
    .quants = IQ4_XS_QUANTS,
    .piece = stream_piece_of_sixteen,
    .lane_new = lane_iq4_xs,
    .load = load_iq4_xs,
    .decode = decode_iq4_xs,
};

const stream_format stream_MXFP4 = {
    .crowded_turn = true,
    .scales = ONE_SCALE,
    .segments = 2,
    .factors = { 1, 1 },
    .pairs = true,
    .words = STREAM_FACTORS,
    .at_end = true,
    .quants = MXFP4_QUANTS,
    .lane_new = lane_mxfp4,
    .load = load_mxfp4,
    .decode = decode_mxfp4,
};
