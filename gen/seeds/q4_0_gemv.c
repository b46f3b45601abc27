/* y = W x with q4_0 or q5_0 weights and f32 activations, one warp a row.
 *
 *   q4_0   offset  0  f16  d        weight = d * (q - 8)
 *                  2  16 x u8       byte j: weight j in the low nibble, j + 16 in the high one
 *
 *   q5_0   offset  0  f16  d        weight = d * (q - 16)
 *                  2  u32           bit i is the fifth bit of weight i
 *                  6  16 x u8       nibbles as in q4_0
 *
 * Blocks of 18 and 22 bytes are only 2-byte aligned. Four lanes take a block: a lane four bytes of
 * nibbles, as two 16-bit loads, and with them weights 4j … 4j + 3 and 16 + 4j … 16 + 4j + 3; of the
 * fifth bits it needs four in each half of their word.
 */
#include "gen/common/bytes.h"
#include "gen/products/gemv.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "ref/reference.h"

enum {
    BLOCK_VALUES = 32,
    HALF_VALUES = BLOCK_VALUES / 2, /* of the low nibbles, and of the high ones */
    LANE_BYTES = 4,
    BLOCK_LANES = HALF_VALUES / LANE_BYTES,
    WARP_BLOCKS = 32 / BLOCK_LANES,
    VALUE_BYTES = 4,
    BLOCKS_IN_FLIGHT = 4,
};

typedef struct lane_state {
    bool five_bits;
    val first_value;           /* 4j */
    var block, quants, values; /* the lane's pointers: to d, to its nibbles, to x[4j] */
    var acc;
} lane_state;

enum { AT_BLOCK, AT_QUANTS, AT_VALUES };

/* The fifth bits of four weights, each as bit 6 of its byte: the product has bit i at 7i + i + 6,
 * and at places that the mask drops. */
static val fifth_bits(ptx *p, const lane_state *s, int64_t offset)
{
    enum { BIT_6_AND_EVERY_7TH = 1 << 6 | 1 << 13 | 1 << 20 | 1 << 27 };
    val bits = shr(p, ld_const(p, U16, s->block, offset), s->first_value);
    return bit_and(p, mul(p, bit_and(p, bits, 15), BIT_6_AND_EVERY_7TH), IN_EACH_BYTE(0x40));
}

/* Four weights over 16 d (over 32 d with five bits) as fractions around 0: of the low nibbles or of
 * the high ones. */
static void four_weights(ptx *p, const lane_state *s, const int64_t *offset, val word,
                         unsigned half, val weight[LANE_BYTES])
{
    if (s->five_bits) {
        val in_place = half ? shr(p, word, 2) : shl(p, word, 2);
        val fifth = fifth_bits(p, s, offset[AT_BLOCK] + Q5_0_FIFTH_BITS + 2 * half);
        val four = lop3(p, in_place, IN_EACH_BYTE(0x3c), IN_EACH_BYTE(0x80), AND_OR);
        centred_fractions(p, bit_or(p, four, fifth), weight);
    } else {
        val in_place = half ? shr(p, word, 1) : shl(p, word, 3);
        val four = lop3(p, in_place, IN_EACH_BYTE(0x78), IN_EACH_BYTE(0x80), AND_OR);
        centred_fractions(p, four, weight);
    }
}

static void add_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    val d = convert(p, F32, ld_const(p, F16, s->block, offset[AT_BLOCK]));
    val word = load_word_by_halves(p, s->quants, offset[AT_QUANTS]);
    val sum = { 0 };
    for (unsigned half = 0; half < 2; half++) {
        val4 x =
            ld_const_v4(p, F32, s->values, offset[AT_VALUES] + half * HALF_VALUES * VALUE_BYTES);
        val weight[LANE_BYTES];
        four_weights(p, s, offset, word, half, weight);
        for (unsigned i = 0; i < LANE_BYTES; i++)
            sum = sum.kind ? fma(p, weight[i], x.v[i], sum) : mul(p, weight[i], x.v[i]);
    }
    assign(p, s->acc, fma(p, d, sum, s->acc));
}

static void build_with(ptx *p, const instance *in, bool five_bits)
{
    unsigned block_bytes = five_bits ? Q5_0_BYTES : Q4_0_BYTES;
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p));
    val lane = lane_id(p);
    val first = named(p, "block", div(p, lane, BLOCK_LANES));
    walk along = {
        .first = first,
        .end = g.blocks,
        .stride = WARP_BLOCKS,
        .unroll = BLOCKS_IN_FLIGHT,
        .weights = 2 * LANE_BYTES,
    };
    val block = mad_wide(p, first, block_bytes, gemv_row(p, &g, row));
    val byte = named(p, "byte", mul(p, rem(p, lane, BLOCK_LANES), LANE_BYTES));
    val quants =
        add(p, add(p, block, convert(p, U64, byte)), five_bits ? Q5_0_QUANTS : Q4_0_QUANTS);
    val value = mad(p, first, BLOCK_VALUES, byte);
    lane_state s = { .five_bits = five_bits, .first_value = byte };
    s.block = walk_along(p, &along, block, WARP_BLOCKS * block_bytes);
    s.quants = walk_along(p, &along, quants, WARP_BLOCKS * block_bytes);
    s.values = walk_along(p, &along, mad_wide(p, value, VALUE_BYTES, g.x),
                          WARP_BLOCKS * BLOCK_VALUES * VALUE_BYTES);
    s.acc = var_f32(p, 0.0f);
    walk_items(p, &along, add_block, &s);
    val sum = warp_sum(p, get(p, s.acc));
    gemv_store(p, &g, row, mul(p, sum, five_bits ? 32.0f : 16.0f));
}

static void build_q4_0(ptx *p, const instance *in)
{
    build_with(p, in, false);
}

static void build_q5_0(ptx *p, const instance *in)
{
    build_with(p, in, true);
}

static const key keys[] = { KEY_K(BLOCK_VALUES), KEY_N,    KEY_VARIANT,
                            KEY_PRECISION,       KEY_DIMS, KEY_END };
static const param q4_0_params[] = { OUT(F32, y, "n", 4), IN(Q4_0, w, "n*k", 2),
                                     IN(F32, x, "k", 16), PARAM_END };
static const param q5_0_params[] = { OUT(F32, y, "n", 4), IN(Q5_0, w, "n*k", 2),
                                     IN(F32, x, "k", 16), PARAM_END };

const family q4_0_gemv = {
    .name = "q4_0_gemv",
    .summary = "q4_0 x f32 GEMV, one warp a row",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_0,
    .activations = FORMAT_F32,
    .keys = keys,
    .params = q4_0_params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build_q4_0,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family q5_0_gemv = {
    .name = "q5_0_gemv",
    .summary = "q5_0 x f32 GEMV, one warp a row",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q5_0,
    .activations = FORMAT_F32,
    .keys = keys,
    .params = q5_0_params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build_q5_0,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};
