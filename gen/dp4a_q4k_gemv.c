/* y = W q8 with Q4_K weights and q8_1 activations: integer products with dp4a.
 *
 * Half a warp takes a super-block, a lane eight bytes of one chunk and with them sixteen weights,
 * so that what a lane does once a super-block (its header, two scales, two mins) serves sixteen.
 * With q8 the integers and d8 the scale of an activation block, a sub-block is
 *
 *   d * d8 * scale * sum(q q8) - dmin * d8 * min * sum(q8)
 *
 * The sum of the integers is taken anew: the block's own s went through f16 and would cost three
 * digits.
 */
#include "gen/blocks/gemv.h"
#include "gen/blocks/q4k.h"
#include "gen/blocks/q8_1.h"
#include "gen/blocks/reduce.h"
#include "gen/blocks/walk.h"

enum {
    LANE_WORDS = 2, /* of quants */
    LANE_BYTES = 4 * LANE_WORDS,
    CHUNK_LANES = Q4K_CHUNK_BYTES / LANE_BYTES,
    SUPER_BLOCK_LANES = 4 * CHUNK_LANES,
    WARP_SUPER_BLOCKS = 32 / SUPER_BLOCK_LANES,
    Q8_SUPER_BLOCK = Q4K_VALUES / Q8_1_VALUES * Q8_1_BYTES, /* activations of a super-block */
};

/* A lane's place in every super-block, the same for all rows. */
typedef struct place {
    val first; /* super-block of the lane in a row */
    q4k_chunk chunk;
    val header, quants; /* offsets in a row of its first super-block's header and of its eight bytes
                           there */
    val block,
        q8; /* pointers to the activation block of its low nibbles, and to its integers there */
} place;

/* What a lane carries along a row. */
typedef struct lane_state {
    const q4k_chunk *chunk;
    var header, quants, block, q8;
    var acc;
} lane_state;

enum { HEADER, QUANTS, BLOCK, Q8 };

static place place_new(ptx *p, val x)
{
    val lane = lane_id(p);
    val first = add(p, mul(p, warp_id(p), WARP_SUPER_BLOCKS), div(p, lane, SUPER_BLOCK_LANES));
    val of_super_block = rem(p, lane, SUPER_BLOCK_LANES);
    val chunk = named(p, "chunk", div(p, of_super_block, CHUNK_LANES));
    val byte = mul(p, rem(p, lane, CHUNK_LANES), LANE_BYTES);
    val header = mul(p, first, Q4K_BYTES);
    val q8_block = add(p, mul(p, first, Q8_SUPER_BLOCK), mul(p, chunk, 2 * Q8_1_BYTES));
    val block = add(p, x, convert(p, U64, q8_block));
    return (place){
        .first = first,
        .chunk = q4k_chunk_new(p, chunk),
        .header = header,
        .quants = add(p, mad(p, of_super_block, LANE_BYTES, header), Q4K_QUANTS),
        .block = block,
        .q8 = add(p, block, convert(p, U64, byte)),
    };
}

static val byte_as_s32(ptx *p, val word, unsigned n)
{
    return as(p, S32, byte_of(p, word, n));
}

static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    lane_state *s = context;
    val2 words = ld_const_v2(p, U32, s->quants, offset[QUANTS]);
    q4k_header h = q4k_load_header(p, s->header, offset[HEADER], s->chunk);
    val products = imm(F32, 0), sums = imm(F32, 0);
    for (unsigned i = 0; i < 2; i++) {
        int64_t block = i * Q8_1_BYTES;
        val d8 = convert(p, F32, ld_const(p, F16, s->block, offset[BLOCK] + block + Q8_1_D));
        val product = imm(S32, 0), sum = imm(S32, 0);
        for (unsigned j = 0; j < LANE_WORDS; j++) {
            val q8 = ld_const(p, S32, s->q8, offset[Q8] + block + Q8_1_QUANTS + 4 * j);
            /* The high nibbles stay where they are, which makes sixteen times the sum. */
            val nibbles = bit_and(p, words.v[j], imm(U32, i ? 0xf0f0f0f0 : 0x0f0f0f0f));
            product = dp4a(p, nibbles, q8, product);
            sum = dp4a(p, imm(U32, 0x01010101), q8, sum);
        }
        val scaled = mul(p, product, byte_as_s32(p, h.packed, i));
        val lowered = mul(p, sum, byte_as_s32(p, h.packed, 2 + i));
        products = fma(p, i ? mul(p, d8, 1.0f / 16) : d8, convert(p, F32, scaled), products);
        sums = fma(p, d8, convert(p, F32, lowered), sums);
    }
    assign(p, s->acc, fma(p, h.d, products, fma(p, neg(p, h.dmin), sums, s->acc)));
}

static void build(ptx *p, const instance *in)
{
    unsigned warps = (unsigned)in->num_warps;
    gemv g = gemv_parameters(p, in);
    place at = place_new(p, g.x);
    block_sums reduction = block_sums_new(p, warps);
    PTX_FOR (p, row, ctaid_x(p), g.n, nctaid_x(p)) {
        unsigned stride = warps * WARP_SUPER_BLOCKS;
        walk along = { .first = at.first, .end = g.blocks, .stride = stride, .unroll = 2 };
        val w = gemv_row(p, &g, row);
        val header = add(p, w, convert(p, U64, at.header));
        val quants = add(p, w, convert(p, U64, at.quants));
        lane_state s = { .chunk = &at.chunk };
        s.header = walk_along(p, &along, header, stride * Q4K_BYTES);
        s.quants = walk_along(p, &along, quants, stride * Q4K_BYTES);
        s.block = walk_along(p, &along, at.block, stride * Q8_SUPER_BLOCK);
        s.q8 = walk_along(p, &along, at.q8, stride * Q8_SUPER_BLOCK);
        s.acc = var_f32(p, 0.0f);
        walk_items(p, &along, add_super_block, &s);
        gemv_store(p, &g, row, block_sums_next(p, &reduction, get(p, s.acc)));
    }
}

static const key keys[] = { KEY_K(Q4K_VALUES), KEY_N, KEY_NUM_WARPS(3), KEY_DIMS, KEY_END };
static const param params[] = { OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(Q8_1, x, "k", 4),
                                PARAM_END };

const family mwv_dp4a_q4k_gemv = {
    .name = "mwv_dp4a_q4k_gemv",
    .summary = "Q4_K x q8_1 GEMV with dp4a, several warps a row, rows by grid stride",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_Q8_1,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*num_warps",
                .grid = { "min(n, sm_count*16)" },
                .shared = BLOCK_SUMS_SHARED,
                .registers = 64 },
    .build = build,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};
