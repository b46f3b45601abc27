/* Decode attention over latents (MLA, absorbed) in one launch, over the positions t of a sequence:
 *
 *   o[m,h] = softmax(scale q[m,h] . c[t]) c[t]
 *
 * All heads share the keys, rows of latent + n_rope values; the first latent of them are also the
 * values, so each row is read once. Layouts: q [m, num_heads, latent + n_rope]; o [m, num_heads,
 * latent]; c is a pool of pages [page or max_seq_len, latent + n_rope]. gen/attention/mla.h documents
 * chunks and their merging.
 *
 * A block serves up to 16 heads for a chunk of positions, in tiles of 16, each staged in shared
 * memory as f32. Two warps share a set of up to 8 heads. Each lane has every 64th piece of a row:
 * pieces of 4 values, then single values. For these it holds q and the results of all heads of its
 * set in registers (72 and 64 for 8 heads, latent = 512 and n_rope = 64). Passes over a tile:
 *
 *   1. The rows are staged.
 *   2. q c'. A value of a row is loaded once for all heads of a set. Product i of a lane belongs to
 *      head i ^ lane, at position j ^ (lane / heads), so that lanes add up by exchanging halves: 32
 *      products of 8 heads and 4 positions take 31 shuffles.
 *   3. The online softmax, 8 lanes per head with two positions each: products become weights.
 *   4. The weighted values; a value is loaded once for all heads of a set. Results are rescaled if
 *      the tile raised a head's maximum.
 *
 * A result has the same bits with any grid, and for a row alone or among others. */
#include <math.h>

#include "gen/attention/mla.h"
#include "gen/common/reduce.h"
#include "gen/common/next.h"
#include "gen/formats/weight_format.h"
#include "kernel/formula.h"
#include "ref/reference.h"

enum {
    SET_HEADS = 8,
    SET_WARPS = 2,
    SET_LANES = SET_WARPS * WARP,
    TILE = 16,        /* positions */
    MOST_AT_ONCE = 8, /* positions that a warp multiplies at once, at most */
    WARP_HEADS = 4,   /* heads per warp in the softmax */
    HEAD_LANES = WARP / WARP_HEADS,
    HEAD_POSITIONS = TILE / HEAD_LANES,
    LINE_VALUES = 4,
    LINE_BYTES = LINE_VALUES * F32_BYTES,
    MOST_VALUES = (MLA_MOST_LATENT + MLA_MOST_ROPE) / SET_LANES,
    POSITIONS_A_TURN = 2, /* positions per iteration of the weighted values */
};

/* The layout of a lane's values of a row of count: lines of 4, then single values from first_single
 * on. If ragged, some lanes do not have the last one. */
typedef struct share {
    unsigned count, lines, singles, values, first_single;
    bool ragged;
} share;

static share share_of(int64_t count)
{
    share s = { .count = (unsigned)count };
    s.lines = s.count / (SET_LANES * LINE_VALUES);
    s.first_single = s.lines * SET_LANES * LINE_VALUES;
    unsigned left = s.count - s.first_single;
    s.singles = (left + SET_LANES - 1) / SET_LANES;
    s.values = s.lines * LINE_VALUES + s.singles;
    s.ragged = left % SET_LANES != 0;
    return s;
}

typedef struct mla_work {
    const instance *in;
    mla_block block;
    unsigned sets, heads;    /* sets per block; heads per set */
    unsigned slots;          /* heads per block in shared memory, in whole lines */
    unsigned size, at_once;  /* products of a lane: heads (a power of two) times positions */
    unsigned width, stride;  /* values of a row; bytes of a staged row */
    unsigned product_stride; /* padded bytes per position of products and weights */
    share key, value;
    val lane; /* index in the set's 64 */
    val set;
    val rows, products, weights; /* shared memory */
    val q[SET_HEADS][MOST_VALUES];
    var results_of[SET_HEADS][MOST_VALUES];
    mla_softmax softmax; /* state of the thread's head */
} mla_work;

static mla_work mla_work_new(ptx *p, const instance *in)
{
    mla_work w = { .in = in, .size = 1, .at_once = MOST_AT_ONCE };
    w.sets = formula_unsigned("sets", in);
    w.heads = formula_unsigned("heads", in);
    while (w.size < w.heads)
        w.size *= 2;
    while (w.size * w.at_once > WARP)
        w.at_once /= 2;
    w.slots = formula_unsigned("slots", in);
    w.product_stride = (w.slots + LINE_VALUES) * F32_BYTES;
    w.width = (unsigned)(in->shape.latent + in->shape.n_rope);
    w.stride = w.width * F32_BYTES;
    w.key = share_of(w.width);
    w.value = share_of(in->shape.latent);
    w.block = mla_block_new(p, in, w.sets * w.heads);
    w.set = named(p, "set", div(p, warp_id(p), SET_WARPS));
    w.lane = named(p, "lane", bit_and(p, tid_x(p), SET_LANES - 1));
    w.rows = shared_array(p, "rows", F32, TILE * w.width);
    w.products = shared_array(p, "products", F32, SET_WARPS * TILE * w.product_stride / F32_BYTES);
    w.weights = shared_array(p, "weights", F32, TILE * w.product_stride / F32_BYTES);
    w.softmax = mla_softmax_new(p, WARP_HEADS, WARP, w.slots);
    w.block.ticket = shared_array(p, "ticket", U32, 1);
    return w;
}

/* Returns true if the lane has single value number `single` of a share. */
static val has_single(ptx *p, const mla_work *w, const share *s, unsigned single)
{
    unsigned left = s->count - s->first_single - single * SET_LANES;
    return left >= SET_LANES ? imm(PRED, 1) : lt(p, w->lane, left);
}

/* Returns the index in the row of single value number `single`, clamped to the last value. */
static val single_place(ptx *p, const mla_work *w, const share *s, unsigned single)
{
    val place = add(p, w->lane, s->first_single + single * SET_LANES);
    bool last = single + 1 == s->singles && s->ragged;
    return last ? min(p, place, s->count - 1) : place;
}

static void load_query(ptx *p, mla_work *w, unsigned i)
{
    float factor = mla_score_scale(w->in);
    val head = bit_xor(p, bit_and(p, lane_id(p), w->size - 1), i);
    if (w->heads < w->size)
        head = min(p, head, w->heads - 1);
    val query = mla_query_row(p, &w->block, mad(p, w->set, imm(U32, w->heads), head));
    val row = mad_wide(p, query, w->stride, parameter(p, "q"));
    val lines = mad_wide(p, w->lane, LINE_BYTES, row);
    for (unsigned j = 0; j < w->key.lines; j++) {
        val4 four = ld_const_v4(p, F32, lines, (int64_t)j * SET_LANES * LINE_BYTES);
        for (unsigned k = 0; k < LINE_VALUES; k++)
            w->q[i][j * LINE_VALUES + k] = mul(p, four.v[k], factor);
    }
    for (unsigned j = 0; j < w->key.singles; j++) {
        val place = single_place(p, w, &w->key, j);
        val x = mul(p, ld_const(p, F32, mad_wide(p, place, F32_BYTES, row), 0), factor);
        w->q[i][w->key.lines * LINE_VALUES + j] =
            select(p, has_single(p, w, &w->key, j), x, imm(F32, 0));
    }
}

static void load_share(ptx *p, const mla_work *w, const share *s, val row, int64_t offset,
                       val values[MOST_VALUES])
{
    val lines = mad(p, w->lane, imm(U32, LINE_BYTES), row);
    for (unsigned j = 0; j < s->lines; j++)
        load_floats(p, lines, offset + (int64_t)j * SET_LANES * LINE_BYTES, LINE_VALUES,
                    values + (size_t)j * LINE_VALUES);
    val singles = mad(p, w->lane, imm(U32, F32_BYTES), row);
    for (unsigned j = 0; j < s->singles; j++) {
        bool last = j + 1 == s->singles && s->ragged;
        val at = last ? mad(p, single_place(p, w, s, j), imm(U32, F32_BYTES), row) : singles;
        int64_t place = last ? 0 : (int64_t)(s->first_single + j * SET_LANES) * F32_BYTES;
        val x = ld_shared(p, F32, at, offset + place);
        values[s->lines * LINE_VALUES + j] =
            last ? select(p, has_single(p, w, s, j), x, imm(F32, 0)) : x;
    }
}

/* Stages rows tile to tile + 15. Rows after the last position repeat its row. */
static void stage(ptx *p, const mla_work *w, val tile, val last)
{
    unsigned pieces = w->width / UNPACKED;
    ptx_loop_work(p, UNPACKED, "values");
    PTX_FOR (p, unit, tid_x(p), TILE * pieces, w->sets * SET_LANES) {
        val position = div(p, unit, pieces), piece = rem(p, unit, pieces), x[UNPACKED];
        val row = mla_row(p, &w->block, min(p, add(p, tile, position), last));
        unpack_piece(p, kv_format(w->in), row, piece, x);
        val at = mad(p, unit, imm(U32, UNPACKED * F32_BYTES), w->rows);
        store_floats(p, at, 0, UNPACKED, x);
    }
    barrier(p);
}

/* Multiplies q with at_once positions. A lane ends up with the product of one head and position. */
static void multiply(ptx *p, const mla_work *w, val first)
{
    val sums[MOST_AT_ONCE][SET_HEADS], values[MOST_VALUES];
    val own = bit_and(p, div(p, lane_id(p), w->size), w->at_once - 1);
    for (unsigned j = 0; j < w->at_once; j++) {
        val row = mad(p, add(p, first, bit_xor(p, own, j)), imm(U32, w->stride), w->rows);
        load_share(p, w, &w->key, row, 0, values);
        for (unsigned i = 0; i < w->size; i++) {
            sums[j][i] = mul(p, w->q[i][0], values[0]);
            for (unsigned k = 1; k < w->key.values; k++)
                sums[j][i] = fma(p, w->q[i][k], values[k], sums[j][i]);
        }
    }
    for (unsigned half = w->at_once / 2; half > 0; half /= 2)
        for (unsigned j = 0; j < half; j++)
            for (unsigned i = 0; i < w->size; i++)
                sums[j][i] = add(p, sums[j][i], shuffle_xor(p, sums[j + half][i], half * w->size));
    for (unsigned half = w->size / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half; i++)
            sums[0][i] = add(p, sums[0][i], shuffle_xor(p, sums[0][i + half], half));
    val sum = lanes_sum(p, sums[0][0], w->size * w->at_once, WARP);
    val half = bit_and(p, warp_id(p), SET_WARPS - 1);
    val position = add(p, first, own);
    val head = mad(p, w->set, imm(U32, w->size), bit_and(p, lane_id(p), w->size - 1));
    val at = mad(p, mad(p, half, imm(U32, TILE), position), imm(U32, w->product_stride),
                 mad(p, head, imm(U32, F32_BYTES), w->products));
    PTX_IF (p, lt(p, lane_id(p), w->size * w->at_once))
        st_shared(p, F32, at, 0, sum);
}

/* Returns the lane's head and first position in the softmax: 8 lanes per head, 4 heads per warp.
 * Threads without a head compute the last head and store nothing. */
static mla_softmax_lane softmax_lane_of(ptx *p, const mla_work *w)
{
    unsigned heads = w->sets * w->size;
    val head = mad(p, warp_id(p), imm(U32, WARP_HEADS), bit_and(p, lane_id(p), WARP_HEADS - 1));
    return (mla_softmax_lane){ .head = heads % SET_HEADS ? min(p, head, heads - 1) : head,
                               .position = div(p, lane_id(p), WARP_HEADS),
                               .exists = heads % SET_HEADS ? lt(p, head, heads) : imm(PRED, 1) };
}

/* Replaces a tile's products by weights; the first count are valid. Returns the number of threads
 * whose head's maximum rose. */
static val weigh(ptx *p, const mla_work *w, val count)
{
    unsigned stride = w->product_stride;
    mla_softmax_lane own = softmax_lane_of(p, w);
    val here = mad(p, own.position, imm(U32, stride), mul(p, own.head, F32_BYTES));
    val at = add(p, w->products, here), to = add(p, w->weights, here);
    val scores[HEAD_POSITIONS], now;
    for (unsigned i = 0; i < HEAD_POSITIONS; i++) {
        int64_t offset = (int64_t)i * HEAD_LANES * stride;
        val sum = add(p, ld_shared(p, F32, at, offset),
                      ld_shared(p, F32, at, offset + (int64_t)TILE * stride));
        val exists = lt(p, add(p, own.position, i * HEAD_LANES), count);
        scores[i] = select(p, exists, sum, -INFINITY);
    }
    val factor = mla_softmax_raise(p, &w->softmax, scores, HEAD_POSITIONS, &now);
    for (unsigned i = 0; i < HEAD_POSITIONS; i++) {
        scores[i] = ex2(p, sub(p, scores[i], now));
        assign(p, w->softmax.sum, add(p, w->softmax.sum, scores[i]));
    }
    PTX_IF (p, own.exists) {
        for (unsigned i = 0; i < HEAD_POSITIONS; i++)
            st_shared(p, F32, to, (int64_t)i * HEAD_LANES * stride, scores[i]);
        mla_softmax_tell(p, &w->softmax, &own, factor);
    }
    return barrier_count(p, ne(p, factor, 1.0f));
}

static void load_of_heads(ptx *p, const mla_work *w, val at, int64_t offset, val values[SET_HEADS])
{
    if (w->size >= LINE_VALUES)
        load_floats(p, at, offset, w->heads, values);
    for (unsigned j = 0; j < w->size && w->size < LINE_VALUES; j++)
        values[j] = ld_shared(p, F32, at, offset + j * F32_BYTES);
}

static val of_set(ptx *p, const mla_work *w, val array)
{
    return mad(p, w->set, imm(U32, w->size * F32_BYTES), array);
}

/* Adds the weighted values. Weights after the last position are 0 up to the end of an iteration. */
static void add_values(ptx *p, const mla_work *w, val count)
{
    ptx_loop_work(p, POSITIONS_A_TURN * w->heads * w->value.values, "products");
    PTX_FOR (p, v_position, 0, count, POSITIONS_A_TURN) {
        val row = mad(p, v_position, imm(U32, w->stride), w->rows);
        val at = mad(p, v_position, imm(U32, w->product_stride), of_set(p, w, w->weights));
        for (unsigned i = 0; i < POSITIONS_A_TURN; i++) {
            val values[MOST_VALUES], weights[SET_HEADS];
            load_of_heads(p, w, at, (int64_t)i * w->product_stride, weights);
            load_share(p, w, &w->value, row, (int64_t)i * w->stride, values);
            for (unsigned h = 0; h < w->heads; h++)
                for (unsigned j = 0; j < w->value.values; j++)
                    assign(p, w->results_of[h][j],
                           fma(p, weights[h], values[j], w->results_of[h][j]));
        }
    }
}

static void attend(ptx *p, const mla_work *w, positions run)
{
    val last = sub(p, run.end, 1);
    PTX_FOR (p, tile, run.first, run.end, TILE) {
        val count = min(p, sub(p, run.end, tile), TILE);
        phase(p, "stage the rows of a tile");
        stage(p, w, tile, last);
        phase(p, "products of q with the tile");
        ptx_loop_work(p, w->at_once * w->size * w->key.values, "products");
        PTX_FOR (p, k_position, 0, TILE, w->at_once)
            multiply(p, w, k_position);
        barrier(p);
        phase(p, "softmax: products to weights");
        val rose = weigh(p, w, count);
        PTX_IF (p, ne(p, rose, 0)) {
            val factors[SET_HEADS];
            load_of_heads(p, w, of_set(p, w, w->softmax.factors), 0, factors);
            for (unsigned i = 0; i < w->heads; i++)
                for (unsigned j = 0; j < w->value.values; j++)
                    assign(p, w->results_of[i][j], mul(p, w->results_of[i][j], factors[i]));
        }
        phase(p, "weighted values of the tile");
        add_values(p, w, count);
        barrier(p);
    }
}

/* Stores the lane's share of a head's results, multiplied by *factor unless it is NULL. */
static void store_share(ptx *p, const mla_work *w, unsigned head, val row, const val *factor)
{
    const share *s = &w->value;
    val results[MOST_VALUES];
    for (unsigned j = 0; j < s->values; j++) {
        results[j] = get(p, w->results_of[head][j]);
        if (factor)
            results[j] = mul(p, results[j], *factor);
    }
    val lines = mad_wide(p, w->lane, LINE_BYTES, row);
    for (unsigned j = 0; j < s->lines; j++)
        store_floats(p, lines, (int64_t)j * SET_LANES * LINE_BYTES, LINE_VALUES,
                     results + (size_t)j * LINE_VALUES);
    for (unsigned j = 0; j < s->singles; j++)
        PTX_IF (p, has_single(p, w, s, j))
            st_global(p, F32, mad_wide(p, single_place(p, w, s, j), F32_BYTES, row), 0,
                      results[s->lines * LINE_VALUES + j]);
}

/* Stores a chunk's result if it is the only chunk, else its partial rows. */
static void store_chunk(ptx *p, const mla_work *w, val chunk)
{
    val alone = eq(p, w->block.active, 1);
    mla_softmax_lane own = softmax_lane_of(p, w);
    mla_softmax_share(p, &w->softmax, &own);
    for (unsigned i = 0; i < w->heads; i++) {
        val number = add(p, mul(p, w->set, w->heads), i),
            query = mla_query_row(p, &w->block, number);
        val slot = add(p, mul(p, w->set, w->size), i);
        val2 state = mla_softmax_state(p, &w->softmax, slot);
        PTX_IF (p, mla_has_head(p, &w->block, number)) {
            PTX_IF (p, alone) {
                val factor = select(p, gt(p, state.v[1], 0.0f), rcp(p, state.v[1]), imm(F32, 0));
                store_share(p, w, i,
                            mad_wide(p, query, w->in->shape.latent * F32_BYTES, parameter(p, "o")),
                            &factor);
            }
            PTX_ELSE (p) {
                val row = mla_partial(p, &w->block, query, chunk);
                store_share(p, w, i, row, NULL);
                PTX_IF (p, eq(p, w->lane, 0))
                    partial_store_sums(p, &w->block.results, row, state.v[0], state.v[1]);
            }
        }
    }
}

static void mla_attention_build(ptx *p, const instance *in)
{
    if (!is_settled(in))
        wait_for_launches(p);
    if (in->options.halves) {
        mla_halves_build(p, in);
        return;
    }
    mla_work w = mla_work_new(p, in);
    mla_block_begin(p, &w.block);
    phase(p, "load q");
    for (unsigned i = 0; i < w.size; i++)
        load_query(p, &w, i);
    for (unsigned i = 0; i < w.heads; i++)
        for (unsigned j = 0; j < w.value.values; j++)
            w.results_of[i][j] = var_f32(p, 0.0f);
    PTX_FOR (p, chunk, ctaid_z(p), w.block.active, nctaid_z(p)) {
        attend(p, &w, mla_chunk(p, &w.block, chunk));
        phase(p, "store the chunk's result");
        store_chunk(p, &w, chunk);
        mla_softmax_clear(p, &w.softmax);
        for (unsigned i = 0; i < w.heads; i++)
            for (unsigned j = 0; j < w.value.values; j++)
                assign(p, w.results_of[i][j], 0.0f);
    }
    mla_merge(p, &w.block);
}

static int64_t slots(const instance *in)
{
    unsigned size = 1;
    while (size < formula_unsigned("heads", in))
        size *= 2;
    unsigned all = size * formula_unsigned("sets", in);
    return (all + LINE_VALUES - 1) / LINE_VALUES * LINE_VALUES;
}

static int64_t threads(const instance *in)
{
    return in->options.halves ? MLA_HALVES_THREADS : formula_unsigned("sets", in) * SET_LANES;
}

static int64_t block_heads(const instance *in)
{
    return in->options.halves ? MLA_HALVES_HEADS
                              : formula_unsigned("sets", in) * formula_unsigned("heads", in);
}

/* Returns the bytes of shared memory: a tile of rows, its products twice and its weights (each
 * position padded by 4), a factor, a max and a sum per head, and the ticket. */
static int64_t shared(const instance *in)
{
    return in->options.halves
               ? mla_halves_shared(in)
               : formula_value("16*(latent+n_rope)*4 + 48*(slots+4)*4 + slots*12 + 4", in, NULL);
}

static const choice products_choices[] = CHOICES({ "f32", "" }, { "f16", "_products_f16" });

static const char *check_mla_attention(const instance *in, arena *a, const char **blamed)
{
    long long width = in->shape.latent + in->shape.n_rope;
    const char *wrong_page = check_page(in, a, blamed);
    if (wrong_page)
        return wrong_page;
    if (!in->options.halves || width <= MLA_MOST_HALVES)
        return NULL;
    return blame_key(a, blamed, "products",
                     "latent + n_rope = %lld is above %d, the limit of products = f16; use "
                     "products = f32",
                     width, MLA_MOST_HALVES);
}

const family mla_attention = {
    .name = "mla_attention",
    .summary = "decode attention over latents (MLA) of m rows, split in chunks",
    .computes = "o[m,h] = softmax(q[m,h] c[m]' scale) c[m][0..latent]",
    F32_FAMILY(OP_MLA_ATTENTION, mla_attention_build, ref_attention, 2e-6),
    .keys = KEYS(KEY_MLA_HEADS, KEY_MLA_LATENT(), KEY_MLA_ROPE, KEY_MAX_SEQ_LEN,
                 KEY_NUMBER("m", "rows", shape.m, 1, 65535, .required = true, .at_run_time = true,
                            .tag = "m"),
                 KEY_NUMBER("chunk_size", "positions per chunk", shape.chunk_size, 32, 1 << 20,
                            .multiple_of = TILE, .def = 128, .tag = "cs"),
                 KEY_MLA_KV_TYPE, KEY_PAGE,
                 KEY_REAL("scale", "factor of q.c; models use 1/sqrt(nope+n_rope)", options.scale,
                          "scale", RANGE(.max = 1e6, .def_text = "1/sqrt(latent+n_rope)")),
                 KEY_WORD("products", "type of the products' factors", options.halves,
                          products_choices, .sm = 80),
                 KEY_STATE("settled: lengths and pages read early"), KEY_NEXT, KEY_DIMS),
    .params = PARAMS(OUT(F32, o, "m*num_heads*latent", 16),
                     SCRATCH(F32, partials, "m*num_heads*most_chunks*(latent+4)", 16),
                     COUNTERS(counters, "m*num_heads"), QUERIES("m*num_heads*(latent+n_rope)"),
                     MLA_POOL(IN), SEQUENCE_LENGTHS, ROW_SEQUENCES, PAGE_TABLE, NEXT_WEIGHTS),
    .launch = { .block = "threads",
                .grid = { "parts", "m",
                          "min(min(most_chunks, 1024), max(1, waves*at_once/columns))" },
                .shared = "shared",
                .terms = TERMS(
                    { "all_sets", "ceil_div(num_heads, 8)" },
                    { "heads", "ceil_div(num_heads, all_sets)" }, { "sets", "min(all_sets, 2)" },
                    { "parts", "ceil_div(num_heads, block_heads)" }, { "columns", "parts*m" },
                    { "at_once", "sm_count*2" }, { "waves", "ceil_div(columns*4, at_once)" }),
                .sizes = SIZES(
                    CACHE_PAGES,
                    { "most_chunks", attention_most_chunks, "chunks of max_seq_len positions" },
                    { "threads", threads, "threads per block" },
                    { "block_heads", block_heads, "heads per block; 16 with products = f16" },
                    { "shared", shared, "bytes per block" },
                    { "slots", slots,
                      "heads per block, padded: each set to a power of two, all to a "
                      "multiple of 4" }),
                .overlap = WAITS_ITSELF,
                .registers = 248 },
    .check = check_mla_attention,
};
