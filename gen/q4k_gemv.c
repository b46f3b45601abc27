/* y = W x with Q4_K weights and f32 activations.
 *
 * A lane takes four bytes of a chunk of a super-block, and with them eight weights: the low nibbles
 * belong to sub-block 2c, the high ones to 2c + 1, so that a lane decodes two scales and two mins.
 * Lanes 0 to 7 cover chunk 0, 8 to 15 chunk 1, and so on: one warp, one super-block.
 */
#include "gen/blocks/gemv.h"
#include "gen/blocks/q4k.h"
#include "gen/blocks/reduce.h"
#include "gen/blocks/walk.h"

enum { LANE_BYTES = 4, CHUNK_LANES = Q4K_CHUNK_BYTES / LANE_BYTES, VALUE_BYTES = 4 };

/* What a lane carries from super-block to super-block. */
typedef struct lane_state {
    q4k_chunk chunk;
    var super_block, quants; /* the lane's pointers: to the header, to its four bytes, */
    var values;              /* to x[64c + i] of its first low nibble */
    var acc;
} lane_state;

enum { SUPER_BLOCK, QUANTS, VALUES };

/* One warp for each of warps super-blocks in turn. */
static lane_state lane_state_new(ptx *p, const gemv *g, val row, unsigned warps, walk *along)
{
    val lane = lane_id(p), warp = warp_id(p);
    val chunk = named(p, "chunk", div(p, lane, CHUNK_LANES));
    val byte = mul(p, bit_and(p, lane, CHUNK_LANES - 1), LANE_BYTES);
    val value = mad(p, warp, Q4K_VALUES, mad(p, chunk, Q4K_CHUNK_VALUES, byte));

    along->first = warp;
    along->end = g->blocks;
    along->stride = warps;
    val super_block = mad_wide(p, warp, Q4K_BYTES, gemv_row(p, g, row));
    val quants = add(p, mad_wide(p, lane, LANE_BYTES, super_block), Q4K_QUANTS);
    val values = mad_wide(p, value, VALUE_BYTES, g->x);
    lane_state s = { .chunk = q4k_chunk_new(p, chunk) };
    s.super_block = walk_along(p, along, super_block, warps * Q4K_BYTES);
    s.quants = walk_along(p, along, quants, warps * Q4K_BYTES);
    s.values = walk_along(p, along, values, warps * Q4K_VALUES * VALUE_BYTES);
    s.acc = var_f32(p, 0.0f);
    return s;
}

/* Adds scale * sum(q x) + low * sum(x) over a lane's four values of a sub-block. */
static void add_sub_block(ptx *p, var acc, val scale, val low, const val q[LANE_BYTES], val4 x)
{
    val products = mul(p, q[0], x.v[0]), values = x.v[0];
    for (int i = 1; i < LANE_BYTES; i++) {
        products = fma(p, q[i], x.v[i], products);
        values = add(p, values, x.v[i]);
    }
    assign(p, acc, fma(p, scale, products, fma(p, low, values, acc)));
}

/* The plain way: bytes are loaded one by one, nibbles converted. */
static void add_super_block_plain(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    q4k_header h = q4k_load_header(p, s->super_block, offset[SUPER_BLOCK], &s->chunk);
    val q[2][LANE_BYTES];
    for (int i = 0; i < LANE_BYTES; i++) {
        val byte = ld_const(p, U8, s->quants, offset[QUANTS] + i);
        q[0][i] = convert(p, F32, bit_and(p, byte, 15));
        q[1][i] = convert(p, F32, shr(p, byte, 4));
    }
    for (unsigned i = 0; i < 2; i++) {
        val4 x = ld_const_v4(p, F32, s->values, offset[VALUES] + i * Q4K_SUB_BLOCK * VALUE_BYTES);
        val scale = mul(p, h.d, byte_as_f32(p, h.packed, i));
        val low = mul(p, neg(p, h.dmin), byte_as_f32(p, h.packed, 2 + i));
        add_sub_block(p, s->acc, scale, low, q[i], x);
    }
}

static void build_plain(ptx *p, const instance *in)
{
    gemv g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p));
    walk along = { .unroll = 1 };
    lane_state s = lane_state_new(p, &g, row, 1, &along);
    walk_items(p, &along, add_super_block_plain, &s);
    gemv_store(p, &g, row, warp_sum(p, get(p, s.acc)));
}

/* Four nibbles as floats 1 + q/16 without a conversion: that is 0x3f800000 with q in the upper four
 * bits of the mantissa. Bits 3 to 6 of each byte of shifted hold q; a byte permutation puts one
 * byte, with the exponent's lowest bit set on top of it, between 0x3f and zeros. */
static void nibbles_as_f32(ptx *p, val shifted, val t[LANE_BYTES])
{
    enum { AND_OR = 0xea, BYTE_INTO_MANTISSA = 0x7044 };
    val bytes = lop3(p, shifted, imm(U32, 0x78787878), imm(U32, 0x80808080), AND_OR);
    for (int i = 0; i < LANE_BYTES; i++)
        t[i] = bits_as(p, F32, prmt(p, bytes, imm(U32, 0x3f000000), BYTE_INTO_MANTISSA | i << 8));
}

/* One 32-bit load of weights. With t = 1 + q/16 and a = 16 d scale, the weight d * scale * q - dmin
 * * min is a * t - (a + dmin * min). */
static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    val word = ld_const(p, U32, s->quants, offset[QUANTS]);
    q4k_header h = q4k_load_header(p, s->super_block, offset[SUPER_BLOCK], &s->chunk);
    val t[2][LANE_BYTES];
    nibbles_as_f32(p, shl(p, word, 3), t[0]);
    nibbles_as_f32(p, shr(p, word, 1), t[1]);
    val d16 = mul(p, h.d, 16.0f), minus_dmin = neg(p, h.dmin);
    for (unsigned i = 0; i < 2; i++) {
        val4 x = ld_const_v4(p, F32, s->values, offset[VALUES] + i * Q4K_SUB_BLOCK * VALUE_BYTES);
        val scale = mul(p, d16, byte_as_f32(p, h.packed, i));
        val low = fma(p, minus_dmin, byte_as_f32(p, h.packed, 2 + i), neg(p, scale));
        add_sub_block(p, s->acc, scale, low, t[i], x);
    }
}

static void build_multi_warp(ptx *p, const instance *in)
{
    unsigned warps = (unsigned)in->num_warps;
    gemv g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p));
    walk along = { .unroll = 2 };
    lane_state s = lane_state_new(p, &g, row, warps, &along);
    walk_items(p, &along, add_super_block, &s);
    gemv_store(p, &g, row, block_sum(p, get(p, s.acc), warps));
}

static const param params[] = { OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(F32, x, "k", 16),
                                PARAM_END };
static const key plain_keys[] = { KEY_K(Q4K_VALUES), KEY_N, KEY_DIMS, KEY_END };
static const key multi_warp_keys[] = { KEY_K(Q4K_VALUES), KEY_N, KEY_NUM_WARPS(4), KEY_DIMS,
                                       KEY_END };

const family q4k_gemv = {
    .name = "q4k_gemv",
    .summary = "Q4_K x f32 GEMV, one warp a row, byte loads: the plain one",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .keys = plain_keys,
    .params = params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build_plain,
    .reference = ref_gemv,
    .tolerance = 5e-7,
};

const family mwv_q4k_gemv = {
    .name = "mwv_q4k_gemv",
    .summary = "Q4_K x f32 GEMV, several warps a row, 32-bit weight loads",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .preference = 1,
    .keys = multi_warp_keys,
    .params = params,
    .launch = { .block = "32*num_warps",
                .grid = { "n" },
                .shared = BLOCK_SUM_SHARED,
                .registers = 64 },
    .build = build_multi_warp,
    .reference = ref_gemv,
    .tolerance = 2e-6, /* sums of 1 + q/16 cancel more than sums of q */
};
