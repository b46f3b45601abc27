/* Flash decoding for grouped-query attention: a block serves all query heads of a KV head, for one
 * chunk of positions of a sequence, so that K and V come from memory once. flash_decoding_reduce
 * merges the chunks. Layouts are those of flash_decoding.c.
 *
 * A block takes up to 8 heads; where a KV head has more, they are spread over neighbouring blocks,
 * which find K and V in the L2 cache. Its four warps take a stretch of the chunk each and know
 * nothing of each other until the end, where their partial rows are merged. A warp does its stretch
 * in three passes:
 *
 *   1. q K'. A group of lanes has a position's row (see blocks/cache_row.h), 8 values a lane and
 *      the same of q for every head in registers. Products go to shared memory, [head, position].
 *   2. The softmax of each head, whose positions lanes share out: each product is capped and
 *      exponentiated once, and becomes a weight in place.
 *   3. P V, with the same lanes' 8 values of V and of every head's result in registers.
 *
 * q is gone when the results come: that is what leaves registers for 8 heads.
 *
 * In the first two passes heads stand in sets of 1, 2, 4 or 8. A lane's product number i of a set
 * is that of head i ^ lane, so that two lanes add up theirs by exchanging halves: of the products i
 * and i + size/2, a lane keeps the first and gets the first's other part, which its neighbour at
 * size/2 has at i + size/2. For 8 heads that takes 7 shuffles instead of 24, and no selection.
 *
 * A group takes four positions a turn, so that the products of a head are one 16-byte word in
 * shared memory. As soon as a row is in use, the one that will take its registers is loaded; behind
 * a stretch's last position it is the last one again, which counts nothing.
 */
#include <float.h>

#include "gen/attention_keys.h"
#include "gen/blocks/attention.h"

enum {
    WARP = 32,
    WARPS = 4,
    MOST_HEADS = 8,
    MOST_SETS = 4,
    VALUES = 8,      /* of a row, a lane */
    LEAST_GROUP = 4, /* lanes a position */
    QUAD = 4,        /* positions a group takes in a turn */
    STRETCH_UNIT = WARP / LEAST_GROUP * QUAD,
    F32_BYTES = 4,
    BYTES_IN_FLIGHT = 64, /* a lane */
    QUAD_BYTES = QUAD * F32_BYTES,
    PASS_BYTES = 128, /* of shared memory that a warp reaches without a conflict */
    HEAD_PAD = 16,    /* values, at most */
};

#define CHUNKS   "ceil_div(max_seq_len, chunk_size)"
#define PARTIALS "m*num_heads*" CHUNKS "*(head_dim+4)"
#define RATIO    "(num_heads/num_kv_heads)"
#define PARTS    "ceil_div(" RATIO ", 8)"
#define HEADS    "ceil_div(" RATIO ", " PARTS ")"
#define SHARED   "16*" HEADS "*max(head_dim+4, ceil_div(chunk_size, 128)*32+16)"

/* Heads that are added up together, and where their products are. */
typedef struct head_set {
    unsigned first, size;    /* size is a power of two and at most a group of lanes */
    unsigned offset, stride; /* bytes, of the first head and from head to head */
    val q[MOST_HEADS][MAX_LANE_VALUES];
    var max; /* of the products of head lane % size */
    val sum; /* of its weights */
} head_set;

typedef struct gqa {
    const instance *in;
    unsigned ratio, parts, heads; /* heads a KV head, blocks they are spread over, heads a block */
    val sequence, kv_head, first_head;
    row_lane row;
    head_set sets[MOST_SETS];
    unsigned set_count;
    unsigned step;                  /* positions of a warp's turn */
    unsigned depth;                 /* rows in flight */
    var raw[QUAD][MAX_LANE_VALUES]; /* rows in flight, */
    var values[MAX_LANE_VALUES];    /* and the one in use */
    val first, last, count; /* the lane's first position, the stretch's last one and their number */
    val scratch;            /* shared memory: the warps' products, later their partial rows */
    val products;           /* the warp's */
    var results[MOST_HEADS][MAX_LANE_VALUES];
} gqa;

static unsigned ceil_div(unsigned a, unsigned b)
{
    return (a + b - 1) / b;
}

/* The positions a warp may have, a multiple of those of any turn. */
static unsigned longest_stretch(const instance *in)
{
    return ceil_div((unsigned)in->shape.chunk_size, WARPS * STRETCH_UNIT) * STRETCH_UNIT;
}

static unsigned scratch_values(const gqa *g)
{
    unsigned row = partial_bytes(g->in) / F32_BYTES, products = longest_stretch(g->in) + HEAD_PAD;
    return WARPS * g->heads * (row > products ? row : products);
}

/* The heads of a set lie so far apart that a warp that takes the same positions of all of them
 * meets every bank once. */
static void split_heads(gqa *g)
{
    unsigned offset = 0, stretch = longest_stretch(g->in) * F32_BYTES;
    for (unsigned first = 0; first < g->heads; first += g->sets[g->set_count++].size) {
        head_set *s = &g->sets[g->set_count];
        s->first = first;
        s->size = MOST_HEADS;
        while (s->size > g->heads - first || s->size > g->row.split.group)
            s->size /= 2;
        s->offset = offset;
        s->stride = stretch + (s->size > 1 ? PASS_BYTES / s->size : 0);
        offset += s->size * s->stride;
    }
}

static gqa gqa_new(ptx *p, const instance *in)
{
    gqa g = { .in = in, .ratio = (unsigned)(in->shape.num_heads / in->shape.num_kv_heads) };
    g.parts = ceil_div(g.ratio, MOST_HEADS);
    g.heads = ceil_div(g.ratio, g.parts);
    row_split split = row_split_of(in, VALUES, LEAST_GROUP);
    g.step = WARP / split.group * QUAD;
    unsigned lane_bytes = raw_row_words(&split) * F32_BYTES;
    g.depth = lane_bytes * QUAD > BYTES_IN_FLIGHT ? BYTES_IN_FLIGHT / lane_bytes : QUAD;
    g.sequence = named(p, "sequence", ctaid_y(p));
    g.kv_head = named(p, "kv_head", div(p, ctaid_x(p), g.parts));
    val part = rem(p, ctaid_x(p), g.parts);
    g.first_head =
        named(p, "first_head", add(p, mul(p, g.kv_head, g.ratio), mul(p, part, g.heads)));
    g.row = row_lane_new(p, in, split);
    split_heads(&g);
    for (unsigned i = 0; i < row_split_values(&split); i++)
        g.values[i] = var_f32(p, 0.0f);
    for (unsigned i = 0; i < g.depth; i++)
        for (unsigned j = 0; j < raw_row_words(&split); j++)
            g.raw[i][j] = raw_row_var(p, &split);
    return g;
}

/* Stretches of equal length, whole turns. */
static void take_stretch(ptx *p, gqa *g, positions chunk)
{
    val turns =
        div(p, add(p, sub(p, chunk.end, chunk.first), WARPS * g->step - 1), WARPS * g->step);
    val length = mul(p, turns, g->step);
    val first = min(p, mad(p, warp_id(p), length, chunk.first), chunk.end);
    val end = min(p, add(p, first, length), chunk.end);
    g->count = named(p, "positions", sub(p, end, first));
    g->first = mad(p, g->row.group, imm(U32, QUAD), first);
    g->last = sub(p, end, 1);
}

static val in_sequence(ptx *p, const gqa *g, const char *parameter_name)
{
    val cache = attention_sequence_cache(p, parameter_name, g->sequence);
    val start = add(p, cache, attention_kv_head_offset(p, g->in, g->kv_head));
    return add(p, start, row_lane_offset(p, &g->row));
}

static val head_in_set(ptx *p, const gqa *g, const head_set *s)
{
    return bit_and(p, g->row.lane, s->size - 1);
}

/* Heads that the last of a KV head's blocks has too many are its last one again. */
static void load_queries(ptx *p, gqa *g, head_set *s)
{
    val last = add(p, mul(p, g->kv_head, g->ratio), g->ratio - 1);
    for (unsigned i = 0; i < s->size; i++) {
        val head = add(p, g->first_head, add(p, bit_xor(p, head_in_set(p, g, s), i), s->first));
        if (g->ratio % g->heads)
            head = min(p, head, last);
        val query = mad(p, g->sequence, imm(U32, g->in->shape.num_heads), head);
        val row = mad_wide(p, query, g->in->shape.head_dim * F32_BYTES, parameter(p, "q"));
        row_lane_load(p, &g->row, row, attention_query_scale(g->in), s->q[i]);
    }
}

static void load_row(ptx *p, const gqa *g, val cache, val position, unsigned i)
{
    val first = mad_wide(p, min(p, position, g->last), cache_row_bytes(g->in), cache);
    raw_row row = raw_row_load(p, &g->row, first, add(p, first, g->row.last_offset), 0);
    for (unsigned j = 0; j < raw_row_words(&g->row.split); j++)
        assign(p, g->raw[i % g->depth][j], row.words[j]);
}

/* Loads the row that follows position number i of the lane's four in a turn by depth rows, into the
 * same registers. */
static void load_ahead(ptx *p, const gqa *g, val cache, val turn, unsigned i)
{
    unsigned ahead = i + g->depth;
    val position = add(p, add(p, g->first, turn), ahead / QUAD * g->step + ahead % QUAD);
    load_row(p, g, cache, position, i);
}

static void load_first(ptx *p, const gqa *g, val cache)
{
    for (unsigned i = 0; i < g->depth; i++)
        load_row(p, g, cache, add(p, g->first, i), i);
}

/* Variables have the values, so that they are unpacked before the row's registers are loaded anew.
 */
static void take_row(ptx *p, const gqa *g, unsigned i)
{
    raw_row row = { { { 0 } } };
    val values[MAX_LANE_VALUES];
    for (unsigned j = 0; j < raw_row_words(&g->row.split); j++)
        row.words[j] = get(p, g->raw[i % g->depth][j]);
    raw_row_unpack(p, &g->row, &row, values);
    for (unsigned j = 0; j < row_split_values(&g->row.split); j++)
        assign(p, g->values[j], values[j]);
}

/* The product of head lane % size of a set. */
static val multiply(ptx *p, const gqa *g, const head_set *s)
{
    val sums[MOST_HEADS];
    for (unsigned i = 0; i < s->size; i++) {
        sums[i] = mul(p, s->q[i][0], g->values[0]);
        for (unsigned j = 1; j < row_split_values(&g->row.split); j++)
            sums[i] = fma(p, s->q[i][j], g->values[j], sums[i]);
    }
    for (unsigned half = s->size / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half; i++)
            sums[i] = add(p, sums[i], shuffle_xor(p, sums[i + half], half));
    for (unsigned mask = s->size; mask < g->row.split.group; mask *= 2)
        sums[0] = add(p, sums[0], shuffle_xor(p, sums[0], mask));
    return sums[0];
}

/* Shared memory has the products of the lane's group and the turn at position 0 at it. */
static val quad_address(ptx *p, const gqa *g)
{
    return mad(p, g->row.group, imm(U32, QUAD_BYTES), g->products);
}

static void multiply_queries(ptx *p, gqa *g, val k)
{
    val store_at[MOST_SETS];
    for (unsigned i = 0; i < g->set_count; i++) {
        head_set *s = &g->sets[i];
        load_queries(p, g, s);
        s->max = var_f32(p, -FLT_MAX);
        store_at[i] = mad(p, head_in_set(p, g, s), imm(U32, s->stride), quad_address(p, g));
    }
    load_first(p, g, k);
    ptx_loop_work(p, QUAD * row_split_values(&g->row.split) * g->heads, "products");
    PTX_FOR (p, k_position, 0, g->count, g->step) {
        val4 products[MOST_SETS];
        for (unsigned i = 0; i < QUAD; i++) {
            take_row(p, g, i);
            load_ahead(p, g, k, k_position, i);
            for (unsigned j = 0; j < g->set_count; j++) {
                products[j].v[i] = multiply(p, g, &g->sets[j]);
                assign(p, g->sets[j].max, max(p, g->sets[j].max, products[j].v[i]));
            }
        }
        for (unsigned j = 0; j < g->set_count; j++) {
            val at = mad(p, k_position, imm(U32, F32_BYTES), store_at[j]);
            PTX_IF (p, lt(p, g->row.lane, g->sets[j].size))
                st_shared_v4(p, F32, at, g->sets[j].offset, products[j]);
        }
    }
}

/* Makes weights of the products of a set's heads. Lanes of the same head take turns of four
 * positions. */
static void weigh(ptx *p, const gqa *g, head_set *s)
{
    for (unsigned mask = g->row.split.group; mask < WARP; mask *= 2)
        assign(p, s->max, max(p, s->max, shuffle_xor(p, s->max, mask)));
    val largest = attention_score(p, g->in, get(p, s->max));
    val head = mad(p, head_in_set(p, g, s), imm(U32, s->stride), g->products);
    val first = mul(p, div(p, lane_id(p), s->size), QUAD);
    val turns = div(p, add(p, g->count, g->step - 1), g->step);
    var sum = var_f32(p, 0.0f);
    PTX_FOR (p, position, first, mul(p, turns, g->step), WARP / s->size * QUAD) {
        val at = mad(p, position, imm(U32, F32_BYTES), head);
        val4 weights = ld_shared_v4(p, F32, at, s->offset);
        for (unsigned i = 0; i < QUAD; i++) {
            val score = attention_score(p, g->in, weights.v[i]);
            val weight = ex2(p, sub(p, score, largest));
            val exists = lt(p, add(p, position, i), g->count);
            weights.v[i] = select(p, exists, weight, imm(F32, 0));
            assign(p, sum, add(p, sum, weights.v[i]));
        }
        st_shared_v4(p, F32, at, s->offset, weights);
    }
    for (unsigned mask = s->size; mask < WARP; mask *= 2)
        assign(p, sum, add(p, sum, shuffle_xor(p, sum, mask)));
    assign(p, s->max, largest);
    s->sum = get(p, sum);
}

/* Of two positions of every head: more would not leave registers enough for 8 heads. */
static void load_weights(ptx *p, const gqa *g, val at, int64_t offset, val2 weights[MOST_HEADS])
{
    for (unsigned i = 0; i < g->set_count; i++) {
        const head_set *s = &g->sets[i];
        for (unsigned j = 0; j < s->size; j++)
            weights[s->first + j] = ld_shared_v2(p, F32, at, offset + s->offset + j * s->stride);
    }
}

static void add_values(ptx *p, gqa *g, val v)
{
    unsigned count = row_split_values(&g->row.split);
    val quad = quad_address(p, g);
    for (unsigned h = 0; h < g->heads; h++)
        for (unsigned j = 0; j < count; j++)
            g->results[h][j] = var_f32(p, 0.0f);
    ptx_loop_work(p, QUAD * count * g->heads, "products");
    PTX_FOR (p, v_position, 0, g->count, g->step) {
        val at = mad(p, v_position, imm(U32, F32_BYTES), quad);
        val2 weights[MOST_HEADS];
        for (unsigned i = 0; i < QUAD; i++) {
            if (i % 2 == 0)
                load_weights(p, g, at, i * F32_BYTES, weights);
            take_row(p, g, i);
            load_ahead(p, g, v, v_position, i);
            for (unsigned h = 0; h < g->heads; h++)
                for (unsigned j = 0; j < count; j++)
                    assign(p, g->results[h][j],
                           fma(p, weights[h].v[i % 2], g->values[j], g->results[h][j]));
        }
    }
    for (unsigned h = 0; h < g->heads; h++)
        for (unsigned j = 0; j < count; j++)
            for (unsigned mask = g->row.split.group; mask < WARP; mask *= 2)
                assign(p, g->results[h][j],
                       add(p, g->results[h][j], shuffle_xor(p, g->results[h][j], mask)));
}

/* The warps' partial rows, [heads, warps] in shared memory. */
static void store_rows(ptx *p, const gqa *g)
{
    unsigned row_bytes = partial_bytes(g->in);
    val rows = mad(p, warp_id(p), imm(U32, row_bytes), g->scratch);
    val at = row_lane_at(p, &g->row, rows, true);
    PTX_IF (p, eq(p, g->row.group, 0))
        for (unsigned h = 0; h < g->heads; h++)
            row_lane_store(p, &g->row, add(p, at, h * WARPS * row_bytes), true, g->results[h],
                           NULL);
    for (unsigned i = 0; i < g->set_count; i++) {
        const head_set *s = &g->sets[i];
        PTX_IF (p, lt(p, lane_id(p), s->size)) {
            val head = add(p, head_in_set(p, g, s), s->first);
            val row = mad(p, head, imm(U32, WARPS * row_bytes), rows);
            partial_store_sums(p, g->in, row, true, get(p, s->max), s->sum);
        }
    }
}

static void merge_warps(ptx *p, const gqa *g, val chunk)
{
    unsigned row_bytes = partial_bytes(g->in);
    val heads = imm(U32, g->heads);
    if (g->ratio % g->heads)
        heads =
            min(p, heads, sub(p, add(p, mul(p, g->kv_head, g->ratio), g->ratio), g->first_head));
    PTX_FOR (p, head, warp_id(p), heads, WARPS) {
        val query =
            mad(p, g->sequence, imm(U32, g->in->shape.num_heads), add(p, g->first_head, head));
        val row = mad_wide(p, chunk, row_bytes, partial_rows(p, g->in, query));
        partials_merge_to_partial(p, g->in, mad(p, head, imm(U32, WARPS * row_bytes), g->scratch),
                                  WARPS, row);
    }
}

static void build(ptx *p, const instance *in)
{
    gqa g = gqa_new(p, in);
    val chunk = named(p, "chunk", ctaid_z(p));
    val seq_len = attention_sequence_length(p, g.sequence);
    positions own = attention_chunk_positions(p, in, seq_len, chunk);
    ret_if(p, ge(p, own.first, own.end));
    take_stretch(p, &g, own);
    g.scratch = shared_array(p, "scratch", F32, scratch_values(&g));
    g.products = mad(p, warp_id(p), imm(U32, scratch_values(&g) / WARPS * F32_BYTES), g.scratch);
    multiply_queries(p, &g, in_sequence(p, &g, "k"));
    val v = in_sequence(p, &g, "v");
    load_first(p, &g, v);
    warp_barrier(p);
    for (unsigned i = 0; i < g.set_count; i++)
        weigh(p, &g, &g.sets[i]);
    warp_barrier(p);
    add_values(p, &g, v);
    barrier(p);
    store_rows(p, &g);
    barrier(p);
    merge_warps(p, &g, chunk);
}

const family gqa_flash_decoding_chunk = {
    .name = "gqa_flash_decoding_chunk",
    .summary = "decode attention of m sequences by chunks, a block all query heads of a KV head",
    .computes = "partials[m,h,c] = sum over chunk c of exp(s-max) V[m], max, sum of exp(s-max)",
    .op = OP_ATTENTION_CHUNKS,
    .activations = FORMAT_F32,
    .preference = 1,
    .keys = (const key[]){ ATTENTION_SHAPE, KEY_SEQUENCES, KEY_CHUNK_SIZE, ATTENTION_OPTIONS,
                           KEY_DIMS, KEY_END },
    .params =
        (const param[]){
            OUT(F32, partials, PARTIALS, 16),
            IN(F32, q, "m*num_heads*head_dim", 16),
            KV_CACHES(k),
            KV_CACHES(v),
            IN(U32, seq_lens, "m", 4),
            PARAM_END,
        },
    .launch = { .block = "128",
                .grid = { "num_kv_heads*" PARTS, "m", CHUNKS },
                .shared = SHARED,
                .registers = 168 },
    .check = check_flash_decoding,
    .build = build,
    .reference = ref_attention_chunks,
    .tolerance = 2e-6,
};
