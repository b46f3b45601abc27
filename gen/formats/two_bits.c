/* Q2_K, Q3_K and TQ2_0: super-blocks of 256 two-bit quants. Fields are drawn in src/ref/decode_k.c.
 *
 *   Q2_K    0 16 x u8 scales and mins   16 64 x u8 quants   80 f16 d   82 f16 dmin        84 bytes
 *   Q3_K    0 32 x u8 third bits   32 64 x u8 quants   96 12 x u8 scales   108 f16 d     110 bytes
 *   TQ2_0   0 64 x u8 quants   64 f16 d                                                   66 bytes
 *
 * Streaming, four lanes share a super-block. Lane 2h + l loads 16 of the 32 bytes of half h. Bits
 * 2g and 2g + 1 of each byte belong to segment g of the lane. They are not shifted, so the quants
 * of segment g are 4^g too large. */
#include "gen/formats/tools.h"

enum { GROUPS = 4, ONE_BYTE = 0x1111 };

static void two_bits(ptx *p, const val words[STREAM_WORDS], stream_weights *w)
{
    for (unsigned i = 0; i < GROUPS; i++)
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            w->q[i][j] = bit_and(p, words[j], IN_EACH_BYTE(3 << 2 * i));
}

static void unpack_q2_k(ptx *p, val block, val first, val w[UNPACKED])
{
    load_two_bits(p, block, Q2_K_QUANTS, first, w);
    val both = load_packed(p, U8, byte_at(p, block, shr(p, first, 4)), Q2_K_SCALES);
    val scale = convert(p, F32, bit_and(p, both, 15)), min = convert(p, F32, shr(p, both, 4));
    scale_and_add(p, mul(p, load_half_as_f32(p, block, Q2_K_D), scale),
                  neg(p, mul(p, load_half_as_f32(p, block, Q2_K_DMIN), min)), w);
}

/* Q2_K. A lane owns every second of the eight bytes of scales and mins of its half. */
enum { Q2_K_AT_LINES, Q2_K_AT_SCALES = STREAM_LINES, Q2_K_AT_D = Q2_K_AT_SCALES + 2 };

static void lane_q2_k(ptx *p, stream_lane *lane)
{
    enum { EVEN_BYTES = 0x6420 };
    lane->constants[0] = mad(p, part_sixteen(p, lane->part), ONE_BYTE, imm(U32, EVEN_BYTES));
}

static void row_q2_k(ptx *p, stream_row *row)
{
    val scales = mul(p, part_half(p, row->lane->part), (Q2_K_QUANTS - Q2_K_SCALES) / 2);
    row->at[0] = add(p, row->block, convert(p, U64, scales));
    row->at[1] = stream_other_line(p, row->lines);
}

static stream_weights decode_q2_k(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    val2 d = halves(p, words[Q2_K_AT_D]);
    stream_weights w = { .d = convert(p, F32, d.v[0]), .dmin = convert(p, F32, d.v[1]) };
    val both = prmt(p, words[Q2_K_AT_SCALES], words[Q2_K_AT_SCALES + 1], row->lane->constants[0]);
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

/* Unpacks Q3_K. Scale k of 16: four bits in byte k % 8, two in byte 8 + k % 4. */
static void unpack_q3_k(ptx *p, val block, val first, val w[UNPACKED])
{
    load_two_bits(p, block, Q3_K_QUANTS, first, w);
    add_one_bits(p, block, Q3_K_HIGH_BITS, first, 2, w);
    val k = shr(p, first, 4);
    val low = load_packed(p, U8, byte_at(p, block, bit_and(p, k, 7)), Q3_K_SCALES);
    val high = load_packed(p, U8, byte_at(p, block, bit_and(p, k, 3)), Q3_K_SCALES + 8);
    low = bit_and(p, shr(p, low, mul(p, shr(p, k, 3), 4)), 15);
    high = bit_and(p, shr(p, high, mul(p, shr(p, k, 2), 2)), 3);
    val scale = sub(p, as(p, S32, bit_or(p, low, shl(p, high, 4))), 32);
    scale_integers(p, mul(p, load_half_as_f32(p, block, Q3_K_D), convert(p, F32, scale)), -4, w);
}

/* Q3_K. The third bits of all eight groups of 32 weights are in the first 32 bytes; half h has bits
 * 4h to 4h + 3. A rotation and at most one shift move each third bit above its quants. For that,
 * the quants of groups 2 and 3 are shifted right by two:
 *
 *   group 0   bits 0 and 1               third bit 4h      becomes bit 2
 *   group 1   bits 2 and 3               third bit 4h + 1  becomes bit 4
 *   group 2   bits 4 and 5 to 2 and 3    third bit 4h + 2  becomes bit 4
 *   group 3   bits 6 and 7 to 4 and 5    third bit 4h + 3  becomes bit 6
 *
 * A lane's scales are every second byte of the scales, from byte l on. Of the first four it uses
 * nibble h. The other two serve both pairs of groups: bits from 4h, or from 4h + 2. Scales and d
 * are in four aligned words; the last may end two bytes past the block. */
enum { Q3_K_AT_LINES, Q3_K_AT_HIGH = STREAM_LINES, Q3_K_AT_WORDS = 2 * STREAM_LINES };
enum { EVERY_SECOND, SHIFT_OF_D };                           /* constants of a row */
enum { Q3_K_HIGH, Q3_K_WORDS, Q3_K_OTHER, Q3_K_HIGH_OTHER }; /* pointers */

static void lane_q3_k(ptx *p, stream_lane *lane)
{
    val first_bit = mul(p, part_half(p, lane->part), 4);
    lane->constants[0] = bit_and(p, sub(p, imm(U32, 2), first_bit), 31);
}

static void row_q3_k(ptx *p, stream_row *row)
{
    enum { FROM_BYTE_0 = 0x2020 };
    val half = part_half(p, row->lane->part);
    val distance = mad(p, half, 32, imm(U32, Q3_K_QUANTS - Q3_K_HIGH_BITS));
    row->at[Q3_K_HIGH] = sub(p, row->lines, convert(p, U64, distance));
    row->at[Q3_K_OTHER] = stream_other_line(p, row->lines);
    row->at[Q3_K_HIGH_OTHER] = stream_other_line(p, row->at[Q3_K_HIGH]);
    val misaligned = bit_and(p, row->start, 3);
    row->at[Q3_K_WORDS] = sub(p, row->block, convert(p, U64, misaligned));
    val first = add(p, misaligned, part_sixteen(p, row->lane->part));
    row->constants[EVERY_SECOND] = mad(p, first, ONE_BYTE, imm(U32, FROM_BYTE_0));
    row->constants[SHIFT_OF_D] = mul(p, misaligned, 8);
}

/* Returns the signed scales times four, as bytes: six bits at the top, with the top bit flipped. */
static val scales_q3_k(ptx *p, val rotation, val selector, const val words[4])
{
    enum { LOW_HALVES = 0x5410 };
    val low = prmt(p, prmt(p, words[0], words[1], selector), prmt(p, words[1], words[2], selector),
                   LOW_HALVES);
    val high = rotate(p, prmt(p, words[2], words[3], selector), rotation);
    val scales = lop3(p, shl(p, high, 4), imm(U32, 0x0000c0c0), IN_EACH_BYTE(0x80), AND_XOR);
    scales = lop3(p, shl(p, high, 2), imm(U32, 0xc0c00000), scales, AND_XOR);
    return lop3(p, rotate(p, low, rotation), IN_EACH_BYTE(0x3c), scales, AND_OR);
}

static stream_weights decode_q3_k(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    val to_two = row->lane->constants[0];
    val d = shr(p, words[Q3_K_AT_WORDS + 3], row->constants[SHIFT_OF_D]);
    val scales = scales_q3_k(p, to_two, row->constants[EVERY_SECOND], words + Q3_K_AT_WORDS);
    stream_weights w = { .d = mul(p, convert(p, F32, halves(p, d).v[0]), 0.25f) };
    for (unsigned i = 0; i < GROUPS; i++)
        w.scale[i] = signed_byte_as_f32(p, scales, i);
    val quants[STREAM_WORDS], high[STREAM_WORDS];
    stream_join(p, &row->shift, words + Q3_K_AT_LINES, quants);
    stream_join(p, &row->shift, words + Q3_K_AT_HIGH, high);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        val two = rotate(p, high[j], to_two);
        val three = shl(p, two, 1);
        val lower = shr(p, quants[j], 2);
        w.q[0][j] =
            lop3(p, quants[j], IN_EACH_BYTE(0x03), bit_and(p, two, IN_EACH_BYTE(0x04)), AND_OR);
        w.q[1][j] =
            lop3(p, quants[j], IN_EACH_BYTE(0x0c), bit_and(p, three, IN_EACH_BYTE(0x10)), AND_OR);
        w.q[2][j] = lop3(p, lower, IN_EACH_BYTE(0x0c), bit_and(p, two, IN_EACH_BYTE(0x10)), AND_OR);
        w.q[3][j] =
            lop3(p, lower, IN_EACH_BYTE(0x30), bit_and(p, three, IN_EACH_BYTE(0x40)), AND_OR);
    }
    return w;
}

static void unpack_tq2_0(ptx *p, val block, val first, val w[UNPACKED])
{
    load_two_bits(p, block, TQ2_0_QUANTS, first, w);
    scale_integers(p, load_half_as_f32(p, block, TQ2_0_D), -1, w);
}

enum { TQ2_0_AT_LINES, TQ2_0_AT_D = STREAM_LINES };

static stream_weights decode_tq2_0(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = { .d = convert(p, F32, words[TQ2_0_AT_D]) };
    val quants[STREAM_WORDS];
    stream_join(p, &row->shift, words + TQ2_0_AT_LINES, quants);
    two_bits(p, quants, &w);
    return w;
}

/* Segment 8h + 2g + l of a super-block belongs to lane 2h + l. */
#define OF_HALVES .scales = SCALES, .segments = 4, .index_bit = 1, .piece = stream_piece_of_sixteen

const weight_format weight_format_Q2_K = {
    .unpack = unpack_q2_k,
    .stream = { OF_HALVES, .minima = true, .up = { 0, 2, 4, 6 }, .quants = Q2_K_QUANTS,
                .swaps = true, .lane_new = lane_q2_k, .row_new = row_q2_k,
                .loads = { LOAD_SWAPPED(1), LOAD(U32, 0, Q2_K_SCALES),
                           LOAD(U32, 0, Q2_K_SCALES + 4), LOAD(U32, FROM_BLOCK, Q2_K_D) },
                .decode = decode_q2_k },
};

const weight_format weight_format_Q3_K = {
    .unpack = unpack_q3_k,
    .stream = { OF_HALVES, .offset = -4, .up = { 0, 2, 2, 4 }, .quants = Q3_K_QUANTS,
                .lane_new = lane_q3_k, .row_new = row_q3_k, .swaps = true,
                .loads = { LOAD_SWAPPED(Q3_K_OTHER), LOAD_WORDS(STREAM_WORDS, Q3_K_HIGH, 0),
                           LOAD_WORDS(STREAM_WORDS, Q3_K_HIGH_OTHER, 0),
                           LOAD(U32, Q3_K_WORDS, Q3_K_SCALES),
                           LOAD(U32, Q3_K_WORDS, Q3_K_SCALES + 4),
                           LOAD(U32, Q3_K_WORDS, Q3_K_SCALES + 8),
                           LOAD(U32, Q3_K_WORDS, Q3_K_SCALES + 12) },
                .decode = decode_q3_k },
};

const weight_format weight_format_TQ2_0 = {
    .unpack = unpack_tq2_0,
    .stream = { OF_HALVES, .offset = -1, .up = { 0, 2, 4, 6 }, .quants = TQ2_0_QUANTS,
                .loads = { LOAD_PIECE, LOAD(F16, FROM_BLOCK, TQ2_0_D) }, .decode = decode_tq2_0 },
};
