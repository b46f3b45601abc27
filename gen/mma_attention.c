/* Attention of a prompt's rows on the tensor cores: neighbouring positions of one sequence, whose K
 * and V stand in its cache already, as FlashAttention-2 (Dao, 2023) does it.
 *
 * Layouts are those of gqa_flash_decoding, with all rows' addresses of K and V the same: of these
 * the first is read. Row i is over positions [0, seq_lens[i]), or the last ones of its window; one
 * of length 0 is not in use, and its result is 0. With a ring, all rows' positions together are at
 * most as many as it has rows.
 *
 * A block has 16, 32, 64 or 128 rows of a KV head, 16 a warp: a row of q comes with each of the
 * heads that share K and V as a row of its own, so that of 4 heads a KV head, rows 0 .. 3 are
 * heads 0 .. 3 of the first row of q. It goes through tiles of positions (blocks/kv_tiles.h) in
 * ascending order. Of a tile,
 *
 *   1. q K', with q as fragments of A in registers: a lane's sums are of the rows g = lane / 4 and
 *      g + 8, of columns 2t and 2t + 1 of each eight, t = lane % 4.
 *   2. The online softmax: products become weights of f16 in place, since a lane's sums of two
 *      neighbouring matrices are its part of a fragment of A.
 *   3. P V, and the sum of the weights: that of the rounded ones, as a product with ones, so that a
 *      rounding error moves a result by the distance of a value to the mean alone.
 *
 * A tile that counts whole for all rows in use needs no masks; at both ends there are others.
 * There, a value of V that is no finite number must not reach rows that it does not count for, by
 * 0 times it: see spread_strange_values.
 *
 * So that nothing finite overflows as f16, a row of q is multiplied by a power of two, as in
 * blocks/gemm.h. Rows of a cache that is not f16 are, too: K's by 2^-e, V's by 2^-E. Of the
 * weighted values, 2^(s - max) v = 2^(s + E - max) 2^-E v: what the softmax goes by is s + E, and
 * the sum of weights has 2^-E, of the weights as they were before they were rounded, since what
 * weighs most in it may be one of few bits.
 *
 * Which tiles there are follows from positions alone, and of a tile that does not count for a row
 * all weights are 0: a row has the same bits whichever rows are beside it.
 */
#include <float.h>
#include <math.h>

#include "gen/attention_keys.h"
#include "gen/blocks/attention.h"
#include "gen/blocks/kv_tiles.h"
#include "gen/blocks/q8_1.h"
#include "gen/blocks/reduce.h"

enum {
    WARP = 32,
    FRAGMENT = KV_FRAGMENT,
    COLUMNS = 8, /* of a fragment of B and of sums */
    MOST_FRAGMENTS = 256 / FRAGMENT,
    MOST_COLUMNS = 256 / COLUMNS,
    KEY_COLUMNS = KV_MOST_KEYS / COLUMNS,
    QUAD = 4, /* lanes with the same rows */
    MOST_ROWS = 128,
    HALVES = 2, /* rows of a lane: g and g + 8 */
    ONES = 0x3c003c00,
    ONE = 0x3c00,
    /* Exponents as a float's bits have them. */
    EXPONENT_SHIFT = 23,
    BIAS = 127,
    LARGEST = BIAS + 14,
    MOST = 2 * BIAS - 1, /* of a power of two whose inverse is normal */
};

/* What a block goes through: tiles [first, end), of which those from whole on up to whole_end count
 * for all rows. */
typedef struct tile_run {
    val first, whole, whole_end, end;
} tile_run;

typedef struct work {
    const instance *in;
    unsigned rows, warps, ratio, depths, columns;
    val kv_head, m;
    val query[HALVES];     /* number of the row's row of q and o; of one that there is not, */
    val exists[HALVES];    /* the last one's */
    val row_first[HALVES]; /* positions that it is over: */
    val row_end[HALVES];   /* 0 where it is not in use */
    val factor[HALVES];    /* of its products */
    val lane_column;       /* the first of its two of each eight */
    val4 q[MOST_FRAGMENTS];
    kv_tiles tiles;
    var max[HALVES], sum[HALVES]; /* with rows of a cache that are rounded */
    var sums[4];                  /* else: of all columns the same */
    var o[MOST_COLUMNS][4];
} work;

static int64_t tile_rows(const instance *in)
{
    int64_t rows = FRAGMENT;
    while (rows < in->shape.m)
        rows *= 2;
    return rows;
}

/* The block's rows that the lane has, and their positions. */
static void take_rows(ptx *p, work *w)
{
    const instance *in = w->in;
    val last = sub(p, mul(p, w->m, w->ratio), 1);
    val first = mad(p, ctaid_x(p), w->rows, mul(p, warp_id(p), FRAGMENT));
    for (unsigned h = 0; h < HALVES; h++) {
        val own = add(p, first, add(p, div(p, lane_id(p), QUAD), h * COLUMNS));
        val row = min(p, own, last), number = div(p, row, w->ratio);
        w->exists[h] = le(p, own, last);
        w->query[h] = mad(p, number, (unsigned)in->shape.num_heads,
                          mad(p, w->kv_head, w->ratio, rem(p, row, w->ratio)));
        positions all = attention_positions(p, in, attention_sequence_length(p, number));
        w->row_first[h] = all.first;
        w->row_end[h] = named(p, "end", select(p, w->exists[h], all.end, imm(U32, 0)));
    }
}

/* The block's numbers, each the largest of what its rows have: 0 of one that is not in use. */
static val4 largest_of_rows(ptx *p, const work *w, const val4 rows[HALVES])
{
    val at = shared_array(p, "largest", U32, QUAD * w->warps);
    val4 all;
    for (unsigned i = 0; i < QUAD; i++) {
        all.v[i] = max(p, rows[0].v[i], rows[1].v[i]);
        for (unsigned mask = QUAD; mask < WARP; mask *= 2)
            all.v[i] = max(p, all.v[i], shuffle_xor(p, all.v[i], mask));
    }
    PTX_IF (p, eq(p, lane_id(p), 0))
        st_shared_v4(p, U32, mad(p, warp_id(p), QUAD * sizeof(uint32_t), at), 0, all);
    barrier(p);
    for (unsigned warp = 0; warp < w->warps; warp++) {
        val4 of_warp = ld_shared_v4(p, U32, at, warp * QUAD * sizeof(uint32_t));
        for (unsigned i = 0; i < QUAD; i++)
            all.v[i] = warp ? max(p, all.v[i], of_warp.v[i]) : of_warp.v[i];
    }
    return all;
}

/* Finds the block's tiles, and the positions that they are for: [first, end). */
static tile_run find_tiles(ptx *p, work *w, val *first, val *end)
{
    val4 rows[HALVES];
    for (unsigned h = 0; h < HALVES; h++) {
        val used = gt(p, w->row_end[h], 0);
        rows[h] = (val4){ { w->row_end[h], select(p, used, bit_not(p, w->row_end[h]), imm(U32, 0)),
                            select(p, used, w->row_first[h], imm(U32, 0)),
                            select(p, used, bit_not(p, w->row_first[h]), imm(U32, 0)) } };
    }
    val4 all = largest_of_rows(p, w, rows);
    val keys = imm(U32, kv_tile_keys(w->in)), up = imm(U32, kv_tile_keys(w->in) - 1);
    val least_end = bit_not(p, all.v[1]);
    *end = all.v[0];
    *first = w->in->options.window ? min(p, bit_not(p, all.v[3]), *end) : imm(U32, 0);
    tile_run run = { .first = div(p, *first, keys), .end = div(p, add(p, *end, up), keys) };
    val whole_end = min(p, div(p, least_end, keys), run.end);
    run.whole = w->in->options.window ? div(p, add(p, all.v[2], up), keys) : imm(U32, 0);
    run.whole = named(p, "whole", min(p, run.whole, run.end));
    run.whole_end = named(p, "whole_end", max(p, whole_end, run.whole));
    return run;
}

/* The lane's parts of q, and what the power of two and the scale make of a product. */
static void load_queries(ptx *p, work *w)
{
    float scale = attention_query_scale(w->in);
    for (unsigned h = 0; h < HALVES; h++) {
        val row = mad_wide(p, w->query[h], (unsigned)w->in->shape.head_dim * F32_BYTES,
                           parameter(p, "q"));
        val from = mad_wide(p, w->lane_column, F32_BYTES, row);
        val values[MOST_FRAGMENTS][4], largest = imm(U32, 0);
        for (unsigned d = 0; d < w->depths; d++) {
            for (unsigned i = 0; i < 2; i++) {
                int64_t offset = (d * FRAGMENT + i * COLUMNS) * F32_BYTES;
                val2 two = ld_const_v2(p, F32, from, offset);
                values[d][2 * i] = two.v[0];
                values[d][2 * i + 1] = two.v[1];
            }
            largest = q8_largest(p, largest, values[d], 4);
        }
        val exponent = shr(p, group_max(p, largest, QUAD), EXPONENT_SHIFT);
        val power = min(p, sub(p, imm(U32, LARGEST + BIAS), exponent), MOST);
        val fits = le(p, sub(p, exponent, BIAS), LARGEST - BIAS); /* less than 0 wraps */
        power = select(p, fits, imm(U32, BIAS), power);
        val times = bits_as(p, F32, shl(p, power, EXPONENT_SHIFT));
        val inverse = bits_as(p, F32, shl(p, sub(p, imm(U32, 2 * BIAS), power), EXPONENT_SHIFT));
        w->factor[h] = max(p, min(p, mul(p, inverse, scale), FLT_MAX), FLT_MIN);
        for (unsigned d = 0; d < w->depths; d++)
            for (unsigned i = 0; i < 2; i++)
                w->q[d].v[2 * i + h] = pack_halves(p, mul(p, values[d][2 * i], times),
                                                   mul(p, values[d][2 * i + 1], times));
    }
}

static val4 product(ptx *p, val4 a, val4 b, unsigned which, val4 c)
{
    return mma_m16n8k16_f16(p, a, (val2){ { b.v[2 * which], b.v[2 * which + 1] } }, c);
}

static void multiply_keys(ptx *p, const work *w, val4 scores[KEY_COLUMNS])
{
    val zero = get(p, var_f32(p, 0.0f));
    for (unsigned across = 0; across < w->tiles.keys / FRAGMENT; across++) {
        val4 *both = scores + 2 * across;
        both[0] = both[1] = (val4){ { zero, zero, zero, zero } };
        for (unsigned d = 0; d < w->depths; d++) {
            val4 b = kv_tiles_keys(p, &w->tiles, d, across);
            for (unsigned i = 0; i < 2; i++)
                both[i] = product(p, w->q[d], b, i, both[i]);
        }
    }
}

/* Whether products become scores, in units of log 2, ahead of the weights: those of rows that are
 * not rounded, and without a cap, do so in the same instruction as their weights. */
static bool makes_scores(const work *w)
{
    return w->tiles.rounded || w->in->options.softcap > 0;
}

static void make_scores(ptx *p, const work *w, val4 scores[KEY_COLUMNS],
                        kv_columns columns[KEY_COLUMNS])
{
    for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++) {
        if (w->tiles.rounded)
            columns[n] = kv_tiles_columns(p, &w->tiles, w->lane_column, n * COLUMNS);
        for (unsigned i = 0; i < 4; i++) {
            val score = scores[n].v[i], factor = w->factor[i / 2];
            if (w->tiles.rounded)
                factor = mul(p, factor, columns[n].factors.v[i % 2]);
            if (w->in->options.softcap > 0)
                score = attention_score(p, w->in, mul(p, score, factor));
            if (w->tiles.rounded)
                score = w->in->options.softcap > 0
                            ? add(p, score, columns[n].exponents.v[i % 2])
                            : fma(p, score, factor, columns[n].exponents.v[i % 2]);
            scores[n].v[i] = score;
        }
    }
}

/* Whether a position that is so many behind the lane's first counts for its row. */
typedef struct row_mask {
    val first, end; /* s32: that counts, from the lane's first on, and that does not any more */
    bool window;
} row_mask;

static row_mask mask_of(ptx *p, const work *w, val position, unsigned h)
{
    return (row_mask){ .first = as(p, S32, sub(p, w->row_first[h], position)),
                       .end = as(p, S32, sub(p, w->row_end[h], position)),
                       .window = w->in->options.window != 0 };
}

static val masked(ptx *p, const row_mask *m, unsigned behind, val counts, val does_not)
{
    val value = select(p, gt(p, m->end, (int)behind), counts, does_not);
    return m->window ? select(p, le(p, m->first, (int)behind), value, does_not) : value;
}

static void mask_scores(ptx *p, const work *w, val first, val4 scores[KEY_COLUMNS])
{
    for (unsigned h = 0; h < HALVES; h++) {
        row_mask m = mask_of(p, w, add(p, first, w->lane_column), h);
        for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++)
            for (unsigned i = 0; i < 2; i++)
                scores[n].v[2 * h + i] =
                    masked(p, &m, n * COLUMNS + i, scores[n].v[2 * h + i], V(-INFINITY));
    }
}

/* Makes room for a tile's scores: raises the row's maximum and scales down what is there. */
static void raise(ptx *p, const work *w, const val4 scores[KEY_COLUMNS])
{
    val factors[HALVES], changed;
    for (unsigned h = 0; h < HALVES; h++) {
        val largest = scores[0].v[2 * h];
        for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++)
            for (unsigned i = n ? 0 : 1; i < 2; i++)
                largest = max(p, largest, scores[n].v[2 * h + i]);
        largest = group_max(p, largest, QUAD);
        if (!makes_scores(w))
            largest = mul(p, largest, w->factor[h]);
        val old = get(p, w->max[h]), raised = max(p, old, largest);
        factors[h] = ex2(p, sub(p, old, raised));
        assign(p, w->max[h], raised);
    }
    changed = bit_or(p, ne(p, factors[0], 1.0f), ne(p, factors[1], 1.0f));
    PTX_IF (p, changed) {
        for (unsigned n = 0; n < w->columns; n++)
            for (unsigned i = 0; i < 4; i++)
                assign(p, w->o[n][i], mul(p, w->o[n][i], factors[i / 2]));
        for (unsigned i = 0; i < 4 && !w->tiles.rounded; i++)
            assign(p, w->sums[i], mul(p, w->sums[i], factors[i / 2]));
        for (unsigned h = 0; h < HALVES && w->tiles.rounded; h++)
            assign(p, w->sum[h], mul(p, w->sum[h], factors[h]));
    }
}

/* The weights of a tile as fragments of A. */
static void weigh(ptx *p, const work *w, const val4 scores[KEY_COLUMNS],
                  const kv_columns columns[KEY_COLUMNS], val4 weights[KEY_COLUMNS / 2])
{
    val less[HALVES];
    for (unsigned h = 0; h < HALVES; h++)
        less[h] = neg(p, get(p, w->max[h]));
    for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++)
        for (unsigned h = 0; h < HALVES; h++) {
            val two[2];
            for (unsigned i = 0; i < 2; i++) {
                val score = scores[n].v[2 * h + i];
                two[i] = ex2(p, makes_scores(w) ? add(p, score, less[h])
                                                : fma(p, score, w->factor[h], less[h]));
                if (w->tiles.rounded)
                    assign(p, w->sum[h], fma(p, two[i], columns[n].inverses.v[i], w->sum[h]));
            }
            weights[n / 2].v[n % 2 * 2 + h] = pack_halves(p, two[0], two[1]);
        }
}

static void add_product(ptx *p, const var sums[4], val4 a, val2 b)
{
    val4 c = { { V(sums[0]), V(sums[1]), V(sums[2]), V(sums[3]) } };
    val4 d = mma_m16n8k16_f16(p, a, b, c);
    for (unsigned i = 0; i < 4; i++)
        assign(p, sums[i], d.v[i]);
}

static void add_values(ptx *p, const work *w, const val4 weights[KEY_COLUMNS / 2])
{
    val ones = get(p, var_u32(p, ONES));
    for (unsigned down = 0; down < w->tiles.keys / FRAGMENT; down++) {
        for (unsigned across = 0; across < w->depths; across++) {
            val4 b = kv_tiles_values(p, &w->tiles, imm(U32, down), across);
            for (unsigned i = 0; i < 2; i++)
                add_product(p, w->o[2 * across + i], weights[down],
                            (val2){ { b.v[2 * i], b.v[2 * i + 1] } });
        }
        if (!w->tiles.rounded)
            add_product(p, w->sums, weights[down], (val2){ { ones, ones } });
    }
}

/* Where a tile is not for all rows: what of V is no finite number makes NaN of the results of those
 * rows that it counts for, and then is zero, lest 0 times it be added to others. For that ones
 * where a position counts for a row are multiplied by twos where V is strange. */
static void spread_strange_values(ptx *p, const work *w, val first)
{
    phase(p, "infinities and NaN of V, for the rows that they count for");
    val zero = get(p, var_f32(p, 0.0f));
    PTX_FOR (p, depth, 0, w->tiles.keys / FRAGMENT, 1) {
        val4 counts;
        for (unsigned h = 0; h < HALVES; h++) {
            row_mask m = mask_of(p, w, mad(p, depth, FRAGMENT, add(p, first, w->lane_column)), h);
            for (unsigned i = 0; i < 2; i++)
                counts.v[2 * i + h] =
                    bit_or(p, masked(p, &m, i * COLUMNS, imm(U32, ONE), imm(U32, 0)),
                           masked(p, &m, i * COLUMNS + 1, imm(U32, ONE << 16), imm(U32, 0)));
        }
        for (unsigned across = 0; across < w->depths; across++) {
            val4 b = kv_tiles_values(p, &w->tiles, depth, across);
            for (unsigned i = 0; i < 4; i++)
                b.v[i] = shr(p, strange_halves(p, b.v[i]), 1);
            for (unsigned i = 0; i < 2; i++) {
                val4 seen = product(p, counts, b, i, (val4){ { zero, zero, zero, zero } });
                const var *o = w->o[2 * across + i];
                for (unsigned j = 0; j < 4; j++)
                    assign(p, o[j], select(p, gt(p, seen.v[j], 0.0f), (float)NAN, V(o[j])));
            }
        }
    }
    kv_tiles_clear_strange(p, &w->tiles);
}

static void attend(ptx *p, const work *w, val from, val to, bool whole)
{
    PTX_FOR (p, tile, from, to, 1) {
        val first = mul(p, tile, w->tiles.keys);
        val4 scores[KEY_COLUMNS], weights[KEY_COLUMNS / 2];
        kv_columns columns[KEY_COLUMNS];
        kv_tiles_next(p, &w->tiles, tile);
        if (!whole)
            PTX_IF (p, ne(p, kv_tiles_count_strange(p, &w->tiles), 0))
                spread_strange_values(p, w, first);
        multiply_keys(p, w, scores);
        if (makes_scores(w))
            make_scores(p, w, scores, columns);
        if (!whole)
            mask_scores(p, w, first, scores);
        raise(p, w, scores);
        weigh(p, w, scores, columns, weights);
        add_values(p, w, weights);
    }
}

/* What the row's results are to be multiplied by, with its head's sink. */
static val output_factor(ptx *p, const work *w, unsigned h)
{
    val max = get(p, w->max[h]);
    val sum = w->tiles.rounded ? group_sum(p, get(p, w->sum[h]), QUAD) : get(p, w->sums[2 * h]);
    softmax state = softmax_new(p, 1);
    assign(p, state.max, max);
    assign(p, state.sum, sum);
    assign(p, state.values[0], 1.0f);
    val scale = attention_output_scale(p, w->in, &state, w->query[h]);
    return mul(p, scale, state.values[0]);
}

static void store_row(ptx *p, const work *w, unsigned h)
{
    val factor = output_factor(p, w, h), used = gt(p, w->row_end[h], 0);
    val offset = mad_wide(p, w->query[h], (unsigned)w->in->shape.head_dim * F32_BYTES,
                          mul_wide(p, w->lane_column, F32_BYTES));
    val to = add(p, parameter(p, "o"), offset);
    PTX_IF (p, w->exists[h])
        for (unsigned n = 0; n < w->columns; n++) {
            int64_t further = (int64_t)n * COLUMNS * F32_BYTES;
            val2 two = { { { 0 } } }, gates = { { { 0 } } };
            if (w->in->options.gate)
                gates = ld_const_v2(p, F32, add(p, parameter(p, "gate"), offset), further);
            for (unsigned i = 0; i < 2; i++) {
                val o = mul(p, w->o[n][2 * h + i], factor);
                two.v[i] = select(p, used, o, imm(F32, 0));
                if (w->in->options.gate)
                    two.v[i] = attention_gated(p, two.v[i], gates.v[i]);
            }
            st_global_v2(p, F32, to, further, two);
        }
}

static void build(ptx *p, const instance *in)
{
    work w = { .in = in,
               .rows = (unsigned)tile_rows(in),
               .ratio = (unsigned)(in->shape.num_heads / in->shape.num_kv_heads),
               .depths = (unsigned)in->shape.head_dim / FRAGMENT,
               .columns = (unsigned)in->shape.head_dim / COLUMNS };
    w.warps = w.rows / FRAGMENT;
    w.kv_head = named(p, "kv_head", ctaid_y(p));
    w.m = in->rows_mode == ROWS_RUN_TIME ? named(p, "m_val", parameter(p, "m_val"))
                                         : imm(U32, in->shape.m);
    w.lane_column = mul(p, bit_and(p, lane_id(p), QUAD - 1), 2);
    phase(p, "which positions the rows are over");
    take_rows(p, &w);
    val first, end;
    tile_run run = find_tiles(p, &w, &first, &end);
    val head = attention_kv_head_offset(p, in, w.kv_head);
    val k = add(p, attention_sequence_cache(p, "k", imm(U32, 0)), head);
    val v = add(p, attention_sequence_cache(p, "v", imm(U32, 0)), head);
    w.tiles = kv_tiles_new(p, in, w.warps, k, v, first, end);
    kv_tiles_begin(p, &w.tiles, run.first);
    phase(p, "load q");
    load_queries(p, &w);
    for (unsigned h = 0; h < HALVES; h++) {
        w.max[h] = var_f32(p, -FLT_MAX);
        w.sum[h] = var_f32(p, 0.0f);
    }
    for (unsigned i = 0; i < 4; i++)
        w.sums[i] = var_f32(p, 0.0f);
    for (unsigned n = 0; n < w.columns; n++)
        for (unsigned i = 0; i < 4; i++)
            w.o[n][i] = var_f32(p, 0.0f);
    if (in->options.window) {
        phase(p, "tiles that the windows begin in");
        attend(p, &w, run.first, run.whole, false);
    }
    phase(p, "tiles that count for all rows");
    attend(p, &w, run.whole, run.whole_end, true);
    phase(p, "tiles that the rows end in");
    attend(p, &w, run.whole_end, run.end, false);
    phase(p, "store");
    for (unsigned h = 0; h < HALVES; h++)
        store_row(p, &w, h);
}

static const derived_size sizes[] = {
    { "tile_rows", tile_rows, "16, 32, 64 or 128: rows that a block has room for" },
    { "tiles", kv_tiles_bytes, "bytes of tiles of K and V" },
    CACHE_ROWS,
    { NULL, NULL, NULL },
};

static const term terms[] = {
    { "ratio", "num_heads/num_kv_heads" },
    { NULL, NULL },
};

const family mma_attention = {
    .name = "mma_attention",
    .summary = "attention of m rows of one sequence on tensor cores: prompts",
    .computes = "o[m,h] = softmax(q[m,h] K' scale) V",
    .op = OP_PROMPT_ATTENTION,
    .activations = FORMAT_F32,
    .halves = true,
    .one_sequence = true,
    .same_bits = true,
    .sm = 80,
    .keys = (const key[]){ ATTENTION_SHAPE_OF(FRAGMENT),
                           { .name = "m",
                             .summary = "rows, of which a block takes so many, heads together",
                             .field = KEY_FIELD(shape.m),
                             .min = 1,
                             .max = MOST_ROWS,
                             .def = MOST_ROWS / 2,
                             .counted_with = KEY_FIELD(rows_mode),
                             .tag = "m" },
                           { .name = "rows",
                             .summary = "m, or a parameter",
                             .field = KEY_FIELD(rows_mode),
                             .choices = rows_choices,
                             .def = ROWS_RUN_TIME },
                           ATTENTION_OPTIONS,
                           KEY_RING,
                           KEY_SINKS,
                           KEY_GATE,
                           KEY_END },
    .params =
        (const param[]){
            OUT(F32, o, "m*num_heads*head_dim", 16),
            QUERIES("m*num_heads*head_dim"),
            KV_RINGS(k),
            KV_RINGS(v),
            SINKS,
            GATES,
            IN(U32, seq_lens, "m", 4),
            PARAM_END,
        },
    .launch = { .block = "2*tile_rows",
                .grid = { "ceil_div(m*ratio, tile_rows)", "num_kv_heads" },
                .shared = "tile_rows",
                .dynamic_shared = "tiles",
                .terms = terms,
                .sizes = sizes,
                .overlap = WAITS_FIRST,
                .registers = 255 },
    .check = check_ring,
    .build = build,
    .fit = ref_fit_gates,
    .reference = ref_attention,
    .tolerance = 2e-6,
};
