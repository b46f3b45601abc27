/* gqa on the tensor cores, for f16 caches.
 *
 * The heads are the columns of the products, in sets of 8; positions or values are the rows. So few
 * heads need few registers for results. A warp processes its positions in tiles of 16, or 32 for
 * short heads:
 *
 *   1. K q'. The order of the values in a product is free if both factors have the same. Lane t
 *      (= lane % 4) has values 8t .. 8t + 7 of each 32, so that the 16 bytes that it loads of rows
 *      g (= lane / 4) and g + 8 are its fragments of two matrices.
 *   2. The online softmax. A lane has the products of positions g and g + 8 and heads 2t and
 *      2t + 1. Their weights as f16, transposed, are its fragment of a matrix of the next product.
 *   3. V' P'. A lane has 8 neighbouring values of four positions, and prmt makes its fragments of
 *      four matrices from them: rows g and g + 8 of matrix j are values 8g + 2j and 8g + 2j + 1 of
 *      64. The sum of the weights is computed from the rounded weights, as a product with ones. A
 *      rounding error then moves a result only by the distance of a value from the mean.
 *
 * K, V and the weights never go through shared memory. Loads reuse registers as soon as they are
 * free: those of K and V for the next tile; for long heads, where K and V share registers, V of
 * this tile replaces its K, and K of the next tile replaces V. Past the last position the last row
 * is loaded again; its weight is 0.
 *
 * Two warps share the positions of rows of more than 256 values. Each has half of every row of K
 * and V, with the registers of a head of half the size. They add up their products through shared
 * memory, and then have the same weights.
 *
 * A row of q is multiplied by a power of two (common/halves.h), so that no finite value overflows
 * f16. */
#include <float.h>
#include <math.h>

#include "gen/attention/gqa.h"
#include "gen/common/halves.h"
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"

enum {
    SET = GQA_HALVES_SET,
    QUAD = 4, /* lanes with the same row */
    DEPTH = 16,
    HALF_DEPTH = DEPTH / 2,
    HALF_BYTES = 2,
    PIECE = 8, /* values of a cache row */
    PIECE_BYTES = PIECE * HALF_BYTES,
    UNIT = QUAD * PIECE,
    UNIT_BYTES = UNIT * HALF_BYTES,
    GROUP = GQA_HALVES_VALUES,
    GROUP_BYTES = GROUP * HALF_BYTES,
    GROUP_MATRICES = GROUP / DEPTH,
    DEPTH_ROWS = 4, /* rows of V of which a lane has a piece */
    MOST_DEPTHS = 2,
    WORD_BYTES = 4,
    UNIT_WORDS = 4, /* words of a unit per lane */
    ONES = 0x3c003c00,
    PAIR = 2,  /* warps */
    WARPS = 4, /* of a block */
};

/* Short heads have twice as many positions per tile, which gives the same bytes in flight. */
unsigned gqa_halves_step(const instance *in)
{
    return in->shape.head_dim == GROUP ? MOST_DEPTHS * DEPTH : DEPTH;
}

/* Returns true if q is in shared memory, because many or long heads leave no registers for it. */
static bool is_parked(const instance *in, unsigned heads)
{
    return heads > SET || in->shape.head_dim > GQA_HALVES_LONG_HEAD;
}

unsigned gqa_halves_registers(const instance *in, unsigned heads)
{
    enum { OF_THREE = 168, OF_TWO = 255 };
    return is_parked(in, heads) ? OF_TWO : OF_THREE;
}

unsigned gqa_halves_sharers(const instance *in)
{
    return in->shape.head_dim > PROBLEM_SPLIT_HEAD_DIM ? PAIR : 1;
}

/* Words per block of the products, twice since a warp may be a tile ahead, and of maxima. */
enum { PRODUCT_WORDS = 2 * WARPS * WARP * 4, MAXIMUM_WORDS = WARPS * SET };

unsigned gqa_halves_query_words(const instance *in, unsigned heads)
{
    unsigned sets = (heads + SET - 1) / SET;
    unsigned further = gqa_halves_sharers(in) > 1 ? PRODUCT_WORDS + MAXIMUM_WORDS : 0;
    return is_parked(in, heads)
               ? sets * (unsigned)in->shape.head_dim / UNIT * WARP * UNIT_WORDS + further
               : 0;
}

static unsigned parked_offset(const gqa_halves *g, unsigned set, unsigned unit)
{
    return (set * g->units + unit) * WARP * UNIT_WORDS * WORD_BYTES;
}

static void take_factors(ptx *p, gqa_halves *g, unsigned set, val exponent)
{
    val factor = attention_factor_of_power(p, g->in, exponent);
    for (unsigned i = 0; i < 2; i++) /* factor of head 2t + i, from lane 4 (2t + i) */
        g->factor[set][i] = shuffle_from(p, factor, mad(p, g->part, 2 * QUAD, imm(U32, i * QUAD)));
}

/* Loads the lane's part of head g of each set as fragments of B, and computes the factors that undo
 * the powers of two and apply the scale. */
static void load_queries(ptx *p, gqa_halves *g, val query, val last_query)
{
    for (unsigned set = 0; set < g->sets; set++) {
        val row = min(p, add(p, query, add(p, g->group, set * SET)), last_query);
        val from = mad_wide(p, row, (unsigned)g->in->shape.head_dim * F32_BYTES, parameter(p, "q"));
        from = add(p, from, mul_wide(p, g->part, PIECE * F32_BYTES));
        val values[GQA_HALVES_UNITS][PIECE], largest = imm(U32, 0);
        for (unsigned unit = 0; unit < g->units; unit++) {
            load_floats(p, from, unit * UNIT * F32_BYTES, PIECE, values[unit]);
            largest = q8_largest(p, largest, values[unit], PIECE);
        }
        val exponent = power_for_halves(p, group_max(p, largest, QUAD));
        val power = power_of_two(p, exponent);
        for (unsigned unit = 0; unit < g->units; unit++)
            for (unsigned i = 0; i < UNIT_WORDS; i++)
                g->q[set][unit].v[i] = pack_halves(p, mul(p, values[unit][2 * i], power),
                                                   mul(p, values[unit][2 * i + 1], power));
        take_factors(p, g, set, exponent);
        if (g->parked.kind)
            PTX_IF (p, eq(p, warp_id(p), 0))
                for (unsigned unit = 0; unit < g->units; unit++)
                    st_shared_v4(p, U32, g->parked, parked_offset(g, set, unit), g->q[set][unit]);
    }
}

/* Does the same for long rows. Each warp loads a share of the units. Maxima of a row's units are
 * exchanged through shared memory. */
static void share_queries(ptx *p, gqa_halves *g, val query, val last_query, val maxima)
{
    val row = min(p, add(p, query, g->group), last_query);
    val from = mad_wide(p, row, (unsigned)g->in->shape.head_dim * F32_BYTES, parameter(p, "q"));
    from = add(p, from, mul_wide(p, g->part, PIECE * F32_BYTES));
    val values[PAIR * GQA_HALVES_UNITS / WARPS][PIECE], largest = imm(U32, 0);
    unsigned units = PAIR * g->units, count = units / WARPS;
    for (unsigned i = 0; i < count; i++) {
        val unit = add(p, warp_id(p), i * WARPS);
        load_floats(p, mad_wide(p, unit, UNIT * F32_BYTES, from), 0, PIECE, values[i]);
        largest = q8_largest(p, largest, values[i], PIECE);
    }
    largest = group_max(p, largest, QUAD);
    val own = mad(p, g->group, WORD_BYTES, maxima);
    PTX_IF (p, eq(p, g->part, 0))
        st_shared(p, U32, mad(p, warp_id(p), imm(U32, SET * WORD_BYTES), own), 0, largest);
    barrier(p);
    for (unsigned warp = 0; warp < WARPS; warp++)
        largest = max(p, largest, ld_shared(p, U32, own, warp * SET * WORD_BYTES));
    val exponent = power_for_halves(p, largest), power = power_of_two(p, exponent);
    for (unsigned i = 0; i < count; i++) {
        val unit = add(p, warp_id(p), i * WARPS);
        val4 words;
        for (unsigned j = 0; j < UNIT_WORDS; j++)
            words.v[j] = pack_halves(p, mul(p, values[i][2 * j], power),
                                     mul(p, values[i][2 * j + 1], power));
        st_shared_v4(p, U32, mad(p, unit, imm(U32, parked_offset(g, 0, 1)), g->parked), 0, words);
    }
    take_factors(p, g, 0, exponent);
}

gqa_halves gqa_halves_new(ptx *p, const instance *in, unsigned heads, val query, val last_query,
                          val queries, val rows, unsigned row_stride)
{
    gqa_halves g = { .in = in,
                     .heads = heads,
                     .sets = (heads + SET - 1) / SET,
                     .paired = gqa_halves_sharers(in) > 1,
                     .depths = gqa_halves_step(in) / DEPTH,
                     .units = (unsigned)in->shape.head_dim / gqa_halves_sharers(in) / UNIT,
                     .matrices = (unsigned)in->shape.head_dim / gqa_halves_sharers(in) / DEPTH,
                     .group = named(p, "group", div(p, lane_id(p), QUAD)),
                     .part = named(p, "part", bit_and(p, lane_id(p), QUAD - 1)),
                     .rows = rows,
                     .row_stride = row_stride };
    unsigned own = g.depths * 2 * g.units; /* pieces of a tile, of K or of V */
    if (is_parked(in, heads))
        g.parked = mad(p, lane_id(p), UNIT_WORDS * WORD_BYTES, queries);
    g.v_pieces = in->shape.head_dim > GQA_HALVES_LONG_HEAD ? 0 : own;
    if (g.paired) { /* q, then products, then maxima are in shared memory */
        unsigned row_bytes = parked_offset(&g, 0, PAIR * g.units);
        val products = add(p, queries, row_bytes), pair = div(p, warp_id(p), PAIR);
        g.half = named(p, "half", rem(p, warp_id(p), PAIR));
        share_queries(p, &g, query, last_query, add(p, products, PRODUCT_WORDS * WORD_BYTES));
        g.parked = mad(p, g.half, imm(U32, row_bytes / PAIR), g.parked);
        g.products = mad(p, mad(p, pair, PAIR * WARP, lane_id(p)), 4 * WORD_BYTES, products);
    } else {
        load_queries(p, &g, query, last_query);
    }
    for (unsigned i = 0; i < g.v_pieces + own; i++)
        for (unsigned j = 0; j < 4; j++)
            g.pieces[i][j] = var_u32(p, 0);
    for (unsigned set = 0; set < g.sets; set++) {
        for (unsigned i = 0; i < 2; i++)
            g.max[set][i] = var_f32(p, -FLT_MAX);
        for (unsigned i = 0; i < 4; i++) {
            g.sums[set][i] = var_f32(p, 0.0f);
            for (unsigned j = 0; j < g.matrices; j++)
                g.results[j][set][i] = var_f32(p, 0.0f);
        }
    }
    return g;
}

/* Issues the loads of count pieces of a position's row, distance bytes apart. */
static void load_pieces(ptx *p, const gqa_halves *g, val cache, val position, unsigned first,
                        unsigned count, unsigned step, unsigned distance)
{
    int64_t ring = g->in->options.ring;
    val row = min(p, position, g->last);
    if (ring) /* positions are counted from the ring's start, below twice its rows */
        row = min(p, row, sub(p, row, ring));
    row = cache_pages_row(p, &g->pages, row);
    val from = mad_wide(p, row, cache_row_bytes(g->in), cache);
    for (unsigned i = 0; i < count; i++) {
        val4 piece = ld_const_v4(p, U32, from, (int64_t)i * distance);
        for (unsigned j = 0; j < 4; j++)
            assign(p, g->pieces[first + i * step][j], piece.v[j]);
    }
}

/* Returns the index of a piece of K: position g or g + 8 of a tile, and a unit. */
static unsigned key_piece(const gqa_halves *g, unsigned depth, unsigned unit, unsigned half)
{
    return (depth * g->units + unit) * 2 + half;
}

static void load_keys(ptx *p, const gqa_halves *g, val k, val tile)
{
    val position = add(p, tile, g->group);
    for (unsigned depth = 0; depth < g->depths; depth++)
        for (unsigned half = 0; half < 2; half++)
            load_pieces(p, g, k, add(p, position, depth * DEPTH + half * HALF_DEPTH),
                        key_piece(g, depth, 0, half), g->units, 2, UNIT_BYTES);
}

/* Returns the index of a piece of V: the lane's position 2t, 2t + 1, 2t + 8 or 2t + 9, and a group
 * of values. */
static unsigned value_piece(const gqa_halves *g, unsigned depth, unsigned group, unsigned row)
{
    return g->v_pieces + (depth * g->matrices / GROUP_MATRICES + group) * DEPTH_ROWS + row;
}

static void load_values(ptx *p, const gqa_halves *g, val v, val tile)
{
    static const unsigned rows[DEPTH_ROWS] = { 0, 1, HALF_DEPTH, HALF_DEPTH + 1 };
    val position = mad(p, g->part, 2, tile);
    for (unsigned depth = 0; depth < g->depths; depth++)
        for (unsigned row = 0; row < DEPTH_ROWS; row++)
            load_pieces(p, g, v, add(p, position, depth * DEPTH + rows[row]),
                        value_piece(g, depth, 0, row), g->matrices / GROUP_MATRICES, DEPTH_ROWS,
                        GROUP_BYTES);
}

static val word(const gqa_halves *g, unsigned piece, unsigned number)
{
    return V(g->pieces[piece][number]);
}

/* Products, scores and weights of a tile, for positions g and g + 8 and heads 2t and 2t + 1. */
typedef struct tile_scores {
    val of[MOST_DEPTHS][GQA_HALVES_SETS][4];
} tile_scores;

static void multiply_keys(ptx *p, const gqa_halves *g, tile_scores *s)
{
    for (unsigned depth = 0; depth < g->depths; depth++)
        for (unsigned set = 0; set < g->sets; set++) {
            val zero = imm(F32, 0);
            val4 sums = { { zero, zero, zero, zero } };
            for (unsigned unit = 0; unit < g->units; unit++) {
                unsigned upper = key_piece(g, depth, unit, 0), lower = key_piece(g, depth, unit, 1);
                val4 q = g->parked.kind
                             ? ld_shared_v4(p, U32, g->parked, parked_offset(g, set, unit))
                             : g->q[set][unit];
                for (unsigned i = 0; i < UNIT_WORDS; i += 2) {
                    val4 a = { { word(g, upper, i), word(g, lower, i), word(g, upper, i + 1),
                                 word(g, lower, i + 1) } };
                    sums = mma_m16n8k16_f16(p, a, (val2){ { q.v[i], q.v[i + 1] } }, sums);
                }
            }
            for (unsigned i = 0; i < 4; i++)
                s->of[depth][set][i] = sums.v[i];
        }
}

/* Exchange the products of half rows: store the warp's, and add those of both warps, in the same
 * order in both. The two must be separated by a barrier. */
static void put_products(ptx *p, const gqa_halves *g, val turn, const tile_scores *s)
{
    unsigned step = DEPTH, of_warp = WARP * 4 * WORD_BYTES;
    val at = mad(p, g->half, imm(U32, of_warp), g->products);
    at = mad(p, bit_and(p, turn, step), imm(U32, PRODUCT_WORDS * WORD_BYTES / 2 / step), at);
    store_floats(p, at, 0, 4, s->of[0][0]);
}

static void take_products(ptx *p, const gqa_halves *g, val turn, tile_scores *s)
{
    unsigned step = DEPTH, of_warp = WARP * 4 * WORD_BYTES;
    val at = mad(p, bit_and(p, turn, step), imm(U32, PRODUCT_WORDS * WORD_BYTES / 2 / step),
                 g->products);
    val4 first = ld_shared_v4(p, F32, at, 0), second = ld_shared_v4(p, F32, at, of_warp);
    for (unsigned i = 0; i < 4; i++)
        s->of[0][0][i] = add(p, first.v[i], second.v[i]);
}

/* Computes the weights of a tile as fragments of B; its rows are positions. */
static void weigh(ptx *p, const gqa_halves *g, const tile_scores *s,
                  val2 weights[MOST_DEPTHS][GQA_HALVES_SETS])
{
    for (unsigned set = 0; set < g->sets; set++) {
        val factors[2];
        for (unsigned i = 0; i < 2; i++) {
            val largest = max(p, s->of[0][set][i], s->of[0][set][2 + i]);
            for (unsigned depth = 1; depth < g->depths; depth++)
                for (unsigned half = 0; half < 2; half++)
                    largest = max(p, largest, s->of[depth][set][half * 2 + i]);
            factors[i] = softmax_raise_max(p, g->max[set][i], lanes_max(p, largest, QUAD, WARP));
        }
        PTX_IF (p, bit_or(p, ne(p, factors[0], 1.0f), ne(p, factors[1], 1.0f)))
            for (unsigned i = 0; i < 4; i++) {
                assign(p, g->sums[set][i], mul(p, g->sums[set][i], factors[i % 2]));
                for (unsigned j = 0; j < g->matrices; j++) {
                    var result = g->results[j][set][i];
                    assign(p, result, mul(p, result, factors[i % 2]));
                }
            }
        for (unsigned depth = 0; depth < g->depths; depth++)
            for (unsigned half = 0; half < 2; half++) {
                val two[2];
                for (unsigned i = 0; i < 2; i++)
                    two[i] = ex2(p, sub(p, s->of[depth][set][half * 2 + i], g->max[set][i]));
                weights[depth][set].v[half] = transpose_halves(p, pack_halves(p, two[0], two[1]));
            }
    }
}

static void add_values(ptx *p, const gqa_halves *g, val2 weights[MOST_DEPTHS][GQA_HALVES_SETS])
{
    val one = get(p, var_u32(p, ONES));
    for (unsigned depth = 0; depth < g->depths; depth++) {
        for (unsigned set = 0; set < g->sets; set++)
            fragment_add(p, g->sums[set], (val4){ { one, one, one, one } }, weights[depth][set]);
        for (unsigned i = 0; i < g->matrices; i++) {
            unsigned first = value_piece(g, depth, i / GROUP_MATRICES, 0);
            /* A matrix of V', from pieces of four rows: the low and the high halves of a word. */
            unsigned number = i % GROUP_MATRICES;
            enum { LOW = 0x5410, HIGH = 0x7632 };
            val4 a;
            for (unsigned j = 0; j < 4; j++) {
                unsigned piece = first + j / 2 * 2;
                a.v[j] =
                    prmt(p, word(g, piece, number), word(g, piece + 1, number), j % 2 ? HIGH : LOW);
            }
            for (unsigned set = 0; set < g->sets; set++)
                fragment_add(p, g->results[i][set], a, weights[depth][set]);
        }
    }
}

static void clear(ptx *p, const gqa_halves *g)
{
    for (unsigned set = 0; set < g->sets; set++) {
        for (unsigned i = 0; i < 2; i++)
            assign(p, g->max[set][i], -FLT_MAX);
        for (unsigned i = 0; i < 4; i++) {
            assign(p, g->sums[set][i], 0.0f);
            for (unsigned j = 0; j < g->matrices; j++)
                assign(p, g->results[j][set][i], 0.0f);
        }
    }
}

static void store_partial_rows(ptx *p, const gqa_halves *g)
{
    for (unsigned set = 0; set < g->sets; set++)
        for (unsigned i = 0; i < 2; i++) {
            /* The lane's part of a head's partial row: 8 neighbouring values of each group. */
            val head = mad(p, g->part, 2, imm(U32, set * SET + i));
            val row = mad(p, head, imm(U32, g->row_stride), g->rows);
            val to = mad(p, g->group, PIECE * F32_BYTES, row);
            if (g->paired)
                to = mad(p, g->half, imm(U32, g->matrices * DEPTH * F32_BYTES), to);
            PTX_IF (p, lt(p, head, g->heads)) {
                for (unsigned j = 0; j < g->matrices; j += 2) {
                    val4 four = { { V(g->results[j][set][i]), V(g->results[j][set][2 + i]),
                                    V(g->results[j + 1][set][i]),
                                    V(g->results[j + 1][set][2 + i]) } };
                    unsigned value = j / GROUP_MATRICES * GROUP + j % GROUP_MATRICES * 2;
                    st_shared_v4(p, F32, to, value * F32_BYTES, four);
                }
                PTX_IF (p, eq(p, g->paired ? add(p, g->group, g->half) : g->group, 0))
                    partial_store_sums(p, g->in, row, V(g->max[set][i]), V(g->sums[set][i]));
            }
        }
}

/* Turns the products of a tile into scores. Positions from `end` on get minus infinity. */
static void make_scores(ptx *p, const gqa_halves *g, tile_scores *s, val tile, val end)
{
    val position = add(p, tile, g->group);
    for (unsigned depth = 0; depth < g->depths; depth++)
        for (unsigned half = 0; half < 2; half++) {
            val counts = lt(p, add(p, position, depth * DEPTH + half * HALF_DEPTH), end);
            for (unsigned set = 0; set < g->sets; set++)
                for (unsigned i = 0; i < 2; i++) {
                    val *score = &s->of[depth][set][half * 2 + i];
                    *score = attention_score(p, g->in, mul(p, *score, g->factor[set][i]));
                    *score = select(p, counts, *score, -INFINITY);
                }
        }
}

/* With paired warps all warps of the block have the same number of turns, with a barrier in each.
 * Warps with a shorter run do nothing in the last ones. */
void gqa_halves_attend(ptx *p, gqa_halves *g, cache_pages pages, val k, val v, positions run,
                       val length)
{
    g->pages = pages;
    unsigned step = gqa_halves_step(g->in);
    bool apart = g->v_pieces > 0;
    if (g->in->options.ring)
        run = attention_within_ring(p, g->in->options.ring, run);
    k = add(p, k, mul_wide(p, g->part, PIECE_BYTES));
    v = add(p, v, mul_wide(p, g->group, PIECE_BYTES));
    if (g->paired) {
        val half = mul_wide(p, g->half, g->units * UNIT_BYTES);
        k = add(p, k, half);
        v = add(p, v, half);
    }
    g->last = sub(p, run.end, 1);
    clear(p, g);
    PTX_IF (p, lt(p, run.first, run.end)) {
        load_keys(p, g, k, run.first);
        if (apart)
            load_values(p, g, v, run.first);
    }
    ptx_loop_work(p, 4 * g->depths * g->units * PIECE, "values");
    PTX_FOR (p, tile, g->paired ? imm(U32, 0) : run.first, g->paired ? length : run.end, step) {
        tile_scores scores;
        val2 weights[MOST_DEPTHS][GQA_HALVES_SETS];
        val turn = tile, own = imm(PRED, 1);
        if (g->paired) {
            tile = add(p, turn, run.first);
            own = lt(p, tile, run.end);
        }
        val next = add(p, tile, step);
        PTX_IF (p, own) {
            phase(p, "products of the keys of a tile with q");
            multiply_keys(p, g, &scores);
            if (g->paired)
                put_products(p, g, turn, &scores);
            if (apart)
                load_keys(p, g, k, next);
            else
                load_values(p, g, v, tile);
        }
        if (g->paired)
            barrier(p);
        PTX_IF (p, own) {
            if (g->paired)
                take_products(p, g, turn, &scores);
            phase(p, "softmax: products to weights");
            make_scores(p, g, &scores, tile, run.end);
            weigh(p, g, &scores, weights);
            phase(p, "weighted values of the tile");
            add_values(p, g, weights);
            if (apart)
                load_values(p, g, v, next);
            else
                load_keys(p, g, k, next);
        }
    }
    phase(p, "store the warp's partial rows");
    store_partial_rows(p, g);
}
