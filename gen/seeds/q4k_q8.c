#include "gen/seeds/q4k_q8.h"

#include "gen/common/bytes.h"
#include "gen/products/gemv.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"

enum {
    LANE_BYTES = 4 * Q4K_Q8_WORDS,
    CHUNK_LANES = Q4K_CHUNK_BYTES / LANE_BYTES,
    VALUE_BYTES = 4,
    Q4K_F32_BYTES = Q4_K_VALUES * VALUE_BYTES,
};

q4k_q8_lane q4k_q8_lane_new(ptx *p)
{
    val lane = lane_id(p), of_super_block = rem(p, lane, Q4K_Q8_LANES);
    val chunk = named(p, "chunk", div(p, of_super_block, CHUNK_LANES));
    return (q4k_q8_lane){
        .half = div(p, lane, Q4K_Q8_LANES),
        .chunk = q4k_chunk_new(p, chunk),
        .quants = mad(p, of_super_block, LANE_BYTES, imm(U32, Q4_K_QUANTS)),
        .sub_block = mul(p, chunk, 2),
        .byte = mul(p, rem(p, lane, CHUNK_LANES), LANE_BYTES),
    };
}

q4k_quants q4k_load_quants(ptx *p, val2 words, const q4k_header *h)
{
    q4k_quants w;
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned j = 0; j < Q4K_Q8_WORDS; j++)
            w.quants[i][j] = bit_and(p, words.v[j], imm(U32, i ? 0xf0f0f0f0 : 0x0f0f0f0f));
        val d = i ? mul(p, h->d, 1.0f / 16) : h->d;
        w.scale[i] = mul(p, d, byte_as_f32(p, h->packed, i));
        w.low[i] = mul(p, neg(p, h->dmin), byte_as_f32(p, h->packed, 2 + i));
    }
    return w;
}

static val q8_sum(ptx *p, const val q[Q4K_Q8_WORDS])
{
    val sum = imm(S32, DP4A_START);
    for (unsigned j = 0; j < Q4K_Q8_WORDS; j++)
        sum = dp4a(p, imm(U32, 0x01010101), q[j], sum);
    return dp4a_sum_as_f32(p, sum);
}

q8_values q8_load(ptx *p, val block, int64_t block_offset, val q8, int64_t q8_offset)
{
    q8_values x;
    for (unsigned i = 0; i < 2; i++) {
        int64_t at = i * Q8_1_BYTES;
        x.d[i] = convert(p, F32, ld_const(p, F16, block, block_offset + at + Q8_1_D));
        for (unsigned j = 0; j < Q4K_Q8_WORDS; j++)
            x.q[i][j] = ld_const(p, S32, q8, q8_offset + at + Q8_1_QUANTS + 4 * j);
        x.sum[i] = q8_sum(p, x.q[i]);
    }
    return x;
}

q8_values q8_quantize(ptx *p, val x, int64_t offset)
{
    q8_values made;
    for (unsigned i = 0; i < 2; i++) {
        val4 v[Q4K_Q8_WORDS];
        val largest = imm(U32, Q8_SMALLEST);
        for (unsigned j = 0; j < Q4K_Q8_WORDS; j++) {
            v[j] = ld_const_v4(p, F32, x, offset + (i * Q8_1_VALUES + 4 * j) * VALUE_BYTES);
            largest = q8_largest(p, largest, v[j].v, 4);
        }
        made.d[i] = q8_scale(p, group_max(p, largest, CHUNK_LANES));
        val inverse = rcp_approx(p, made.d[i]);
        for (unsigned j = 0; j < Q4K_Q8_WORDS; j++)
            made.q[i][j] = q8_pack(p, v[j].v, inverse);
        made.sum[i] = q8_sum(p, made.q[i]);
    }
    return made;
}

val q4k_dot_q8(ptx *p, const q4k_quants *w, const q8_values *x, val acc)
{
    for (unsigned i = 0; i < 2; i++) {
        val product = imm(S32, DP4A_START);
        for (unsigned j = 0; j < Q4K_Q8_WORDS; j++)
            product = dp4a(p, w->quants[i][j], x->q[i][j], product);
        val scaled = mul(p, w->scale[i], dp4a_sum_as_f32(p, product));
        acc = fma(p, x->d[i], fma(p, w->low[i], x->sum[i], scaled), acc);
    }
    return acc;
}

/* What a lane carries from super-block to super-block. */
typedef struct lane_state {
    const q4k_q8_lane *lane;
    const q4k_q8_product *of;
    var x, q8; /* pointers to the lane's f32 values, or to its q8_1 block and its bytes there */
    var header[Q4K_Q8_ROWS], quants[Q4K_Q8_ROWS];
    var acc[Q4K_Q8_ROWS * MAX_VECTORS];
} lane_state;

/* Its cursors: the activations' move alike, and so do the weights'. */
enum { ACTIVATIONS = 0, WEIGHTS = 2 };

/* Sets the pointers to a super-block. */
static void point_to(ptx *p, lane_state *s, val super_block, unsigned stride, walk *along)
{
    const q4k_q8_lane *lane = s->lane;
    const q4k_q8_product *of = s->of;
    if (of->quantized) {
        val of_block = mul(p, lane->sub_block, Q8_1_BYTES);
        val block = add(p, of->x, convert(p, U64, mad(p, super_block, Q4K_Q8_BYTES, of_block)));
        val q8 = add(p, block, convert(p, U64, lane->byte));
        s->x = walk_along(p, along, block, stride * Q4K_Q8_BYTES);
        s->q8 = walk_along(p, along, q8, stride * Q4K_Q8_BYTES);
    } else {
        val of_block = mad(p, lane->sub_block, Q8_1_VALUES, lane->byte);
        val value = mad(p, super_block, Q4_K_VALUES, of_block);
        val x = mad_wide(p, value, VALUE_BYTES, of->x);
        s->x = walk_along(p, along, x, stride * Q4K_F32_BYTES);
        s->q8 = walk_along(p, along, x, stride * Q4K_F32_BYTES);
    }
    for (unsigned r = 0; r < of->rows; r++) {
        val header = mad_wide(p, super_block, Q4_K_BYTES, of->w[r]);
        val quants = add(p, header, convert(p, U64, lane->quants));
        s->header[r] = walk_along(p, along, header, stride * Q4_K_BYTES);
        s->quants[r] = walk_along(p, along, quants, stride * Q4_K_BYTES);
    }
}

static q8_values activations(ptx *p, const lane_state *s, unsigned vector, int64_t offset)
{
    const q4k_q8_product *of = s->of;
    if (!of->quantized) {
        place x = place_of_vector(p, V(s->x), of->behind, vector, of->blocks, Q4K_F32_BYTES);
        return q8_quantize(p, x.base, x.offset + offset);
    }
    place block = place_of_vector(p, V(s->x), of->behind, vector, of->blocks, Q4K_Q8_BYTES);
    place q8 = place_of_vector(p, V(s->q8), of->behind, vector, of->blocks, Q4K_Q8_BYTES);
    return q8_load(p, block.base, block.offset + offset, q8.base, q8.offset + offset);
}

/* Adds a super-block, where it counts: lanes that have none come along for the shuffles. */
static void add_where(ptx *p, lane_state *s, int64_t x_offset, int64_t w_offset, val counts)
{
    const q4k_q8_product *of = s->of;
    q4k_quants w[Q4K_Q8_ROWS];
    for (unsigned r = 0; r < of->rows; r++) {
        val2 words = ld_const_v2(p, U32, s->quants[r], w_offset);
        q4k_header h = q4k_load_header(p, s->header[r], w_offset, &s->lane->chunk);
        w[r] = q4k_load_quants(p, words, &h);
    }
    for (unsigned v = 0; v < of->vectors; v++) {
        q8_values x = activations(p, s, v, x_offset);
        for (unsigned i = 0; i < 2 && counts.kind != VAL_IMM; i++)
            x.d[i] = select(p, counts, x.d[i], 0.0f);
        for (unsigned r = 0; r < of->rows; r++) {
            var acc = s->acc[of->rows * v + r];
            assign(p, acc, q4k_dot_q8(p, &w[r], &x, V(acc)));
        }
    }
}

static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    add_where(p, context, offset[ACTIVATIONS], offset[WEIGHTS], imm(PRED, 1));
}

/* In a turn: a super-block of each row by half a warp. */
static unsigned lane_weights(const q4k_q8_product *of)
{
    return of->rows * Q4_K_VALUES * Q4K_WARP_SUPER_BLOCKS / 32;
}

/* Lanes walk on their own: nothing in the loop needs the others. */
static void walk_singly(ptx *p, lane_state *s, unsigned warps)
{
    unsigned stride = warps * Q4K_WARP_SUPER_BLOCKS;
    val first = mad(p, warp_id(p), Q4K_WARP_SUPER_BLOCKS, s->lane->half);
    walk along = { .first = first, .end = s->of->blocks, .stride = stride };
    along.unroll = s->of->unroll;
    along.weights = lane_weights(s->of);
    point_to(p, s, first, stride, &along);
    walk_items(p, &along, add_super_block, s);
}

/* For the last of an odd number of super-blocks: the upper half of the warp, which has none, goes
 * back to the one of the lower half. */
static void step_back(ptx *p, const lane_state *s, const walk *along, unsigned stride)
{
    for (unsigned c = 0; c < along->cursor_count; c++) {
        var pointer = along->cursors[c].pointer;
        int64_t super_block_bytes = along->cursors[c].bytes / stride;
        assign(p, pointer, sub(p, pointer, mul_wide(p, s->lane->half, super_block_bytes)));
    }
}

/* Quantizing takes shuffles, so that a warp walks as one, by pairs of super-blocks. */
static void walk_in_pairs(ptx *p, lane_state *s, unsigned warps)
{
    unsigned stride = warps * Q4K_WARP_SUPER_BLOCKS;
    val blocks = s->of->blocks, half = s->lane->half;
    bool odd = blocks.kind != VAL_IMM || blocks.bits % Q4K_WARP_SUPER_BLOCKS; /* maybe */
    walk along = { .cursor_count = 0 };
    point_to(p, s, mad(p, warp_id(p), Q4K_WARP_SUPER_BLOCKS, half), stride, &along);
    val pairs = div(p, add(p, blocks, 1), Q4K_WARP_SUPER_BLOCKS);
    ptx_loop_work(p, lane_weights(s->of), "weights");
    PTX_FOR (p, pair, warp_id(p), pairs, warps) {
        val first = mul(p, pair, Q4K_WARP_SUPER_BLOCKS);
        if (odd)
            PTX_IF (p, eq(p, add(p, first, 1), blocks))
                step_back(p, s, &along, stride);
        add_where(p, s, 0, 0, odd ? lt(p, add(p, first, half), blocks) : imm(PRED, 1));
        walk_move(p, &along, 1);
    }
}

void q4k_q8_multiply(ptx *p, const q4k_q8_lane *lane, const q4k_q8_product *of, val *sums)
{
    unsigned warps = ptx_block(p) / 32, count = of->rows * of->vectors;
    lane_state s = { .lane = lane, .of = of };
    for (unsigned i = 0; i < count; i++)
        s.acc[i] = var_f32(p, 0.0f);
    (of->quantized ? walk_singly : walk_in_pairs)(p, &s, warps);
    for (unsigned i = 0; i < count; i++)
        sums[i] = get(p, s.acc[i]);
}
