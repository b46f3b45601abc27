/* Streaming GEMVs with blocks of 32 weights, Q8_0, Q5_0 and Q4_0: see blocks/stream.h.
 *
 * A lane takes a block: an f16 d and 32, 20 or 16 bytes behind it. Blocks are only 2-byte aligned.
 * The lane reads as many words as those bytes are, from the first multiple of 4 on, and the two
 * bytes that the words leave out: d, where the words begin behind it, else the last two. Then it
 * shifts the words together. Nothing is read that is not the block's.
 */
#include "gen/blocks/bytes.h"
#include "gen/blocks/stream.h"
#include "gen/stream_keys.h"

enum { BLOCK_VALUES = 32, D_BYTES = 2 };
enum { WORDS, REST }; /* pointers */

static val lane_of(ptx *p, val segment)
{
    return shr(p, segment, 1);
}

static val is_high(ptx *p, val segment)
{
    return bit_and(p, segment, 1);
}

static stream_lane lane_new(ptx *p)
{
    return (stream_lane){ .block = lane_id(p) };
}

/* bytes: of a block. */
static stream_row row_of(ptx *p, val block, unsigned bytes)
{
    enum { AS_IS = 0x3210, SHIFTED = 0x5432 };
    val odd = bit_and(p, convert(p, U32, block), D_BYTES);
    stream_row row = { .aligned = eq(p, odd, 0) };
    row.selector = select(p, row.aligned, imm(U32, SHIFTED), imm(U32, AS_IS));
    val rest = select(p, row.aligned, imm(U64, bytes - D_BYTES), imm(U64, 0));
    row.at[WORDS] = add(p, block, convert(p, U64, odd));
    row.at[REST] = add(p, block, rest);
    return row;
}

/* The words, and behind them the rest. */
static void load_words(ptx *p, const stream_row *row, int64_t offset, unsigned count,
                       val words[STREAM_LOADED])
{
    for (unsigned i = 0; i < count; i++)
        words[i] = ld_const(p, U32, row->at[WORDS], offset + 4 * i);
    words[count] = ld_const(p, U16, row->at[REST], offset);
}

static val d_of(ptx *p, const stream_row *row, const val words[STREAM_LOADED], unsigned count)
{
    val2 d = halves(p, select(p, row->aligned, words[0], words[count]));
    return convert(p, F32, d.v[0]);
}

static val word_of(ptx *p, const stream_row *row, const val words[STREAM_LOADED], unsigned i)
{
    return prmt(p, words[i], words[i + 1], row->selector);
}

#define FORMAT(id, words, bytes)                                           \
    static stream_row id##_row(ptx *p, const stream_lane *lane, val block) \
    {                                                                      \
        (void)lane;                                                        \
        return row_of(p, block, bytes);                                    \
    }                                                                      \
    static void id##_load(ptx *p, const stream_row *row, int64_t offset,   \
                          val loaded[STREAM_LOADED])                       \
    {                                                                      \
        load_words(p, row, offset, words, loaded);                         \
    }

enum {
    Q8_0_WORDS = 8,
    Q8_0_SIZE = 34,
    Q5_0_WORDS = 5,
    Q5_0_SIZE = 22,
    Q4_0_WORDS = 4,
    Q4_0_SIZE = 18
};
FORMAT(q8_0, Q8_0_WORDS, Q8_0_SIZE)
FORMAT(q5_0, Q5_0_WORDS, Q5_0_SIZE)
FORMAT(q4_0, Q4_0_WORDS, Q4_0_SIZE)

static stream_weights decode_q8_0(ptx *p, const stream_lane *lane, const stream_row *row,
                                  const val words[STREAM_LOADED])
{
    (void)lane;
    stream_weights w = { .d = d_of(p, row, words, Q8_0_WORDS) };
    for (unsigned i = 0; i < Q8_0_WORDS; i++)
        w.q[i / STREAM_WORDS][i % STREAM_WORDS] = as(p, S32, word_of(p, row, words, i));
    return w;
}

/* Four bits spread to the bytes of a word, to bit 4 of each: a product with these ones has bit i of
 * the factor at 8i + 4, and what else it has is masked. */
static val spread_fifth_bits(ptx *p, val bits, unsigned first)
{
    val four = bit_and(p, shr(p, bits, first), 0x0f);
    return bit_and(p, mul(p, four, imm(U32, 0x02040810)), IN_EACH_BYTE(0x10));
}

/* Word 0 has the fifth bits, of weight i at bit i. */
static stream_weights decode_q5_0(ptx *p, const stream_lane *lane, const stream_row *row,
                                  const val words[STREAM_LOADED])
{
    (void)lane;
    stream_weights w = { .d = d_of(p, row, words, Q5_0_WORDS) };
    val fifth = word_of(p, row, words, 0), nibbles = IN_EACH_BYTE(0x0f);
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        val word = word_of(p, row, words, 1 + j);
        w.q[0][j] = lop3(p, word, nibbles, spread_fifth_bits(p, fifth, 4 * j), AND_OR);
        w.q[1][j] = lop3(p, shr(p, word, 4), nibbles,
                         spread_fifth_bits(p, fifth, STREAM_SEGMENT + 4 * j), AND_OR);
    }
    return w;
}

static stream_weights decode_q4_0(ptx *p, const stream_lane *lane, const stream_row *row,
                                  const val words[STREAM_LOADED])
{
    (void)lane;
    stream_weights w = { .d = d_of(p, row, words, Q4_0_WORDS) };
    for (unsigned j = 0; j < STREAM_WORDS; j++) {
        val word = word_of(p, row, words, j);
        w.q[0][j] = bit_and(p, word, IN_EACH_BYTE(0x0f));
        w.q[1][j] = bit_and(p, word, imm(U32, 0xf0f0f0f0));
    }
    return w;
}

#define STREAM_FORMAT(id, factor, of_q)                                                   \
    {                                                                                     \
        .scales = ONE_SCALE, .offset = of_q, .high_factor = factor, .lane_of = lane_of,   \
        .is_high = is_high, .lane_new = lane_new, .row_new = id##_row, .load = id##_load, \
        .decode = decode_##id                                                             \
    }
static const stream_format q8_0 = STREAM_FORMAT(q8_0, 1, 0);
static const stream_format q5_0 = STREAM_FORMAT(q5_0, 1, -16);
static const stream_format q4_0 = STREAM_FORMAT(q4_0, 16, -8);

static void build_q8_0(ptx *p, const instance *in)
{
    stream_gemv(p, in, &q8_0);
}

static void build_q5_0(ptx *p, const instance *in)
{
    stream_gemv(p, in, &q5_0);
}

static void build_q4_0(ptx *p, const instance *in)
{
    stream_gemv(p, in, &q4_0);
}

const family stream_q8_0_gemv = {
    .name = "stream_q8_0_gemv",
    .summary = "streaming Q8_0 x f32 GEMV, x quantized once a block",
    STREAM_GEMV(Q8_0, BLOCK_VALUES, 4, 2, build_q8_0),
};

const family stream_q5_0_gemv = {
    .name = "stream_q5_0_gemv",
    .summary = "streaming Q5_0 x f32 GEMV, x quantized once a block",
    STREAM_GEMV(Q5_0, BLOCK_VALUES, 4, 2, build_q5_0),
};

const family stream_q4_0_gemv = {
    .name = "stream_q4_0_gemv",
    .summary = "streaming Q4_0 x f32 GEMV, x quantized once a block",
    STREAM_GEMV(Q4_0, BLOCK_VALUES, 4, 2, build_q4_0),
};
