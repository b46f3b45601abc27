/* Q4_K weights times integer activations with dp4a: half a warp per super-block.
 *
 * A lane has eight bytes of one chunk, sixteen weights, so decoding a header, two scales and two
 * mins serves sixteen weights. With q8 the integers and d8 the scale of 32 activations, a sub-block
 * contributes
 *
 *   d8 * (d * scale * sum(q q8) - dmin * min * sum(q8))
 *
 * The sum of the integers is recomputed: the s of a q8_1 block was rounded to f16 and would cost
 * three digits.
 *
 * The integers come from q8_1 blocks, or lanes quantize f32 activations in the loop. Then d8 is
 * amax / 127 of 32 values, as in q8_1, but stays an f32. Blocks of the grid stride over the rows.
 * The families differ in the source of the activations and in rows and vectors per iteration:
 *
 *   mwv       q8_1 blocks, one row: most thread blocks, for small n
 *   hw        q8_1 blocks, two rows: the activations and their sums serve both
 *   batched   q8_1 blocks, two rows and m vectors: weights are decoded once for all of them
 *   inline    as batched, from f32, quantized again for every two rows: needs no workspace
 *   dp4a      f32, one row, one warp per row
 *   fused     q8_1 blocks, row r of two matrices: K and V of attention, or gate and up of a gated
 *             feed-forward layer with its SwiGLU
 */
#include "gen/common/bytes.h"
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "gen/common/walk.h"
#include "gen/formats/q4k.h"
#include "gen/seeds/seed.h"

enum {
    Q4K_Q8_WORDS = 2, /* words of quants per lane */
    Q4K_Q8_LANES = 16,
    Q4K_WARP_SUPER_BLOCKS = 2,
    Q4K_Q8_ROWS = 2,                                       /* rows of weights at once, at most */
    Q4K_Q8_BYTES = Q4_K_VALUES / Q8_1_VALUES * Q8_1_BYTES, /* bytes of x per super-block */
    LANE_BYTES = 4 * Q4K_Q8_WORDS,
    CHUNK_LANES = Q4K_CHUNK_BYTES / LANE_BYTES,
    VALUE_BYTES = 4,
    Q4K_F32_BYTES = Q4_K_VALUES * VALUE_BYTES,
};

/* A lane's place in every super-block. */
typedef struct q4k_q8_lane {
    val half; /* half of the warp: which of two super-blocks */
    q4k_chunk chunk;
    val quants;    /* offset of its eight bytes */
    val sub_block; /* sub-block of its low nibbles; the high ones have the next */
    val byte;      /* index of its first value in both sub-blocks */
} q4k_q8_lane;
static q4k_q8_lane q4k_q8_lane_new(ptx *p)
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

/* A lane's sixteen weights: index 0 for the low nibbles, 1 for the high ones. The high nibbles are
 * not shifted down, and their scale is divided by 16. */
typedef struct q4k_quants {
    val quants[2][Q4K_Q8_WORDS];
    val scale[2], low[2]; /* d * scale, and -dmin * min */
} q4k_quants;
static q4k_quants q4k_load_quants(ptx *p, val2 words, const q4k_header *h)
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

/* The activations of a lane's sixteen weights. */
typedef struct q8_values {
    val q[2][Q4K_Q8_WORDS]; /* four signed bytes per word */
    val d[2];
    val sum[2]; /* sums of the lane's eight integers, as f32 */
} q8_values;

static val q8_sum(ptx *p, const val q[Q4K_Q8_WORDS])
{
    val sum = imm(S32, DP4A_START);
    for (unsigned j = 0; j < Q4K_Q8_WORDS; j++)
        sum = dp4a(p, imm(U32, 0x01010101), q[j], sum);
    return dp4a_sum_as_f32(p, sum);
}

/* Loads activations from two neighbouring q8_1 blocks; q8 is the lane's byte in the first. */
static q8_values q8_load(ptx *p, val block, int64_t block_offset, val q8, int64_t q8_offset)
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

/* Quantizes two groups of 32 f32 values; four neighbouring lanes share a group, and x is the lane's
 * first value in the first one. All lanes of the warp must call it. */
static q8_values q8_quantize(ptx *p, val x, int64_t offset)
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

/* Returns acc + the sixteen products. */
static val q4k_dot_q8(ptx *p, const q4k_quants *w, const q8_values *x, val acc)
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

/* Rows of weights times vectors of activations. */
typedef struct q4k_q8_product {
    val w[Q4K_Q8_ROWS]; /* address of each row */
    unsigned rows, vectors;
    val x;              /* address of the first vector */
    const val *offsets; /* bytes from x to each vector (gemv_operands); NULL: consecutive */
    bool quantized;     /* x is q8_1 blocks, else f32 */
    val blocks;         /* super-blocks per row */
    unsigned unroll;
} q4k_q8_product;

typedef struct lane_state {
    const q4k_q8_lane *lane;
    const q4k_q8_product *of;
    var x, q8; /* pointers to its f32 values, or to its q8_1 block and its bytes there */
    var header[Q4K_Q8_ROWS], quants[Q4K_Q8_ROWS];
    var acc[Q4K_Q8_ROWS * MAX_VECTORS];
} lane_state;

/* Indices of its first cursors: the activations' cursors move alike, and the weights' do. */
enum { ACTIVATIONS = 0, WEIGHTS = 2 };

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
        place x = place_of_vector(p, V(s->x), of->offsets, vector, of->blocks, Q4K_F32_BYTES);
        return q8_quantize(p, x.base, x.offset + offset);
    }
    place block = place_of_vector(p, V(s->x), of->offsets, vector, of->blocks, Q4K_Q8_BYTES);
    place q8 = place_of_vector(p, V(s->q8), of->offsets, vector, of->blocks, Q4K_Q8_BYTES);
    return q8_load(p, block.base, block.offset + offset, q8.base, q8.offset + offset);
}

/* Adds a super-block where `counts` holds; the other lanes take part in the shuffles only. */
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

/* Walks the super-blocks without shuffles: lanes may diverge. */
static void walk_singly(ptx *p, lane_state *s, unsigned warps)
{
    unsigned stride = warps * Q4K_WARP_SUPER_BLOCKS;
    val first = mad(p, warp_id(p), Q4K_WARP_SUPER_BLOCKS, s->lane->half);
    walk along = { .first = first, .end = s->of->blocks, .stride = stride };
    along.unroll = s->of->unroll;
    along.weights = s->of->rows * Q4_K_VALUES * Q4K_WARP_SUPER_BLOCKS / 32;
    point_to(p, s, first, stride, &along);
    walk_items(p, &along, add_super_block, s);
}

/* Walks the super-blocks in pairs, by the whole warp: quantizing needs shuffles. */
static void walk_in_pairs(ptx *p, lane_state *s, unsigned warps)
{
    unsigned stride = warps * Q4K_WARP_SUPER_BLOCKS;
    val blocks = s->of->blocks, half = s->lane->half;
    bool odd = blocks.kind != VAL_IMM || blocks.bits % Q4K_WARP_SUPER_BLOCKS; /* possibly odd */
    walk along = { .cursor_count = 0 };
    point_to(p, s, mad(p, warp_id(p), Q4K_WARP_SUPER_BLOCKS, half), stride, &along);
    val pairs = div(p, add(p, blocks, 1), Q4K_WARP_SUPER_BLOCKS);
    ptx_loop_work(p, s->of->rows * Q4_K_VALUES * Q4K_WARP_SUPER_BLOCKS / 32, "weights");
    PTX_FOR (p, pair, warp_id(p), pairs, warps) {
        val first = mul(p, pair, Q4K_WARP_SUPER_BLOCKS);
        if (odd)
            PTX_IF (p, eq(p, add(p, first, 1), blocks))
                /* the upper half-warp repeats the last super-block of the lower half's */
                for (unsigned c = 0; c < along.cursor_count; c++) {
                    var pointer = along.cursors[c].pointer;
                    int64_t super_block_bytes = along.cursors[c].bytes / stride;
                    assign(p, pointer, sub(p, pointer, mul_wide(p, half, super_block_bytes)));
                }
        add_where(p, s, 0, 0, odd ? lt(p, add(p, first, half), blocks) : imm(PRED, 1));
        walk_move(p, &along, 1);
    }
}

/* Computes a lane's partial sums: sums[rows * vector + row]. The warps of a block stride over
 * super-blocks. Weights are decoded once for all vectors, activations loaded once for all rows. */
static void q4k_q8_multiply(ptx *p, const q4k_q8_lane *lane, const q4k_q8_product *of, val *sums)
{
    unsigned warps = ptx_block(p) / 32, count = of->rows * of->vectors;
    lane_state s = { .lane = lane, .of = of };
    for (unsigned i = 0; i < count; i++)
        s.acc[i] = var_f32(p, 0.0f);
    (of->quantized ? walk_singly : walk_in_pairs)(p, &s, warps);
    for (unsigned i = 0; i < count; i++)
        sums[i] = get(p, s.acc[i]);
}

static q4k_q8_product product_new(const instance *in, const gemv_operands *g, unsigned rows,
                                  unsigned vectors, unsigned unroll)
{
    return (q4k_q8_product){
        .rows = rows,
        .vectors = vectors,
        .x = g->x,
        .offsets = g->offsets,
        .quantized = in->family->activations == FORMAT_Q8_1,
        .blocks = g->blocks,
        .unroll = unroll,
    };
}

static void build_rows(ptx *p, const instance *in)
{
    bool batched = family_key(in->family, "m") != NULL;
    unsigned rows = in->family->launch.rows ? 2 : 1, unroll = batched ? 1 : 2;
    unsigned vectors = batched ? (unsigned)gemv_vectors(in) : 1;
    if (batched)
        ptx_max_registers(p, gemv_registers(in));
    gemv_operands g = gemv_parameters(p, in);
    q4k_q8_lane lane = q4k_q8_lane_new(p);
    q4k_q8_product product = product_new(in, &g, rows, vectors, unroll);
    block_sums reduction = block_sums_new(p, ptx_block(p) / 32, rows * vectors);
    PTX_FOR (p, row, mul(p, ctaid_x(p), rows), g.n, mul(p, nctaid_x(p), rows)) {
        val sums[MAX_SUMS];
        for (unsigned r = 0; r < rows; r++)
            product.w[r] = gemv_loop_row(p, &g, row, r, rows);
        q4k_q8_multiply(p, &lane, &product, sums);
        spread_sums spread = block_sums_next_spread(p, &reduction, sums);
        gemv_store_rows(p, &g, row, rows, vectors, spread);
    }
}

static void build_row_a_block(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    q4k_q8_lane lane = q4k_q8_lane_new(p);
    q4k_q8_product product = product_new(in, &g, 1, 1, 2);
    val row = named(p, "row", ctaid_x(p)), sum;
    product.w[0] = gemv_row(p, &g, row);
    q4k_q8_multiply(p, &lane, &product, &sum);
    gemv_store(p, &g, row, warp_sum(p, sum));
}

enum { MATRICES = 2 };

static void build_pair(ptx *p, const instance *in)
{
    bool gate_up = in->family->op == OP_GATE_UP_SWIGLU;
    gemv_operands g[MATRICES];
    g[0] = gemv_of(p, in, gate_up ? "y" : "keys", gate_up ? "wg" : "wk", "x");
    g[1] = gemv_of(p, in, gate_up ? "y" : "values", gate_up ? "wu" : "wv", "x");
    q4k_q8_lane lane = q4k_q8_lane_new(p);
    q4k_q8_product product = product_new(in, &g[0], MATRICES, 1, 2);
    block_sums reduction = block_sums_new(p, ptx_block(p) / 32, MATRICES);
    PTX_FOR (p, row, ctaid_x(p), g[0].n, nctaid_x(p)) {
        val sums[MATRICES];
        for (int i = 0; i < MATRICES; i++)
            product.w[i] = gemv_row(p, &g[i], row);
        q4k_q8_multiply(p, &lane, &product, sums);
        block_sums_next(p, &reduction, sums);
        if (gate_up)
            sums[0] = gated(p, &in->options, sums[0], sums[1]);
        for (int i = 0; i < (gate_up ? 1 : MATRICES); i++)
            gemv_store(p, &g[i], row, sums[i]);
    }
}

#define DP4A_GEMV(id, said) \
    SEED(id, said, Q4_K, Q8_1), OF_ONE_VECTOR, SEED_PARAMS(Q4_K, 16, Q8_1, 4)
#define PAIR_OF_GEMVS(id, said)                                              \
    SEED(id, said, Q4_K, Q8_1), SEED_KEYS(Q4_K, KEY_NUM_WARPS(4), KEY_DIMS), \
        STRIDING_BLOCKS(.shared = "2*" BLOCK_SUMS_SHARED), .build = build_pair, .tolerance = 3e-7

/* Preference of families that quantize f32 activations. They lose precision, so others come first
 * unless they are requested. */
enum { QUANTIZES = -10 };

const family mwv_dp4a_q4k_gemv = {
    DP4A_GEMV(mwv_dp4a_q4k_gemv,
              "Q4_K x q8_1 GEMV with dp4a, several warps per row, grid stride over rows"),
    SEED_KEYS(Q4_K, KEY_NUM_WARPS(3), KEY_DIMS),
    STRIDING_BLOCKS(.shared = BLOCK_SUMS_SHARED),
    .build = build_rows,
};

const family hw_dp4a_q4k_gemv = {
    DP4A_GEMV(hw_dp4a_q4k_gemv,
              "Q4_K x q8_1 GEMV with dp4a, half a warp per super-block, two rows at a time"),
    SEED_KEYS(Q4_K, KEY_NUM_WARPS(4), KEY_DIMS),
    STRIDING_BLOCKS(.shared = "2*" BLOCK_SUMS_SHARED, .rows = "2"),
    .preference = 10,
    .build = build_rows,
};

const family batched_hw_dp4a_q4k_gemv = {
    SEED(batched_hw_dp4a_q4k_gemv,
         "Q4_K x q8_1 with dp4a for m vectors, weights read once, two rows at a time", Q4_K, Q8_1),
    OF_VECTORS,
    SEED_KEYS(Q4_K, KEY_ANY_M, KEY_ROWS, KEY_NUM_WARPS(4), KEY_DIMS),
    PARAMS_OF_VECTORS(Q4_K, 16, Q8_1, 4),
    STRIDING_BLOCKS_OF_VECTORS,
    .preference = 10,
    .check = check_any_rows,
    .build = build_rows,
};

const family inline_q8_dp4a_q4k_gemv = {
    SEED(inline_q8_dp4a_q4k_gemv,
         "Q4_K x f32 with dp4a for m vectors, x quantized in the loop, two rows at a time", Q4_K,
         F32),
    GEMV_COMPUTES("Y[m,n] = q8(X[m,k]) W[n,k]^T"),
    SEED_KEYS(Q4_K, KEY_M(1), KEY_ROWS, KEY_NUM_WARPS(4), KEY_DIMS),
    PARAMS_OF_VECTORS(Q4_K, 16, F32, 16),
    STRIDING_BLOCKS_OF_VECTORS,
    .quantizes = true,
    .preference = QUANTIZES + 1,
    .build = build_rows,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

const family dp4a_q4k_gemv = {
    SEED(dp4a_q4k_gemv, "Q4_K x f32 GEMV with dp4a, x quantized in the loop, one warp per row",
         Q4_K, F32),
    GEMV_COMPUTES("y[n] = W[n,k] q8(x[k])"),
    SEED_KEYS(Q4_K, KEY_DIMS),
    SEED_PARAMS(Q4_K, 16, F32, 16),
    WARP_A_ROW,
    .quantizes = true,
    .preference = QUANTIZES,
    .build = build_row_a_block,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

const family fused_kv_hw_dp4a_q4k_gemv = {
    PAIR_OF_GEMVS(fused_kv_hw_dp4a_q4k_gemv,
                  "K and V projections: two Q4_K x q8_1 GEMVs of one vector, x read once"),
    .computes = "keys[n] = Wk[n,k] x[k], values[n] = Wv[n,k] x[k]",
    .op = OP_KV,
    .params = PARAMS(OUT(F32, keys, "n", 4), OUT(F32, values, "n", 4), IN(Q4_K, wk, "n*k", 16),
                     IN(Q4_K, wv, "n*k", 16), IN(Q8_1, x, "k", 4)),
    .reference = ref_gemv_pair,
};

const family fused_gate_up_swiglu_hw_dp4a_q4k_gemv = {
    PAIR_OF_GEMVS(fused_gate_up_swiglu_hw_dp4a_q4k_gemv,
                  "gate, up and SwiGLU: two Q4_K x q8_1 GEMVs of one vector, x read once"),
    .computes = "y[n] = silu(Wg[n,k] x[k]) * (Wu[n,k] x[k])",
    .op = OP_GATE_UP_SWIGLU,
    .params = PARAMS(OUT(F32, y, "n", 4), IN(Q4_K, wg, "n*k", 16), IN(Q4_K, wu, "n*k", 16),
                     IN(Q8_1, x, "k", 4)),
    .reference = ref_gate_up_swiglu,
};
