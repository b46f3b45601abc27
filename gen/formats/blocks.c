/* Q8_0, Q5_0, Q4_0, Q5_1 and Q4_1: blocks of 32 weights (src/ref/decode_blocks.c).
 *
 *   Q8_0   0 f16 d   2 32 x s8 q                                        w = d q           34 bytes
 *   Q4_0   0 f16 d   2 16 x u8 nibbles                                  w = d (q - 8)     18 bytes
 *   Q4_1   0 f16 d   2 f16 min   4 16 x u8 nibbles                      w = d q + min     20 bytes
 *   Q5_0   0 f16 d   2 u32 fifth bits   6 16 x u8 nibbles               w = d (q - 16)    22 bytes
 *   Q5_1   0 f16 d   2 f16 min   4 u32 fifth bits   8 16 x u8 nibbles   w = d q + min     24 bytes
 *
 * Streaming, a lane owns one block. */
#include "gen/formats/tools.h"

/* Adds the fifth bits of eight values: bit i of the u32 belongs to value i. */
static void add_fifth_bits(ptx *p, val block, unsigned offset, val first, val w[UNPACKED])
{
    val bits = load_packed(p, U8, byte_at(p, block, shr(p, first, 3)), offset);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = bit_or(p, w[i], shl(p, bfe(p, bits, i, 1), 4));
}

static void unpack_q4_0(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, Q4_0_QUANTS, first, w);
    scale_integers(p, load_half_as_f32(p, block, Q4_0_D), -8, w);
}

static void unpack_q4_1(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, Q4_1_QUANTS, first, w);
    scale_and_add(p, load_half_as_f32(p, block, Q4_1_D), load_half_as_f32(p, block, Q4_1_MIN), w);
}

static void unpack_q5_0(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, Q5_0_QUANTS, first, w);
    add_fifth_bits(p, block, Q5_0_FIFTH_BITS, first, w);
    scale_integers(p, load_half_as_f32(p, block, Q5_0_D), -16, w);
}

static void unpack_q5_1(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, Q5_1_QUANTS, first, w);
    add_fifth_bits(p, block, Q5_1_FIFTH_BITS, first, w);
    scale_and_add(p, load_half_as_f32(p, block, Q5_1_D), load_half_as_f32(p, block, Q5_1_MIN), w);
}

static void unpack_q8_0(ptx *p, val block, val first, val w[UNPACKED])
{
    val at = byte_at(p, block, first);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = load_packed(p, S8, at, Q8_0_QUANTS + i);
    scale_integers(p, load_half_as_f32(p, block, Q8_0_D), 0, w);
}

/* Indices of loaded words. */
enum { D, AT_LINES, BYTE_WORDS = 3 * STREAM_WORDS };
enum { LOW_FIFTHS = D + 1, Q5_0_LINES = LOW_FIFTHS + 2 };
enum { D_AND_MIN, FIFTHS, Q5_1_LINES };

static stream_weights decode_q8_0(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = { .d = words[D] };
    for (unsigned i = 0; i < 2; i++) {
        stream_join(p, &row->shift, words + AT_LINES + i * STREAM_WORDS, w.q[i]);
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            w.q[i][j] = as(p, S32, w.q[i][j]);
    }
    return w;
}

/* Splits a piece of nibbles into two segments. The high nibbles are not shifted down. */
static void decode_nibbles(ptx *p, const stream_row *row, const val *lines, stream_weights *w)
{
    val nibbles[STREAM_WORDS];
    stream_join(p, &row->shift, lines, nibbles);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        w->q[0][j] = bit_and(p, nibbles[j], IN_EACH_BYTE(0x0f));
        w->q[1][j] = bit_and(p, nibbles[j], IN_EACH_BYTE(0xf0));
    }
}

static stream_weights decode_q4_0(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = { .d = words[D] };
    decode_nibbles(p, row, words + AT_LINES, &w);
    return w;
}

static stream_weights with_minimum(ptx *p, val d_and_min)
{
    val2 both = halves(p, d_and_min);
    return (stream_weights){ .d = convert(p, F32, both.v[0]), .dmin = convert(p, F32, both.v[1]) };
}

static stream_weights decode_q4_1(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = with_minimum(p, words[D_AND_MIN]);
    decode_nibbles(p, row, words + AT_LINES, &w);
    return w;
}

/* Returns the fifth bits of word j of a segment, at bit 4 of each byte. They are four bits of
 * `bits` from bit 4j on; j % 2 chooses a half of its low byte. Multiplied by `ones`, bit i of the
 * four moves to bit 8i + 4, and other bits are masked. The upper half needs ones / 16. */
static val fifth_bits(ptx *p, val bits, unsigned j)
{
    const unsigned ones = 0x02040810;
    val four = bit_and(p, bits, j % 2 ? 0xf0 : 0x0f);
    return bit_and(p, mul(p, four, imm(U32, j % 2 ? ones / 16 : ones)), IN_EACH_BYTE(0x10));
}

static stream_weights decode_q5_0(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    enum { TWICE = 0x10001 };
    stream_weights w = { .d = words[D] };
    val word[STREAM_WORDS], nibbles = IN_EACH_BYTE(0x0f);
    stream_join(p, &row->shift, words + Q5_0_LINES, word);
    for (unsigned i = 0; i < 2; i++) {
        val twice = mul(p, words[LOW_FIFTHS + i], TWICE);
        for (unsigned j = 0; j < STREAM_WORDS; j++) {
            val rotated = rotate(p, twice, row->lane->constants[j / 2]);
            val low = i ? shr(p, word[j], 4) : word[j];
            w.q[i][j] = lop3(p, low, nibbles, fifth_bits(p, rotated, j), AND_OR);
        }
    }
    return w;
}

static void lane_q5_0(ptx *p, stream_lane *lane)
{
    lane->constants[0] = lane->rotation;
    lane->constants[1] = add(p, lane->rotation, 8); /* moves the upper bits down */
}

static void row_swapped(ptx *p, stream_row *row)
{
    row->at[0] = stream_other_line(p, row->lines);
}

/* Swaps the masked bits of a word with the bits at a distance above them. */
static val swap_bits(ptx *p, val word, unsigned distance, unsigned mask)
{
    val differ = lop3(p, word, shr(p, word, distance), imm(U32, mask), XOR_AND);
    return lop3(p, word, differ, shl(p, differ, distance), XOR_XOR);
}

/* Decodes Q5_1. High nibbles stay two bits up, as their fifth bits do: one shift serves both. */
static stream_weights decode_q5_1(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = with_minimum(p, words[D_AND_MIN]);
    val word[STREAM_WORDS];
    stream_join(p, &row->shift, words + Q5_1_LINES, word);
    /* Bit 16h + 4j + i of the fifth bits belongs to byte i of word j of the low (h = 0) or high
     * nibbles. Two swaps permute bits of the bit numbers, 4 with 1, then 3 with 0. The bit is then
     * bit 4 (j & 1) + 2h + (j >> 1) of byte i. */
    val fifths = prmt(p, words[FIFTHS], imm(U32, 0), row->lane->constants[0]);
    fifths = swap_bits(p, swap_bits(p, fifths, 14, 0x0000cccc), 7, 0x00aa00aa);
    for (int j = 0; j < STREAM_WORDS; j++) {
        int from = 4 * (j & 1) + (j >> 1);
        val fifth = from > 4 ? shr(p, fifths, from - 4) : shl(p, fifths, 4 - from);
        val high = shr(p, word[j], 2);
        w.q[0][j] =
            lop3(p, word[j], IN_EACH_BYTE(0x0f), bit_and(p, fifth, IN_EACH_BYTE(0x10)), AND_OR);
        w.q[1][j] =
            lop3(p, high, IN_EACH_BYTE(0x3c), bit_and(p, fifth, IN_EACH_BYTE(0x40)), AND_OR);
    }
    return w;
}

/* If a piece is rotated by 8 bytes, the bytes of each half of its fifth bits are swapped. */
static void lane_q5_1(ptx *p, stream_lane *lane)
{
    enum { AS_IS = 0x3210, EACH_HALF_SWAPPED = 0x2301 };
    lane->constants[0] =
        select(p, eq(p, lane->rotation, 0), imm(U32, AS_IS), imm(U32, EACH_HALF_SWAPPED));
}

/* Decodes Q8_0. q + 128 is its byte with the top bit flipped. One lop3 does that together with the
 * mask and the bits of 1024. */
static void gemm_q8_0(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2])
{
    (void)valid; /* always GEMM_STEP */
    enum { BIAS = 128, BITS = 0xff, FLIPPED = 0x80 };
    int64_t block = (int64_t)step * Q8_0_BYTES;
    val d = load_packed(p, U16, row->at, block + Q8_0_D), quants[GEMM_OWN_WORDS];
    val factor = prmt(p, d, d, 0x1010);
    gemm_load_words(p, row, block + Q8_0_QUANTS, quants);
    for (unsigned i = 0; i < GEMM_OWN_WORDS; i++)
        for (unsigned odd = 0; odd < 2; odd++) {
            val bytes = odd ? shr(p, quants[i], 8) : quants[i];
            val pair = lop3(p, bytes, PAIR_OF(BITS), PAIR_OF(HALF_1024 | FLIPPED), AND_XOR);
            words[2 * i + odd] = mul_pair(p, pair_centred(p, pair, 0, BIAS), factor);
        }
}

#define OF_BLOCKS .scales = ONE_SCALE, .segments = 2, .at_end = true

const weight_format weight_format_Q8_0 = {
    .unpack = unpack_q8_0,
    .stream = { OF_BLOCKS, .quants = Q8_0_QUANTS,
                .loads = { LOAD_AS_F32(F16, Q8_0_D), LOAD_WORDS(BYTE_WORDS, FROM_LINES, 0) },
                .decode = decode_q8_0 },
    .gemm = { .apart = true, .step = gemm_q8_0 },
};

const weight_format weight_format_Q5_0 = {
    .unpack = unpack_q5_0,
    .stream = { OF_BLOCKS, .offset = -16, .quants = Q5_0_QUANTS, .lane_new = lane_q5_0,
                .loads = { LOAD_AS_F32(F16, Q5_0_D), LOAD(U16, FROM_BLOCK, Q5_0_FIFTH_BITS),
                           LOAD(U16, FROM_BLOCK, Q5_0_FIFTH_BITS + 2), LOAD_PIECE },
                .decode = decode_q5_0 },
};

const weight_format weight_format_Q4_0 = {
    .unpack = unpack_q4_0,
    .stream = { OF_BLOCKS, .offset = -8, .up = { 0, 4 }, .quants = Q4_0_QUANTS,
                .loads = { LOAD_AS_F32(F16, Q4_0_D), LOAD_PIECE }, .decode = decode_q4_0 },
};

const weight_format weight_format_Q4_1 = {
    .unpack = unpack_q4_1,
    .stream = { OF_BLOCKS, .minima = true, .up = { 0, 4 }, .quants = Q4_1_QUANTS, .swaps = true,
                .row_new = row_swapped, .loads = { LOAD(U32, FROM_BLOCK, Q4_1_D), LOAD_SWAPPED(0) },
                .decode = decode_q4_1 },
};

const weight_format weight_format_Q5_1 = {
    .unpack = unpack_q5_1,
    .stream = { OF_BLOCKS, .minima = true, .up = { 0, 2 }, .quants = Q5_1_QUANTS,
                .lane_new = lane_q5_1, .loads = { LOAD_WORDS(2, FROM_BLOCK, Q5_1_D), LOAD_PIECE },
                .decode = decode_q5_1 },
};
