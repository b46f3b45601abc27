/* Streaming NVFP4 weights: see blocks/stream.h.
 *
 * Two lanes cover a block. A lane has 16 bytes of codes, two segments with a scale each. Codes of
 * one sign are looked up by a byte permutation, and those of the other give 0, the sign of what is
 * in the table; so the two tables have 12 more than the values, and what both give is put together.
 * The layout is in src/ref/decode_tables.c.
 */
#include "gen/common/bytes.h"
#include "gen/products/stream.h"
#include "kernel/grid.h"

enum { LARGEST = 12, CODES = 16, HALF = CODES / 2 };
enum { SCALES_AT, LINES_AT };          /* loaded words */
enum { SELECTOR, POSITIVE, NEGATIVE }; /* constants */

/* Word 0 or 1 of half a table, by codes 0 to 7 or 8 to 15. */
static uint32_t table_word(unsigned half, unsigned word)
{
    uint32_t bytes = 0;
    for (unsigned i = 0; i < 4; i++)
        bytes |= (uint32_t)(LARGEST + fp4_values[HALF * half + 4 * word + i]) << (8 * i);
    return bytes;
}

/* A lane's two scales are bytes of two halves, in the order of its segments. */
static void lane_new(ptx *p, stream_lane *lane)
{
    enum { TWO_BYTES = 0x4140, SWAPPED = 0x4041, SECOND_TWO = 0x0202 };
    val swapped = ne(p, bit_and(p, lane->turned, STREAM_LANE_BYTES / 2), 0);
    lane->constants[SELECTOR] = mad(p, lane->part, imm(U32, SECOND_TWO),
                                    select(p, swapped, imm(U32, SWAPPED), imm(U32, TWO_BYTES)));
    lane->constants[POSITIVE] = kept_in_register(p, table_word(0, 0));
    lane->constants[NEGATIVE] = kept_in_register(p, table_word(1, 0));
}

static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    words[SCALES_AT] = ld_const(p, U32, row->block, offset + NVFP4_SCALES);
    stream_load_lines(p, row->lines, offset, 2, words + LINES_AT);
}

/* Two codes ue4m3, each in the lower byte of a half, as fp16 that are 2^8 too small; 0x7f is 0. A
 * code's highest bit says nothing, but 0xff is not 0x7f. */
static val2 scales_of(ptx *p, val codes)
{
    enum { AND_NOT_AND = 0x20, AND_AND_NOT = 0x40, BIT_7 = 0x00800080 };
    val next = add(p, codes, imm(U32, 0x00010001));
    val zeros = mul(p, lop3(p, next, codes, imm(U32, BIT_7), AND_NOT_AND), 0x7f);
    return halves(p, lop3(p, shl(p, codes, 7), imm(U32, 0x3f803f80), zeros, AND_AND_NOT));
}

static stream_weights decode(ptx *p, const stream_lane *lane, const stream_row *row,
                             const val words[STREAM_LOADED])
{
    const val *c = lane->constants;
    stream_weights w = { .d = V(128.0f) };
    val2 scales = scales_of(p, prmt(p, words[SCALES_AT], imm(U32, 0), c[SELECTOR]));
    for (unsigned i = 0; i < 2; i++)
        w.scale[i] = convert(p, F32, scales.v[i]);
    val codes[STREAM_WORDS];
    stream_join(p, &row->shift, words + LINES_AT, codes);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        val flipped = bit_xor(p, codes[j], IN_EACH_BYTE(0x88));
        for (unsigned half = 0; half < 2; half++) {
            val positive = prmt(p, c[POSITIVE], imm(U32, table_word(0, 1)),
                                half ? shr(p, codes[j], 16) : codes[j]);
            val negative = prmt(p, c[NEGATIVE], imm(U32, table_word(1, 1)),
                                half ? shr(p, flipped, 16) : flipped);
            w.q[j / 2][2 * (j % 2) + half] = bit_or(p, positive, negative);
        }
    }
    return w;
}

const stream_format stream_NVFP4 = {
    .scales = SCALES,
    .offset = -LARGEST,
    .segments = 2,
    .factors = { 1, 1 },
    .eights = true,
    .words = STREAM_WORDS,
    .at_end = true,
    .quants = NVFP4_QUANTS,
    .piece = stream_piece_of_sixteen,
    .lane_new = lane_new,
    .load = load,
    .decode = decode,
};
