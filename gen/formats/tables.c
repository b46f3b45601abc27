/* Formats whose four-bit codes index a table: IQ4_NL, IQ4_XS, MXFP4, NVFP4, NF4 and NF4_H. Fields
 * are drawn in src/ref/decode_tables.c.
 *
 *   IQ4_NL   0 f16 d   2 16 x u8 codes                                                    18 bytes
 *   IQ4_XS   0 f16 d   2 u16 upper scale bits   4 4 x u8 scales   8 128 x u8 codes       136 bytes
 *   MXFP4    0 u8 e    1 16 x u8 codes                                                    17 bytes
 *   NVFP4    0 4 x u8 scales   4 32 x u8 codes                                            36 bytes
 *   NF4      0 f32 absmax   4 32 x u8 codes                                               36 bytes
 *   NF4_H    0 f16 absmax   2 32 x u8 codes                                               34 bytes
 *
 * Streaming, a lane owns 32 weights, 16 bytes of codes: a block, a sub-block of IQ4_XS, or half a
 * block of NVFP4 or NF4. Looked up words are in the order of nibbles, and activations are staged in
 * that order.
 *
 * One prmt looks up four codes in eight bytes. If bit 3 of a selector nibble is set, the result is
 * the sign of the selected byte, 0 or -1. The table's halves are looked up by the codes, and by the
 * codes with bit 3 flipped. The sum of both is the code's value from one half plus a sign from the
 * other. The halves are adjusted so that the sum is exact: for -127 and 1, by codes 0 and 8, they
 * hold -127 and 2. This fails only if code i < 8 is negative and code i + 8 is -1.
 *
 * The values of NVFP4 are small: with 12 added to each, none is negative. The signs are then 0, and
 * the results of both halves are or'ed into one word.
 *
 * The values of NF4 are floats. Streaming rounds them to multiples of absmax / 914. The error is at
 * most 3.6e-4 of absmax, a tenth of the error of x in 8 bits. With 914 added they have eleven bits:
 * one table has the upper seven, another the lower four. */
#include <math.h>
#include <string.h>

#include "gen/formats/tools.h"
#include "kernel/grid.h"

enum { CODES = 16, HALF = CODES / 2 };
enum { SCALE, AT_LINES, HEADER = SCALE, IQ4_XS_LINES = HEADER + 2 }; /* loaded words */
enum { LOW, HIGH, SHIFT_LOW, SHIFT_HIGH, SELECTOR = SHIFT_LOW };     /* constants */

/* Computes d times the table value of each code. A prmt selects among eight bytes; bit 3 of the
 * code chooses the half of the table. */
static void scale_codes(ptx *p, val d, const int8_t table[CODES], val w[UNPACKED])
{
    val words[CODES / 4];
    for (unsigned i = 0; i < CODES / 4; i++)
        words[i] = imm(U32, word_of_bytes(table + (size_t)4 * i, 0));
    for (int i = 0; i < UNPACKED; i++) {
        val of_eight = bit_and(p, w[i], 7);
        val low = prmt(p, words[0], words[1], of_eight),
            high = prmt(p, words[2], words[3], of_eight);
        val bytes = select(p, lt(p, w[i], 8), low, high);
        w[i] = mul(p, d, convert(p, F32, bfe(p, as(p, S32, bytes), 0, 8)));
    }
}

/* The halves of a table, each as two words of four bytes. */
typedef struct code_table {
    uint32_t low[2], high[2];
} code_table;

static code_table table_of(const int8_t values[CODES])
{
    int8_t low[HALF], high[HALF];
    for (unsigned i = 0; i < HALF; i++) {
        /* Compensates the other half's sign, which is -1 for a negative byte. */
        low[i] = (int8_t)(values[i] + (values[HALF + i] < 0));
        high[i] = (int8_t)(values[HALF + i] + (low[i] < 0));
    }
    return (code_table){ { word_of_bytes(low, 0), word_of_bytes(low + 4, 0) },
                         { word_of_bytes(high, 0), word_of_bytes(high + 4, 0) } };
}

/* Returns the table of values that an offset makes non-negative. */
static code_table table_without_signs(const int8_t values[CODES], int offset)
{
    return (code_table){ { word_of_bytes(values, offset), word_of_bytes(values + 4, offset) },
                         { word_of_bytes(values + HALF, offset),
                           word_of_bytes(values + HALF + 4, offset) } };
}

/* Keeps half of the table in registers: a prmt can have only one immediate word. */
static void keep_table(ptx *p, code_table table, val kept[2])
{
    kept[LOW] = kept_in_register(p, table.low[0]);
    kept[HIGH] = kept_in_register(p, table.high[0]);
}

/* Looks up the eight codes of a word. parts[i][j]: half i of the word in half j of the table. */
static void look_up(ptx *p, const val kept[2], const code_table *table, val codes, val parts[2][2])
{
    val flipped = bit_xor(p, codes, IN_EACH_BYTE(0x88));
    for (unsigned i = 0; i < 2; i++) {
        parts[i][0] = prmt(p, kept[LOW], imm(U32, table->low[1]), i ? shr(p, codes, 16) : codes);
        parts[i][1] =
            prmt(p, kept[HIGH], imm(U32, table->high[1]), i ? shr(p, flipped, 16) : flipped);
    }
}

static void look_up_iq4(ptx *p, const stream_lane *lane, val codes, val parts[2][2])
{
    code_table table = table_of(iq4_values);
    look_up(p, lane->constants, &table, codes, parts);
}

static void look_up_fp4(ptx *p, const stream_lane *lane, val codes, val parts[2][2])
{
    code_table table = table_of(fp4_values);
    look_up(p, lane->constants, &table, codes, parts);
}

static void look_up_piece(ptx *p, const stream_row *row,
                          void (*of)(ptx *p, const stream_lane *lane, val codes, val parts[2][2]),
                          const val *lines, stream_weights *w)
{
    val codes[STREAM_WORDS], parts[2][2];
    stream_join(p, &row->shift, lines, codes);
    if (row->lane->codes)
        memcpy(w->q[0], codes, sizeof codes);
    for (unsigned j = 0; j < STREAM_WORDS && !row->lane->codes; j++) {
        of(p, row->lane, codes[j], parts);
        for (unsigned i = 0; i < 2; i++) {
            w->q[i][j] = as(p, S32, parts[i][0]);
            w->q[i][STREAM_WORDS + j] = as(p, S32, parts[i][1]);
        }
    }
}

static void lane_iq4(ptx *p, stream_lane *lane)
{
    keep_table(p, table_of(iq4_values), lane->constants);
}

static void unpack_iq4_nl(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, IQ4_NL_QUANTS, first, w);
    scale_codes(p, load_half_as_f32(p, block, IQ4_NL_D), iq4_values, w);
}

static stream_weights decode_iq4_nl(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = { .d = words[SCALE] };
    look_up_piece(p, row, look_up_iq4, words + AT_LINES, &w);
    return w;
}

/* Unpacks IQ4_XS. Scale j: a nibble of byte j / 2, and bits 2j and 2j + 1 of the upper bits. */
static void unpack_iq4_xs(ptx *p, val block, val first, val w[UNPACKED])
{
    val j = shr(p, first, 5);
    load_nibbles(p, byte_at(p, block, mul(p, j, 16)), IQ4_XS_QUANTS, bit_and(p, first, 31), w);
    val low = load_packed(p, U8, byte_at(p, block, shr(p, j, 1)), IQ4_XS_SCALES_LOW);
    val high = load_packed(p, U16, block, IQ4_XS_SCALES_HIGH);
    low = bit_and(p, shr(p, low, mul(p, bit_and(p, j, 1), 4)), 15);
    high = bit_and(p, shr(p, high, mul(p, j, 2)), 3);
    val scale = sub(p, as(p, S32, bit_or(p, low, shl(p, high, 4))), 32);
    scale_codes(p, mul(p, load_half_as_f32(p, block, IQ4_XS_D), convert(p, F32, scale)), iq4_values,
                w);
}

/* Sets the shifts to lane j's scale: the low bits are bits 4j on of word 1; the upper bits are bits
 * 16 + 2j on of word 0 and move to bit 4. */
static void lane_iq4_xs(ptx *p, stream_lane *lane)
{
    lane_iq4(p, lane);
    lane->constants[SHIFT_LOW] = mul(p, lane->part, 4);
    lane->constants[SHIFT_HIGH] = mad(p, lane->part, 2, imm(U32, 12));
}

/* Decodes IQ4_XS. A number below 2^23 is converted to f32 by or'ing it into the bits of 2^23. */
static stream_weights decode_iq4_xs(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    const uint32_t two_to_23 = 0x4b000000;
    val low = shr(p, words[HEADER + 1], row->lane->constants[SHIFT_LOW]);
    val high = shr(p, words[HEADER], row->lane->constants[SHIFT_HIGH]);
    val bits = lop3(p, high, imm(U32, 0x30), imm(U32, two_to_23), AND_OR);
    bits = lop3(p, low, imm(U32, 0x0f), bits, AND_OR);
    val scale = sub(p, bits_as(p, F32, bits), 0x1p23f + 32);
    stream_weights w = { .d = mul(p, convert(p, F32, halves(p, words[HEADER]).v[0]), scale) };
    look_up_piece(p, row, look_up_iq4, words + IQ4_XS_LINES, &w);
    return w;
}

/* Loads 2^(e - 128) as f32, a subnormal number if e < 2. */
static val load_mxfp4_scale(ptx *p, val block, unsigned offset)
{
    val e = load_packed(p, U8, block, offset);
    val subnormal = shl(p, imm(U32, 0x00200000), e), normal = shl(p, sub(p, e, 1), 23);
    return bits_as(p, F32, select(p, lt(p, e, 2), subnormal, normal));
}

static void unpack_mxfp4(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, MXFP4_QUANTS, first, w);
    scale_codes(p, load_mxfp4_scale(p, block, MXFP4_E), fp4_values, w);
}

static void lane_mxfp4(ptx *p, stream_lane *lane)
{
    keep_table(p, table_of(fp4_values), lane->constants);
}

/* Decodes MXFP4. 2^(e - 128) has the bits (e - 1) << 23, or (e + 1) << 21 where e is 0 or 1 and it
 * is subnormal. As signed numbers the latter are greater there, and only there. */
static stream_weights decode_mxfp4(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    val e = as(p, S32, words[SCALE]);
    val normal = mad(p, e, 1 << 23, imm(S32, -(1 << 23)));
    val subnormal = mad(p, e, 1 << 21, imm(S32, 1 << 21));
    stream_weights w = { .d = bits_as(p, F32, max(p, normal, subnormal)) };
    look_up_piece(p, row, look_up_fp4, words + AT_LINES, &w);
    return w;
}

/* Unpacks NVFP4. A scale is half a ue4m3. Its bits are those of an fp16 with a bias of 7 instead of
 * 15: the f16 is 2^8 too small. */
static void unpack_nvfp4(ptx *p, val block, val first, val w[UNPACKED])
{
    val s = shr(p, first, 4), upper = bfe(p, first, 3, 1);
    load_fields(p, byte_at(p, block, mul(p, s, 8)), NVFP4_QUANTS, mul(p, upper, 4), 4, w);
    val code = load_packed(p, U8, byte_at(p, block, s), NVFP4_SCALES);
    val bits = select(p, eq(p, code, 0x7f), imm(U32, 0), shl(p, bit_and(p, code, 0x7f), 7));
    val half = halves(p, bits).v[0];
    scale_codes(p, mul(p, convert(p, F32, half), 128.0f), fp4_values, w);
}

enum { LARGEST = 12 }; /* largest value of the table, in halves */

/* Selects a lane's two scales as bytes of two halves, in the order of its segments. */
static void lane_nvfp4(ptx *p, stream_lane *lane)
{
    enum { TWO_BYTES = 0x4140, SWAPPED = 0x4041, SECOND_TWO = 0x0202 };
    val swapped = ne(p, bit_and(p, lane->rotation, STREAM_LANE_BYTES / 2), 0);
    lane->constants[SELECTOR] = mad(p, lane->part, imm(U32, SECOND_TWO),
                                    select(p, swapped, imm(U32, SWAPPED), imm(U32, TWO_BYTES)));
    keep_table(p, table_without_signs(fp4_values, LARGEST), lane->constants);
}

static stream_weights decode_nvfp4(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { AND_NOT_AND = 0x20, AND_AND_NOT = 0x40, BIT_7 = 0x00800080 };
    code_table table = table_without_signs(fp4_values, LARGEST);
    stream_weights w = { .d = V(128.0f) };
    /* Two ue4m3, in the low bytes of two halves, become fp16 that are 2^8 too small. 0x7f means 0.
     * The top bit is ignored, but 0xff is not 0x7f. */
    val two = prmt(p, words[SCALE], imm(U32, 0), row->lane->constants[SELECTOR]);
    val next = add(p, two, imm(U32, 0x00010001));
    val zeros = mul(p, lop3(p, next, two, imm(U32, BIT_7), AND_NOT_AND), 0x7f);
    val2 scales = halves(p, lop3(p, shl(p, two, 7), imm(U32, 0x3f803f80), zeros, AND_AND_NOT));
    for (unsigned i = 0; i < 2; i++)
        w.scale[i] = convert(p, F32, scales.v[i]);
    val codes[STREAM_WORDS], parts[2][2];
    stream_join(p, &row->shift, words + AT_LINES, codes);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        look_up(p, row->lane->constants, &table, codes[j], parts);
        for (unsigned i = 0; i < 2; i++)
            w.q[j / 2][2 * (j % 2) + i] = bit_or(p, parts[i][0], parts[i][1]);
    }
    return w;
}

/* Unpacks weights first .. first + 7 from four bytes; the first of two is in the high nibble. */
static void unpack_nf4_codes(ptx *p, val quants, unsigned offset, val first, val absmax,
                             val w[UNPACKED])
{
    static const char *const comment[] = { "The values of NF4, by code.", NULL };
    uint64_t words[CODES / 2];
    memcpy(words, nf4_values, sizeof words);
    val table = global_array(p, "nf4_values", comment, words, CODES / 2);
    val at = byte_at(p, quants, shr(p, first, 1));
    for (unsigned i = 0; i < UNPACKED; i++) {
        val byte = load_packed(p, U8, at, offset + i / 2);
        val code = i % 2 ? bit_and(p, byte, 15) : shr(p, byte, 4);
        w[i] = mul(p, absmax, ld_const(p, F32, mad_wide(p, code, F32_BYTES, table), 0));
    }
}

static val load_float(ptx *p, val block, unsigned offset)
{
    return load_packed(p, F32, block, offset);
}

static void unpack_nf4(ptx *p, val block, val first, val w[UNPACKED])
{
    unpack_nf4_codes(p, block, NF4_QUANTS, first, load_float(p, block, NF4_ABSMAX), w);
}

static void unpack_nf4_h(ptx *p, val block, val first, val w[UNPACKED])
{
    unpack_nf4_codes(p, block, NF4_H_QUANTS, first, load_half_as_f32(p, block, NF4_H_ABSMAX), w);
}

enum { NF4_LARGEST = 914, NF4_FINE = 16 /* number of values in the lower table */ };
enum { FINE = HIGH + 1 }; /* index of the lower table's constants */

/* Returns the table of the upper seven bits, or with `fine` of the lower four. */
static code_table table_of_nf4(bool fine)
{
    int8_t values[CODES];
    for (unsigned i = 0; i < CODES; i++) {
        int value = (int)lroundf(NF4_LARGEST * nf4_values[i]) + NF4_LARGEST;
        values[i] = (int8_t)(fine ? value % NF4_FINE : value / NF4_FINE);
    }
    return table_without_signs(values, 0);
}

static void lane_nf4(ptx *p, stream_lane *lane)
{
    keep_table(p, table_of_nf4(false), lane->constants);
    keep_table(p, table_of_nf4(true), lane->constants + FINE);
}

/* Decodes NF4. The nibbles of each byte are swapped, so that codes are in the order of weights. */
static stream_weights decode_nf4(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = { .d = mul(p, words[SCALE], 1.0f / NF4_LARGEST) };
    code_table tables[] = { table_of_nf4(false), table_of_nf4(true) };
    val codes[STREAM_WORDS], parts[2][2];
    stream_join(p, &row->shift, words + AT_LINES, codes);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        val in_order =
            lop3(p, IN_EACH_BYTE(0x0f), shr(p, codes[j], 4), shl(p, codes[j], 4), CHOOSE);
        for (unsigned t = 0; t < 2; t++) {
            look_up(p, row->lane->constants + (size_t)FINE * t, &tables[t], in_order, parts);
            for (unsigned i = 0; i < 2; i++)
                w.q[j / 2][STREAM_WORDS * t + 2 * (j % 2) + i] =
                    bit_or(p, parts[i][0], parts[i][1]);
        }
    }
    return w;
}

#define OF_TABLE(of)                                                                     \
    .look_up = look_up_##of, .scales = ONE_SCALE, .order = ROTATED_PAIRS, .segments = 2, \
    .unit = 1, .at_end = true

const weight_format weight_format_IQ4_NL = {
    .unpack = unpack_iq4_nl,
    .stream = { OF_TABLE(iq4), .quants = IQ4_NL_QUANTS, .lane_new = lane_iq4,
                .loads = { LOAD_AS_F32(F16, IQ4_NL_D), LOAD_PIECE }, .decode = decode_iq4_nl },
};

const weight_format weight_format_IQ4_XS = {
    .unpack = unpack_iq4_xs,
    .stream = { OF_TABLE(iq4), .quants = IQ4_XS_QUANTS, .piece = stream_piece_of_sixteen,
                .lane_new = lane_iq4_xs,
                .loads = { LOAD_WORDS(2, FROM_BLOCK, IQ4_XS_D), LOAD_PIECE },
                .decode = decode_iq4_xs },
};

const weight_format weight_format_MXFP4 = {
    .unpack = unpack_mxfp4,
    .stream = { OF_TABLE(fp4), .quants = MXFP4_QUANTS, .lane_new = lane_mxfp4,
                .loads = { LOAD(U8, FROM_BLOCK, MXFP4_E), LOAD_PIECE }, .decode = decode_mxfp4 },
    .beyond_f16 = true,
    .largest = { load_mxfp4_scale, MXFP4_E, 12 },
};

const weight_format weight_format_NVFP4 = {
    .unpack = unpack_nvfp4,
    .stream = { .scales = SCALES,
                .order = EIGHTS,
                .offset = -LARGEST,
                .segments = 2,
                .at_end = true,
                .quants = NVFP4_QUANTS,
                .piece = stream_piece_of_sixteen,
                .lane_new = lane_nvfp4,
                .loads = { LOAD(U32, FROM_BLOCK, NVFP4_SCALES), LOAD_PIECE },
                .decode = decode_nvfp4 },
};

#define OF_NF4                                                                                    \
    .scales = SCALES, .order = IN_ORDER, .offset = -NF4_LARGEST, .segments = 2, .unit = NF4_FINE, \
    .at_end = true, .piece = stream_piece_of_sixteen, .lane_new = lane_nf4, .decode = decode_nf4

const weight_format weight_format_NF4 = {
    .unpack = unpack_nf4,
    .stream = { OF_NF4, .quants = NF4_QUANTS,
                .loads = { LOAD(F32, FROM_BLOCK, NF4_ABSMAX), LOAD_PIECE } },
    .beyond_f16 = true,
    .largest = { load_float, NF4_ABSMAX, 1 },
};

const weight_format weight_format_NF4_H = {
    .unpack = unpack_nf4_h,
    .stream = { OF_NF4, .quants = NF4_H_QUANTS,
                .loads = { LOAD_AS_F32(F16, NF4_H_ABSMAX), LOAD_PIECE } },
    .beyond_f16 = true,
    .largest = { load_half_as_f32, NF4_H_ABSMAX, 1 },
};
