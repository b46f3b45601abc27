/* Q6_K: 256 weights of six bits in 210 bytes (src/ref/decode_k.c).
 *
 *   offset   0  128 x u8   low nibbles: byte 64h + 32(g & 1) + l; low nibble if g < 2, else high
 *          128  64 x u8    upper bits: bits 2g and 2g + 1 of byte 32h + l
 *          192  16 x s8    scales                              index = 128h + 32g + l
 *          208  f16 d      weight = d * scale[index / 16] * (q - 32)
 *
 * Streaming, four lanes share a super-block. Lane 2h + l owns 64 weights: half h of the block, and
 * the lower (l = 0) or upper 16 of each 32 bytes. It loads two pieces of nibbles, 32 bytes apart,
 * and one piece of upper bits. Group g uses the low or high nibbles of the first (g = 0, 2) or
 * second piece (g = 1, 3). The upper bits of groups 2 and 3 are not shifted. */
#include <string.h>

#include "gen/formats/tools.h"

enum { GROUPS = 4, HALF_BYTES = 64, SECOND = 32 };
enum { HIGH, SCALES_AT, OTHER, HIGH_OTHER }; /* pointers */
/* Loaded words. */
enum {
    AT_LOW,
    AT_HIGH = 2 * STREAM_LINES,
    AT_SCALE = AT_HIGH + STREAM_LINES,
    AT_D = AT_SCALE + GROUPS
};

static val piece(ptx *p, val part)
{
    return mad(p, part_half(p, part), HALF_BYTES, mul(p, part_sixteen(p, part), STREAM_LANE_BYTES));
}

/* The pieces of upper bits are half as far apart as the nibbles': 32 bytes less per half h. */
static void row_new(ptx *p, stream_row *row)
{
    val half = part_half(p, row->lane->part);
    val high = sub(p, imm(U32, Q6_K_HIGH_BITS), mul(p, half, HALF_BYTES / 2));
    row->at[HIGH] = add(p, row->lines, convert(p, U64, high));
    row->at[OTHER] = stream_other_line(p, row->lines);
    row->at[HIGH_OTHER] = stream_other_line(p, row->at[HIGH]);
    val scale = mad(p, half, 2 * GROUPS, part_sixteen(p, row->lane->part));
    row->at[SCALES_AT] = add(p, row->block, convert(p, U64, scale));
}

/* Sets the pointers, less constant offsets: of other lines 16, of upper bits' Q6_K_HIGH_BITS.
 * Scales are of segments 2l and 2l + 1 of both lanes of a half. */
static void row_of_halves(ptx *p, stream_row *row)
{
    val part = row->lane->part, half = part_half(p, part), odd = bit_and(p, lane_id(p), 1);
    val before[] = { [HIGH] = half, [OTHER] = odd, [HIGH_OTHER] = add(p, half, odd) };
    for (unsigned i = HIGH; i <= HIGH_OTHER; i++)
        if (before[i].kind) /* 32 bytes times a number */
            row->at[i] = as(
                p, U64,
                mad_wide(p, as(p, S32, before[i]), -2 * STREAM_LANE_BYTES, as(p, S64, row->lines)));
    row->at[SCALES_AT] = mad_wide(p, part, GROUPS, row->block);
}

/* Decodes d, and joins two words of nibbles and one of upper bits. */
static stream_weights decode_words(ptx *p, const stream_row *row, const val words[STREAM_LOADED],
                                   val low[2][STREAM_WORDS], val high[STREAM_WORDS])
{
    stream_weights w = { .d = convert(p, F32, words[AT_D]) };
    for (unsigned i = 0; i < 2; i++)
        stream_join(p, &row->shift, words + AT_LOW + i * STREAM_LINES, low[i]);
    stream_join(p, &row->shift, words + AT_HIGH, high);
    return w;
}

static stream_weights decode(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    val low[2][STREAM_WORDS], high[STREAM_WORDS];
    stream_weights w = decode_words(p, row, words, low, high);
    for (unsigned i = 0; i < GROUPS; i++)
        w.scale[i] = convert(p, F32, words[AT_SCALE + i]);
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

/* Decodes to signed bytes, 4 (q - 32): the six bits are the upper ones of a byte, the first
 * flipped. Upper bits of even groups are apart from those of odd groups: a shift then leaves bits 0
 * and 1 clear. */
static stream_weights decode_signed(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { UP = 2, TOP = 6 };
    val low[2][STREAM_WORDS], high[STREAM_WORDS];
    stream_weights w = decode_words(p, row, words, low, high);
    memcpy(w.scale, words + AT_SCALE, sizeof w.scale);
    for (unsigned j = 0; j < STREAM_WORDS; j++)
        for (unsigned g = 0; g < GROUPS; g++) {
            val nibbles = low[g % 2][j], upper = high[j];
            nibbles = g < 2 ? shl(p, nibbles, UP) : shr(p, nibbles, 4 - UP);
            upper = lop3(p, upper, imm(U32, 0x33333333u << g % 2 * 2),
                         imm(U32, 0x22222222u << g % 2 * 2), AND_XOR);
            upper = g < 3 ? shl(p, upper, TOP - 2 * g) : upper;
            w.q[g][j] = as(p, S32, lop3(p, IN_EACH_BYTE(0x3c), nibbles, upper, CHOOSE));
        }
    return w;
}

/* Q6_K: the four steps of half a block share the bytes of upper bits, and two of them the nibbles.
 * A thread keeps the nibbles of the even and the odd step, then the upper bits, and d. */
enum { Q6K_HIGH = 2 * GEMM_OWN_WORDS, Q6K_SCALE = 3 * GEMM_OWN_WORDS };

static void gemm_begin(ptx *p, gemm_row *row)
{
    row->kept[Q6K_SCALE] = load_half_as_f32(p, row->at, Q6_K_D);
}

static void gemm_step(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2])
{
    (void)valid; /* always GEMM_STEP */
    enum { HALF_STEPS = 4 /* steps that share the bytes of upper bits */, CENTER = 32 };
    unsigned half = step / HALF_STEPS, quarter = step % HALF_STEPS, of_low = quarter % 2;
    bool high = quarter >= 2;
    val *low = row->kept + of_low * GEMM_OWN_WORDS;
    if (!high)
        gemm_load_words(p, row, Q6_K_QUANTS + half * HALF_BYTES + of_low * GEMM_STEP, low);
    if (!quarter)
        gemm_load_words(p, row, Q6_K_HIGH_BITS + half * HALF_BYTES / 2, row->kept + Q6K_HIGH);
    val scale =
        convert(p, F32, ld_shared(p, S8, add(p, row->at, row->half), Q6_K_SCALES + 2 * step));
    val factor = both_halves(p, mul(p, row->kept[Q6K_SCALE], scale));
    /* Quarters 0 and 1 shift the upper bits to the nibbles; quarters 2 and 3 do the reverse. */
    unsigned up = quarter == 3 ? 2 : 0;
    for (unsigned i = 0; i < GEMM_OWN_WORDS; i++) {
        val upper = row->kept[Q6K_HIGH + i];
        val lower = high ? shr(p, low[i], 4 - up) : low[i];
        upper = high ? upper : shl(p, upper, 4 - 2 * quarter);
        val bytes = lop3(p, IN_EACH_BYTE(0xf << up), lower, upper, CHOOSE);
        for (unsigned odd = 0; odd < 2; odd++) {
            val pair = lop3(p, odd ? shr(p, bytes, 8) : bytes, PAIR_OF(0x3f << up),
                            PAIR_OF(HALF_1024), AND_OR);
            words[2 * i + odd] = mul_pair(p, pair_centred(p, pair, up, CENTER), factor);
        }
    }
}

/* Unpacks by the layout above: nibbles, then upper bits as two-bit values. */
static void unpack_q6_k(ptx *p, val block, val first, val w[UNPACKED])
{
    val h = shr(p, first, 7), g = bfe(p, first, 5, 2), l = bit_and(p, first, 31), upper[UNPACKED];
    val low = mad(p, h, 64, mad(p, bit_and(p, g, 1), 32, l));
    load_fields(p, byte_at(p, block, low), Q6_K_QUANTS, mul(p, shr(p, g, 1), 4), 4, w);
    load_two_bits(p, block, Q6_K_HIGH_BITS, first, upper);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = bit_or(p, w[i], shl(p, upper[i], 4));
    val at = byte_at(p, block, shr(p, first, 4));
    val scale = convert(p, F32, load_packed(p, S8, at, Q6_K_SCALES));
    scale_integers(p, mul(p, load_half_as_f32(p, block, Q6_K_D), scale), -32, w);
}

#define LOAD_SCALE(at) LOAD(S8, SCALES_AT, Q6_K_SCALES + (at))

/* Segment 8h + 2g + l of a super-block belongs to lane 2h + l. */
#define OF_STREAM(apart, other, high)                                                       \
    .scales = SCALES, .segments = 4, .index_bit = 1, .quants = Q6_K_QUANTS, .piece = piece, \
    .swaps = true,                                                                          \
    .loads = { LOAD_WORDS(STREAM_WORDS, FROM_LINES, 0),                                     \
               LOAD_WORDS(STREAM_WORDS, OTHER, other),                                      \
               LOAD_WORDS(STREAM_WORDS, FROM_LINES, SECOND),                                \
               LOAD_WORDS(STREAM_WORDS, OTHER, SECOND + (other)),                           \
               LOAD_WORDS(STREAM_WORDS, HIGH, high),                                        \
               LOAD_WORDS(STREAM_WORDS, HIGH_OTHER, (high) + (other)),                      \
               LOAD_SCALE(0),                                                               \
               LOAD_SCALE(apart),                                                           \
               LOAD_SCALE(2 * (apart)),                                                     \
               LOAD_SCALE(3 * (apart)),                                                     \
               LOAD(F16, FROM_BLOCK, Q6_K_D) }

static const stream_format signed_stream = { OF_STREAM(1, STREAM_LANE_BYTES, Q6_K_HIGH_BITS),
                                             .up = { 2, 2, 2, 2 }, .row_new = row_of_halves,
                                             .halves = true, .decode = decode_signed };

const weight_format weight_format_Q6_K = {
    .unpack = unpack_q6_k,
    .stream = { OF_STREAM(2, 0, 0), .offset = -32, .up = { 0, 0, 0, 2 }, .row_new = row_new,
                .decode = decode },
    .tensor_stream = &signed_stream,
    .gemm = { .apart = true, .begin = gemm_begin, .step = gemm_step },
};
