/* Streaming weights whose four-bit codes index a table, IQ4_NL: see blocks/stream.h.
 *
 * A lane takes 32 weights, 16 bytes of codes. Looking up leaves the codes in the order of nibbles,
 * and the activations are staged in that order. The value of a code is the sum of two bytes: see
 * codes.h.
 */
#include "gen/blocks/codes.h"
#include "gen/blocks/stream.h"
#include "grid.h"

enum { SCALE, AT_LINES, LINES = 2 }; /* loaded words */

enum { LOW, HIGH = LOW + 2 }; /* constants of lanes: the table */

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

const stream_format stream_IQ4_NL = {
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
