/* TQ1_0: 256 weights of three values in 54 bytes (src/ref/decode_k.c).
 *
 *   offset  0  32 x u8   byte i: weights i, 32 + i .. 128 + i, one trit each
 *          32  16 x u8   byte i: weights 160 + i, 176 + i .. 224 + i
 *          48  4 x u8    byte i: weights 240 + i, 244 + i .. 252 + i
 *          52  f16 d     weight = d * (trit - 1)
 *
 * Streaming, four lanes share a super-block, CROSSWISE. Lane l has word l of each 16 bytes of five
 * trits: weights 0 to 15 of each 32 (segments 0, 2 .. 8), 16 to 31 (segments 1, 3 .. 9), and the
 * last sixteens (segments 10 .. 14). From the last word it takes the trits l, which are word l of
 * segment 15.
 *
 * A byte is 256 times the fraction 0.t0 t1 .. t4 in base 3. Multiplied by 3^n, its upper byte is
 * the integer part: the number t0 .. t(n-1). The next integer part minus three times this one is
 * t(n). A word multiplies two bytes; the differences are at most 2, so one mad computes four of
 * them. */
#include "gen/formats/tools.h"

enum { TRITS = 5, PIECES = 3, LANES = 4, LAST_SEGMENT = 15 };
enum {
    AT_PIECES,
    AT_LAST = PIECES,
    OTHER = AT_LAST + 1
};                          /* loaded words; the word next to one is OTHER further */
enum { WORDS, LAST_WORDS }; /* pointers */
enum { JOIN, SHIFT_OF_D };  /* constants of a row */
enum { POWER, NEXT_POWER }; /* constants of a lane */

static void lane_new(ptx *p, stream_lane *lane)
{
    enum { POWERS = 0x1b090301, LAST_POWER = 0x51 };
    val next = add(p, lane->part, 1);
    lane->constants[POWER] = bit_and(p, prmt(p, imm(U32, POWERS), imm(U32, 0), lane->part), 0xff);
    lane->constants[NEXT_POWER] =
        bit_and(p, prmt(p, imm(U32, POWERS), imm(U32, LAST_POWER), next), 0xff);
}

/* If a block starts 2 bytes past a multiple of 4, its words straddle two aligned words. */
static void row_new(ptx *p, stream_row *row)
{
    enum { AS_IS = 0x3210, ONE_BYTE = 0x1111 };
    val misaligned = bit_and(p, row->start, 3);
    row->at[LAST_WORDS] = sub(p, row->block, convert(p, U64, misaligned));
    row->at[WORDS] = add(p, row->at[LAST_WORDS], convert(p, U64, mul(p, row->lane->part, 4)));
    row->constants[JOIN] = mad(p, misaligned, ONE_BYTE, imm(U32, AS_IS));
    row->constants[SHIFT_OF_D] = mul(p, misaligned, 8);
}

/* Bytes 0 and 2 of a word, and bytes 1 and 3, each in the low byte of a half. */
typedef struct two_by_two {
    val even, odd;
} two_by_two;

static two_by_two split(ptx *p, val word)
{
    enum { ODD_BYTES = 0x4341 };
    return (two_by_two){ bit_and(p, word, 0x00ff00ff), prmt(p, word, imm(U32, 0), ODD_BYTES) };
}

/* Returns the integer parts of four bytes times a power of three. */
static val whole_parts(ptx *p, const two_by_two *bytes, val power)
{
    enum { UPPER_BYTES = 0x7351 };
    return prmt(p, mul(p, bytes->even, power), mul(p, bytes->odd, power), UPPER_BYTES);
}

static val trits_between(ptx *p, val parts, val next_parts)
{
    return mad(p, parts, imm(U32, -3), next_parts);
}

static stream_weights decode(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    static const unsigned powers[] = { 3, 9, 27, 81, 243 };
    static const unsigned first_segment[] = { 0, 1, 10 }, every[] = { 2, 2, 1 };
    val join = row->constants[JOIN];
    val d = shr(p, words[AT_LAST + OTHER], row->constants[SHIFT_OF_D]);
    stream_weights w = { .d = convert(p, F32, halves(p, d).v[0]) };
    for (unsigned i = 0; i < PIECES; i++) {
        const val *piece = words + AT_PIECES + i;
        two_by_two bytes = split(p, prmt(p, piece[0], piece[OTHER], join));
        val parts = imm(U32, 0);
        for (unsigned n = 0; n < TRITS; n++) {
            unsigned segment = first_segment[i] + n * every[i];
            val next = whole_parts(p, &bytes, imm(U32, powers[n]));
            w.q[segment / STREAM_WORDS][segment % STREAM_WORDS] =
                n ? trits_between(p, parts, next) : next;
            parts = next;
        }
    }
    two_by_two last = split(p, prmt(p, words[AT_LAST], words[AT_LAST + OTHER], join));
    val parts = whole_parts(p, &last, row->lane->constants[POWER]);
    w.q[LAST_SEGMENT / STREAM_WORDS][LAST_SEGMENT % STREAM_WORDS] =
        trits_between(p, parts, whole_parts(p, &last, row->lane->constants[NEXT_POWER]));
    return w;
}

/* Unpacks TQ1_0. Trit n of a byte: multiply by 3^n, keep eight bits, multiply by 3, take bits above
 * 255. Eight of the last 16 weights are two trits of four bytes, others one trit of eight bytes. */
static void unpack_tq1_0(ptx *p, val block, val first, val w[UNPACKED])
{
    enum { FIRST_SIXTEENS = 160, LAST = 240, POWERS = 0x1b090301, LAST_POWER = 0x51 };
    val of_32 = lt(p, first, FIRST_SIXTEENS), is_last = ge(p, first, LAST);
    val byte = select(p, of_32, bit_and(p, first, 31), add(p, bit_and(p, first, 15), 32));
    val trit = select(p, of_32, shr(p, first, 5), shr(p, sub(p, first, FIRST_SIXTEENS), 4));
    byte = select(p, is_last, imm(U32, TQ1_0_LAST_QUANTS), byte);
    trit = select(p, is_last, shr(p, sub(p, first, LAST), 2), trit);
    val d = load_half_as_f32(p, block, TQ1_0_D);
    for (int half = 0; half < 2; half++) {
        val at = byte_at(p, block, byte);
        val power = prmt(p, imm(U32, POWERS), imm(U32, LAST_POWER), trit);
        for (int i = 0; i < UNPACKED / 2; i++) {
            val fraction =
                bit_and(p, mul(p, load_packed(p, U8, at, TQ1_0_QUANTS + i), power), 0xff);
            w[UNPACKED / 2 * half + i] = shr(p, mul(p, fraction, 3), 8);
        }
        byte = select(p, is_last, byte, add(p, byte, 4));
        trit = select(p, is_last, add(p, trit, 1), trit);
    }
    scale_integers(p, d, -1, w);
}

/* Loads of the first (i = 0) or second aligned word around each of a lane's words. */
#define LOAD_OF_WORD(i)                                                   \
    LOAD(U32, WORDS, TQ1_0_QUANTS + 4 * (i)),                             \
        LOAD(U32, WORDS, TQ1_0_QUANTS + STREAM_LANE_BYTES + 4 * (i)),     \
        LOAD(U32, WORDS, TQ1_0_QUANTS + 2 * STREAM_LANE_BYTES + 4 * (i)), \
        LOAD(U32, LAST_WORDS, TQ1_0_LAST_QUANTS + 4 * (i))

const weight_format weight_format_TQ1_0 = {
    .unpack = unpack_tq1_0,
    .stream = { .scales = SCALES,
                .order = CROSSWISE,
                .offset = -1,
                .segments = 4,
                .lane_new = lane_new,
                .row_new = row_new,
                .loads = { LOAD_OF_WORD(0), LOAD_OF_WORD(1) },
                .decode = decode },
};
