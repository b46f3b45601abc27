/* y = W x with f32 activations, one warp per row: weights of f32, and in blocks of 32.
 *
 *   f32    a lane has four neighbouring columns of every 128: a warp reads 512 contiguous bytes
 *
 *   q4_0   offset  0  f16  d        weight = d * (q - 8)
 *                  2  16 x u8       byte j: weight j in the low nibble, j + 16 in the high one
 *
 *   q5_0   offset  0  f16  d        weight = d * (q - 16)
 *                  2  u32           bit i is the fifth bit of weight i
 *                  6  16 x u8       nibbles as in q4_0
 *
 *   q8_0   offset  0  f16  d        weight = d * q
 *                  2  32 x s8       q
 *
 * Blocks of 18, 22 and 34 bytes are only 2-byte aligned. A lane loads four bytes of quants as two
 * 16-bit loads. Four lanes share a block of nibbles, with weights 4j .. 4j + 3 and 16 + 4j .. 16 +
 * 4j + 3 each, and four fifth bits in each half of their word. Eight lanes share a block of q8_0.
 * Joining an unaligned word from two aligned ones would be two loads as well, plus a funnel shift.
 * A quarter of the warp then reads 128 contiguous bytes of x. */
#include "gen/common/bytes.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "gen/seeds/seed.h"

enum { BLOCK_VALUES = 32, HALF_VALUES = BLOCK_VALUES / 2, LANE_BYTES = 4, VALUE_BYTES = 4 };
enum { LANE_COLUMNS = 4, WARP_COLUMNS = 32 * LANE_COLUMNS, LOADS_IN_FLIGHT = 4 };

typedef struct f32_state {
    var w, x, acc;
} f32_state;

static void add_columns(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    f32_state *s = context;
    val4 w = ld_const_v4(p, F32, s->w, offset[0]), x = ld_const_v4(p, F32, s->x, offset[1]);
    for (int i = 0; i < LANE_COLUMNS; i++)
        assign(p, s->acc, fma(p, w.v[i], x.v[i], s->acc));
}

static void build_f32(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p));
    val column = named(p, "column", mul(p, lane_id(p), LANE_COLUMNS));
    walk along = {
        .first = column,
        .end = g.blocks,
        .stride = WARP_COLUMNS,
        .unroll = LOADS_IN_FLIGHT,
        .weights = LANE_COLUMNS,
    };
    val w = mad_wide(p, column, VALUE_BYTES, gemv_row(p, &g, row));
    val x = mad_wide(p, column, VALUE_BYTES, g.x);
    f32_state s;
    s.w = walk_along(p, &along, w, WARP_COLUMNS * VALUE_BYTES);
    s.x = walk_along(p, &along, x, WARP_COLUMNS * VALUE_BYTES);
    s.acc = var_f32(p, 0.0f);
    walk_items(p, &along, add_columns, &s);
    gemv_store(p, &g, row, warp_sum(p, get(p, s.acc)));
}

typedef struct lane_state {
    bool five_bits;
    val first_value;           /* its first value in the block */
    var block, quants, values; /* pointers to d, to its quants, and to their x */
    var acc;
} lane_state;

enum { AT_BLOCK, AT_QUANTS, AT_VALUES };

/* Returns four weights, of low or high nibbles, divided by 16 d, or by 32 d with five bits. */
static void four_weights(ptx *p, const lane_state *s, const int64_t *offset, val word,
                         unsigned half, val weight[LANE_BYTES])
{
    if (s->five_bits) {
        val in_place = half ? shr(p, word, 2) : shl(p, word, 2);
        /* Four fifth bits, each as bit 6 of its byte: the product has bit i at 7i + i + 6. */
        enum { BIT_6_AND_EVERY_7TH = 1 << 6 | 1 << 13 | 1 << 20 | 1 << 27 };
        val bits = ld_const(p, U16, s->block, offset[AT_BLOCK] + Q5_0_FIFTH_BITS + 2 * half);
        bits = bit_and(p, shr(p, bits, s->first_value), 15);
        val fifth = bit_and(p, mul(p, bits, BIT_6_AND_EVERY_7TH), IN_EACH_BYTE(0x40));
        val four = lop3(p, in_place, IN_EACH_BYTE(0x3c), IN_EACH_BYTE(0x80), AND_OR);
        centred_fractions(p, bit_or(p, four, fifth), weight);
    } else {
        val in_place = half ? shr(p, word, 1) : shl(p, word, 3);
        val four = lop3(p, in_place, IN_EACH_BYTE(0x78), IN_EACH_BYTE(0x80), AND_OR);
        centred_fractions(p, four, weight);
    }
}

static void add_nibbles(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
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

static void add_bytes(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    val d = convert(p, F32, ld_const(p, F16, s->block, offset[AT_BLOCK]));
    val4 x = ld_const_v4(p, F32, s->values, offset[AT_VALUES]);
    val halves[2];
    for (unsigned i = 0; i < 2; i++)
        halves[i] = ld_const(p, U16, s->quants, offset[AT_QUANTS] + 2 * i);
    val sum = mul(p, signed_byte_as_f32(p, halves[0], 0), x.v[0]);
    for (unsigned i = 1; i < LANE_BYTES; i++)
        sum = fma(p, signed_byte_as_f32(p, halves[i / 2], i % 2), x.v[i], sum);
    assign(p, s->acc, fma(p, d, sum, s->acc));
}

static void build_blocks(ptx *p, const instance *in)
{
    format f = in->family->weights;
    bool bytes = f == FORMAT_Q8_0, five_bits = f == FORMAT_Q5_0;
    unsigned block_bytes = formats[f].block_bytes, block_lanes = bytes ? 8 : 4;
    unsigned warp_blocks = 32 / block_lanes;
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p)), lane = lane_id(p);
    val first = named(p, "block", div(p, lane, block_lanes));
    walk along = {
        .first = first,
        .end = g.blocks,
        .stride = warp_blocks,
        .unroll = bytes ? 8 : 4,
        .weights = BLOCK_VALUES / block_lanes,
    };
    val block = mad_wide(p, first, block_bytes, gemv_row(p, &g, row));
    val byte = mul(p, rem(p, lane, block_lanes), LANE_BYTES);
    if (!bytes)
        byte = named(p, "byte", byte);
    val quants = add(p, add(p, block, convert(p, U64, byte)),
                     bytes       ? Q8_0_QUANTS
                     : five_bits ? Q5_0_QUANTS
                                 : Q4_0_QUANTS);
    val value = bytes ? lane : mad(p, first, BLOCK_VALUES, byte);
    lane_state s = { .five_bits = five_bits, .first_value = byte };
    s.block = walk_along(p, &along, block, warp_blocks * block_bytes);
    s.quants = walk_along(p, &along, quants, warp_blocks * block_bytes);
    val x = mad_wide(p, value, bytes ? LANE_BYTES * VALUE_BYTES : VALUE_BYTES, g.x);
    s.values = walk_along(p, &along, x, warp_blocks * BLOCK_VALUES * VALUE_BYTES);
    s.acc = var_f32(p, 0.0f);
    walk_items(p, &along, bytes ? add_bytes : add_nibbles, &s);
    val sum = warp_sum(p, get(p, s.acc));
    gemv_store(p, &g, row, bytes ? sum : mul(p, sum, five_bits ? 32.0f : 16.0f));
}

const family f32_gemv = {
    SEED(f32_gemv, "f32 GEMV, one warp per row", F32, F32),
    GEMV_COMPUTES("y[n] = W[n,k] x[k]"),
    .keys = KEYS(KEY_K(32), KEY_N, KEY_DIMS),
    SEED_PARAMS(F32, 16, F32, 16),
    WARP_A_ROW,
    .build = build_f32,
    .tolerance = 5e-7,
};

#define OF_BLOCKS(of) \
    OF_ONE_VECTOR, PLAIN_KEYS(of), SEED_PARAMS(of, 2, F32, 16), WARP_A_ROW, .build = build_blocks

const family q4_0_gemv = {
    SEED(q4_0_gemv, "q4_0 x f32 GEMV, one warp per row", Q4_0, F32),
    OF_BLOCKS(Q4_0),
};

const family q5_0_gemv = {
    SEED(q5_0_gemv, "q5_0 x f32 GEMV, one warp per row", Q5_0, F32),
    OF_BLOCKS(Q5_0),
};

const family q8_0_gemv = {
    SEED(q8_0_gemv, "q8_0 x f32 GEMV, one warp per row", Q8_0, F32),
    OF_BLOCKS(Q8_0),
};
