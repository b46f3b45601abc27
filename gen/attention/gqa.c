/* gqa with f32 sums. A warp processes its positions in tiles of 64, in three passes:
 *
 *   1. q K'. A group of lanes has a position's row (see cache_row.h): 8 values per lane, and the
 *      same 8 of q for every head, in registers. Products go to shared memory, [head, position].
 *      The block stages q there in the order of the loads, [product, four values, lane].
 *   2. The online softmax of each head; lanes share its positions. Each product is capped and
 *      exponentiated once, and replaced by its weight.
 *   3. P V. The same lanes have 8 values of V and of every head's result in registers. Results are
 *      added to the warp's partial rows in shared memory.
 *
 * q is dead when the results become live, which leaves registers for 8 heads.
 *
 * In passes 1 and 2 heads form sets of 1, 2, 4 or 8. Product i of a lane belongs to head i ^ lane
 * of the set, so that two lanes add up by exchanging halves: of products i and i + size/2, a lane
 * keeps the first and receives the missing part of it, which the lane at distance size/2 has at i +
 * size/2. For 8 heads this takes 7 shuffles instead of 24, and no select. Seven heads form a set of
 * 8 with the last head twice, which takes fewer shuffles than sets of 4, 2 and 1.
 *
 * A group processes four positions per iteration, so that the products of a head are one 16-byte
 * word in shared memory. While a row is used, the next row for its registers is loaded. After a
 * tile's last position this is a row of the next tile; after the last position it is the same row
 * again, with weight 0. */
#include "gen/attention/gqa.h"

#include <float.h>

#include "gen/common/reduce.h"

enum {
    VALUES = 8,           /* values of a row per lane */
    LEAST_GROUP = 4,      /* lanes per position */
    WORDS_IN_FLIGHT = 20, /* registers per lane */
    LEFT_BY_SEVEN = 16,   /* registers per lane with seven heads, which have eight products */
    QUAD_BYTES = GQA_QUAD * F32_BYTES,
    PASS_BYTES = 128, /* bytes of shared memory per conflict-free access of a warp */
};

/* Places the heads of a set at a distance at which a warp that accesses the same positions of all
 * heads has no bank conflicts. */
static void split_heads(gqa *g)
{
    unsigned offset = 0, slot = 0;
    for (unsigned first = 0; first < g->heads; first += g->sets[g->set_count++].heads) {
        head_set *s = &g->sets[g->set_count];
        unsigned left = g->heads - first;
        s->first = first;
        s->size = GQA_HEADS;
        while (s->size > g->row.split.group || (s->size > left && left != GQA_HEADS - 1))
            s->size /= 2;
        s->heads = s->size < left ? s->size : left;
        s->offset = offset;
        s->stride = GQA_TILE * F32_BYTES + (s->size > 1 ? PASS_BYTES / s->size : 0);
        offset += s->size * s->stride;
        s->slot = slot;
        slot += s->size;
    }
}

unsigned gqa_query_values(const instance *in, unsigned heads)
{
    /* A group has as many values for any head_dim up to UNIT. A whole warp has 8 or 16 per lane. */
    enum { UNIT = 128, OF_WARP = WARP * VALUES };
    unsigned slots = heads == GQA_HEADS - 1 ? GQA_HEADS : heads;
    unsigned unit = in->shape.head_dim > OF_WARP ? OF_WARP : UNIT;
    return slots * (((unsigned)in->shape.head_dim + unit - 1) / unit) * unit;
}

unsigned gqa_step(const instance *in)
{
    return WARP / row_split_of(in, VALUES, LEAST_GROUP).group * GQA_QUAD;
}

static val head_in_set(ptx *p, const gqa *g, const head_set *s)
{
    return bit_and(p, g->row.lane, s->size - 1);
}

/* Returns the partial row of head lane % size of a set; past the last head, of the last head. */
static val row_of_head(ptx *p, const gqa *g, const head_set *s)
{
    val head = head_in_set(p, g, s);
    if (s->heads < s->size)
        head = min(p, head, s->heads - 1);
    return mad(p, add(p, head, s->first), imm(U32, g->row_stride), g->rows);
}

static void store_sums(ptx *p, const gqa *g, const head_set *s, val max, val sum)
{
    PTX_IF (p, lt(p, lane_id(p), s->heads))
        partial_store_sums(p, g->in, row_of_head(p, g, s), max, sum);
}

static void make_results_zero(ptx *p, const gqa *g)
{
    for (unsigned h = 0; h < g->heads; h++)
        for (unsigned j = 0; j < row_split_values(&g->row.split); j++)
            assign(p, g->results[h][j], imm(F32, 0));
}

static void make_rows_zero(ptx *p, const gqa *g)
{
    PTX_IF (p, eq(p, g->row.group, 0))
        for (unsigned h = 0; h < g->heads; h++)
            row_lane_store(p, &g->row, add(p, g->lane_rows, h * g->row_stride), g->results[h],
                           NULL);
    for (unsigned i = 0; i < g->set_count; i++)
        store_sums(p, g, &g->sets[i], V(-FLT_MAX), V(0.0f));
}

void gqa_clear(ptx *p, const gqa *g)
{
    make_results_zero(p, g);
    make_rows_zero(p, g);
    warp_barrier(p);
}

gqa gqa_new(ptx *p, const instance *in, unsigned heads, val queries, val products, val rows,
            unsigned row_stride)
{
    gqa g = { .in = in,
              .heads = heads,
              .step = gqa_step(in),
              .products = products,
              .rows = rows,
              .row_stride = row_stride };
    row_split split = row_split_of(in, VALUES, LEAST_GROUP);
    type word = split.format == FORMAT_F32 ? F32 : U32;
    unsigned words = heads == GQA_HEADS - 1 ? LEFT_BY_SEVEN : WORDS_IN_FLIGHT;
    g.depth = GQA_QUAD;
    while (g.depth * raw_row_words(&split) > words)
        g.depth /= 2;
    g.row = row_lane_new(p, in, split);
    g.queries = mad(p, g.row.lane, imm(U32, QUAD_BYTES), queries);
    g.lane_rows = row_lane_at(p, &g.row, rows);
    split_heads(&g);
    for (unsigned i = 0; i < g.set_count; i++)
        g.sets[i].tile_max = var_f32(p, -FLT_MAX);
    for (unsigned i = 0; i < g.depth; i++)
        for (unsigned j = 0; j < raw_row_words(&split); j++)
            g.raw[i][j] = ptx_var(p, word, imm(word, 0));
    for (unsigned h = 0; h < heads; h++)
        for (unsigned j = 0; j < row_split_values(&split); j++)
            g.results[h][j] = var_f32(p, 0.0f);
    make_rows_zero(p, &g);
    return g;
}

/* Returns the byte offset of four of the lane's values of q, for a product of a set. */
static int64_t query_offset(const gqa *g, const head_set *s, unsigned product, unsigned value)
{
    unsigned quads = row_split_values(&g->row.split) / 4, lanes = g->row.split.group;
    return (((int64_t)s->slot + product) * quads + value / 4) * lanes * QUAD_BYTES;
}

/* A warp stages one product of a set; one of its groups of lanes has all values. */
void gqa_stage_queries(ptx *p, const gqa *g, val query, val last_query)
{
    for (const head_set *s = g->sets; s < g->sets + g->set_count; s++) {
        unsigned bytes = (unsigned)(query_offset(g, s, 1, 0) - query_offset(g, s, 0, 0));
        PTX_FOR (p, product, warp_id(p), s->size, ptx_block(p) / WARP) {
            val head = add(p, bit_xor(p, head_in_set(p, g, s), product), s->first);
            val row = mad_wide(p, min(p, add(p, query, head), last_query),
                               g->in->shape.head_dim * F32_BYTES, parameter(p, "q"));
            val values[MAX_LANE_VALUES];
            row_lane_load(p, &g->row, row, attention_query_scale(g->in), values);
            val at = mad(p, product, imm(U32, bytes), g->queries);
            PTX_IF (p, eq(p, g->row.group, 0))
                for (unsigned i = 0; i < row_split_values(&g->row.split); i += 4)
                    store_floats(p, at, query_offset(g, s, 0, i), 4, values + i);
        }
    }
    barrier(p);
}

/* Loads the lane's row i into registers. turn is the first position of its current four. */
static void load_row(ptx *p, const gqa *g, val cache, val turn, unsigned i)
{
    val position = add(p, turn, i / GQA_QUAD * g->step + i % GQA_QUAD);
    val number = min(p, position, g->last);
    /* Positions of a ring are counted from the ring's start, so they are below twice its rows. For
     * a position below `ring` the subtraction wraps around to a larger number. */
    int64_t ring = g->in->options.ring;
    val row = ring ? min(p, number, sub(p, number, ring)) : number;
    row = cache_pages_row(p, &g->pages, row);
    val first = mad_wide(p, row, cache_row_bytes(g->in), cache);
    raw_row loaded = raw_row_load(p, &g->row, first, add(p, first, g->row.last_offset), 0);
    for (unsigned j = 0; j < raw_row_words(&g->row.split); j++)
        assign(p, g->raw[i % g->depth][j], loaded.words[j]);
}

static void load_first(ptx *p, const gqa *g, val cache, val first)
{
    for (unsigned i = 0; i < g->depth; i++)
        load_row(p, g, cache, first, i);
}

static void take_row(ptx *p, const gqa *g, unsigned i, val values[MAX_LANE_VALUES])
{
    raw_row row = { { { 0 } } };
    for (unsigned j = 0; j < raw_row_words(&g->row.split); j++)
        row.words[j] = get(p, g->raw[i % g->depth][j]);
    raw_row_unpack(p, &g->row, &row, values);
}

/* Returns the product of head lane % size of a set. */
static val multiply(ptx *p, const gqa *g, const head_set *s, const val *values)
{
    val sums[GQA_HEADS];
    for (unsigned i = 0; i < s->size; i++) {
        sums[i] = mul(p, s->q[i][0], values[0]);
        for (unsigned j = 1; j < row_split_values(&g->row.split); j++)
            sums[i] = fma(p, s->q[i][j], values[j], sums[i]);
    }
    for (unsigned half = s->size / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half; i++)
            sums[i] = add(p, sums[i], shuffle_xor(p, sums[i + half], half));
    return lanes_sum(p, sums[0], s->size, g->row.split.group);
}

static val quad_address(ptx *p, const gqa *g)
{
    return mad(p, g->row.group, imm(U32, QUAD_BYTES), g->products);
}

static void multiply_queries(ptx *p, gqa *g, val k, val first, val count)
{
    val store_at[GQA_SETS];
    for (unsigned i = 0; i < g->set_count; i++) {
        head_set *s = &g->sets[i];
        for (unsigned l = 0; l < s->size; l++)
            for (unsigned j = 0; j < row_split_values(&g->row.split); j += 4)
                load_floats(p, g->queries, query_offset(g, s, l, j), 4, s->q[l] + j);
        assign(p, s->tile_max, -FLT_MAX);
        store_at[i] = mad(p, head_in_set(p, g, s), imm(U32, s->stride), quad_address(p, g));
    }
    ptx_loop_work(p, GQA_QUAD * row_split_values(&g->row.split), "values");
    PTX_FOR (p, k_position, 0, count, g->step) {
        val4 products[GQA_SETS];
        val turn = add(p, first, k_position);
        for (unsigned i = 0; i < GQA_QUAD; i++) {
            val values[MAX_LANE_VALUES];
            take_row(p, g, i, values);
            for (unsigned j = 0; j < g->set_count; j++) {
                products[j].v[i] = multiply(p, g, &g->sets[j], values);
                assign(p, g->sets[j].tile_max, max(p, g->sets[j].tile_max, products[j].v[i]));
            }
            load_row(p, g, k, turn, i + g->depth);
        }
        for (unsigned j = 0; j < g->set_count; j++) {
            val at = mad(p, k_position, imm(U32, F32_BYTES), store_at[j]);
            PTX_IF (p, lt(p, g->row.lane, g->sets[j].size))
                st_shared_v4(p, F32, at, g->sets[j].offset, products[j]);
        }
    }
}

/* Replaces the products of a set's heads by weights; `largest` has weight 1. Returns their sum. The
 * lanes of a head share its positions, four at a time. */
static val weigh_products(ptx *p, const gqa *g, const head_set *s, val count, val largest)
{
    val head = mad(p, head_in_set(p, g, s), imm(U32, s->stride), g->products);
    val first = mul(p, div(p, lane_id(p), s->size), GQA_QUAD);
    val turns = div(p, add(p, count, g->step - 1), g->step);
    var sum = var_f32(p, 0.0f);
    PTX_FOR (p, position, first, mul(p, turns, g->step), WARP / s->size * GQA_QUAD) {
        val at = mad(p, position, imm(U32, F32_BYTES), head);
        val4 weights = ld_shared_v4(p, F32, at, s->offset);
        for (unsigned i = 0; i < GQA_QUAD; i++) {
            val score = attention_score(p, g->in, weights.v[i]);
            val weight = ex2(p, sub(p, score, largest));
            val exists = lt(p, add(p, position, i), count);
            weights.v[i] = select(p, exists, weight, imm(F32, 0));
            assign(p, sum, add(p, sum, weights.v[i]));
        }
        st_shared_v4(p, F32, at, s->offset, weights);
    }
    for (unsigned mask = s->size; mask < WARP; mask *= 2)
        assign(p, sum, add(p, sum, shuffle_xor(p, sum, mask)));
    return get(p, sum);
}

static void add_values(ptx *p, const gqa *g, val v, val first, val count)
{
    unsigned width = row_split_values(&g->row.split);
    val quad = quad_address(p, g);
    make_results_zero(p, g);
    ptx_loop_work(p, GQA_QUAD * width, "values");
    PTX_FOR (p, v_position, 0, count, g->step) {
        val at = mad(p, v_position, imm(U32, F32_BYTES), quad), turn = add(p, first, v_position);
        val2 weights[GQA_HEADS];
        for (unsigned i = 0; i < GQA_QUAD; i++) {
            if (i % 2 == 0) {
                /* Loads weights for two positions and every head. Four would spill with 8 heads. */
                int64_t offset = i * F32_BYTES;
                for (unsigned k = 0; k < g->set_count; k++) {
                    const head_set *s = &g->sets[k];
                    for (unsigned j = 0; j < s->heads; j++)
                        weights[s->first + j] =
                            ld_shared_v2(p, F32, at, offset + s->offset + j * s->stride);
                }
            }
            val values[MAX_LANE_VALUES];
            take_row(p, g, i, values);
            for (unsigned h = 0; h < g->heads; h++)
                for (unsigned j = 0; j < width; j++)
                    assign(p, g->results[h][j],
                           fma(p, weights[h].v[i % 2], values[j], g->results[h][j]));
            load_row(p, g, v, turn, i + g->depth);
        }
    }
}

void gqa_attend(ptx *p, gqa *g, cache_pages pages, val k, val v, positions run)
{
    g->pages = pages;
    if (g->in->options.ring)
        run = attention_within_ring(p, g->in->options.ring, run);
    val offset = row_lane_offset(p, &g->row);
    k = add(p, k, offset);
    v = add(p, v, offset);
    g->last = sub(p, run.end, 1);
    PTX_IF (p, lt(p, run.first, run.end))
        load_first(p, g, k, mad(p, g->row.group, imm(U32, GQA_QUAD), run.first));
    PTX_FOR (p, tile, run.first, run.end, GQA_TILE) {
        val count = min(p, sub(p, run.end, tile), GQA_TILE);
        val first = mad(p, g->row.group, imm(U32, GQA_QUAD), tile);
        phase(p, "products of q with the keys of a tile");
        multiply_queries(p, g, k, first, count);
        load_first(p, g, v, first);
        val2 sums[GQA_SETS];
        for (unsigned i = 0; i < g->set_count; i++)
            sums[i] = partial_load_sums(p, g->in, row_of_head(p, g, &g->sets[i]));
        warp_barrier(p);
        phase(p, "softmax: products to weights");
        for (unsigned i = 0; i < g->set_count; i++) {
            head_set *s = &g->sets[i];
            for (unsigned mask = g->row.split.group; mask < WARP; mask *= 2)
                assign(p, s->tile_max, max(p, s->tile_max, shuffle_xor(p, s->tile_max, mask)));
            val now = max(p, sums[i].v[0], attention_score(p, g->in, get(p, s->tile_max)));
            s->factor = ex2(p, sub(p, sums[i].v[0], now));
            val sum = weigh_products(p, g, s, count, now);
            store_sums(p, g, s, now, fma(p, sums[i].v[1], s->factor, sum));
        }
        warp_barrier(p);
        phase(p, "weighted values of the tile");
        add_values(p, g, v, first, count);
        load_first(p, g, k, add(p, first, GQA_TILE));
        phase(p, "add the tile to the warp's partial rows");
        for (unsigned i = 0; i < g->set_count; i++) {
            const head_set *s = &g->sets[i];
            for (unsigned l = 0; l < s->heads; l++) {
                const var *results = g->results[s->first + l];
                for (unsigned j = 0; j < row_split_values(&g->row.split); j++)
                    for (unsigned mask = g->row.split.group; mask < WARP; mask *= 2)
                        assign(p, results[j], add(p, results[j], shuffle_xor(p, results[j], mask)));
                val factor = shuffle_from(p, s->factor, l);
                row_lane_add(p, &g->row, add(p, g->lane_rows, (s->first + l) * g->row_stride),
                             factor, results);
            }
        }
        warp_barrier(p);
    }
}
