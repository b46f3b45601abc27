#include <math.h>

#include "gen/attention/attention.h"
#include "gen/attention/prompt_tile.h"
#include "gen/common/halves.h"
#include "gen/common/reduce.h"

enum {
    FRAGMENT = KV_FRAGMENT,
    COLUMNS = PROMPT_COLUMNS,
    QUAD = PROMPT_QUAD,
    HALVES = PROMPT_HALVES,
    ONES = 0x3c003c00,
    ONE = 0x3c00,
};

/* Parts [first, end) of a warp that are processed together. */
typedef struct parts {
    unsigned first, end;
} parts;

val prompt_row(ptx *p, const prompt_block *w, unsigned row)
{
    val first = mad(p, warp_id(p), w->parts * FRAGMENT, div(p, lane_id(p), QUAD));
    return add(p, first, row * COLUMNS);
}

val prompt_limits(ptx *p, const prompt_block *w, unsigned row)
{
    return mad(p, prompt_row(p, w, row), 2 * sizeof(uint32_t), w->limits);
}

unsigned prompt_parked(const prompt_block *w, unsigned depth, unsigned part)
{
    return ((depth - w->kept) * w->parts + part) * w->warps * WARP * PROMPT_LANE_BYTES;
}

static void multiply_keys(ptx *p, const prompt_block *w, parts of)
{
    for (unsigned part = of.first; part < of.end; part++)
        for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++)
            for (unsigned i = 0; i < 4; i++)
                assign(p, w->scores[part][n][i], 0.0f);
    for (unsigned d = 0; d < w->depths; d++) {
        val4 a[PROMPT_MOST_PARTS];
        for (unsigned part = of.first; part < of.end; part++)
            a[part] = d < w->kept ? w->q[d][part]
                                  : ld_shared_v4(p, U32, w->parked, prompt_parked(w, d, part));
        for (unsigned across = 0; across < w->tiles.keys / FRAGMENT; across++) {
            kv_fragments k = kv_tiles_keys(p, &w->tiles, d, across);
            for (unsigned i = 0; i < 2; i++)
                for (unsigned part = of.first; part < of.end; part++)
                    fragment_add(p, w->scores[part][2 * across + i], a[part], k.b[i]);
        }
    }
}

/* Returns true if products become scores (in units of log 2) in a separate step. Without rounding
 * and softcap, the fma of the weights does it. */
static bool makes_scores(const prompt_block *w)
{
    return w->tiles.rounded || w->in->options.softcap > 0;
}

static void make_scores(ptx *p, const prompt_block *w, parts of)
{
    for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++) {
        kv_columns c = { 0 };
        if (w->tiles.rounded)
            c = kv_tiles_columns(p, &w->tiles, w->lane_column, n * COLUMNS);
        for (unsigned part = of.first; part < of.end; part++)
            for (unsigned i = 0; i < 4; i++) {
                var score = w->scores[part][n][i];
                val factor = w->factor[part * HALVES + i / 2], s;
                if (w->tiles.rounded)
                    factor = mul(p, factor, c.factors.v[i % 2]);
                if (w->in->options.softcap == 0) {
                    s = fma(p, score, factor, c.exponents.v[i % 2]);
                } else {
                    s = attention_score(p, w->in, mul(p, score, factor));
                    if (w->tiles.rounded)
                        s = add(p, s, c.exponents.v[i % 2]);
                }
                assign(p, score, s);
            }
    }
}

/* The positions of a row, as s32 relative to one of the lane's positions. */
typedef struct row_mask {
    val first, end;
    bool window;
} row_mask;

static row_mask mask_of(ptx *p, const prompt_block *w, val position, unsigned row)
{
    val2 limits = ld_shared_v2(p, U32, prompt_limits(p, w, row), 0);
    return (row_mask){ .first = as(p, S32, sub(p, limits.v[0], position)),
                       .end = as(p, S32, sub(p, limits.v[1], position)),
                       .window = w->in->options.window != 0 };
}

static val masked(ptx *p, const row_mask *m, unsigned further, val counts, val does_not)
{
    val value = select(p, gt(p, m->end, (int)further), counts, does_not);
    return m->window ? select(p, le(p, m->first, (int)further), value, does_not) : value;
}

/* Computes the weights of a tile as fragments of A. */
static void weigh(ptx *p, const prompt_block *w, parts of,
                  val4 weights[PROMPT_MOST_PARTS][PROMPT_KEY_COLUMNS / 2])
{
    val less[PROMPT_LANE_ROWS];
    for (unsigned row = of.first * HALVES; row < of.end * HALVES; row++)
        less[row] = neg(p, get(p, w->max[row]));
    for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++) {
        kv_columns c = { 0 };
        if (w->tiles.rounded)
            c = kv_tiles_columns(p, &w->tiles, w->lane_column, n * COLUMNS);
        for (unsigned row = of.first * HALVES; row < of.end * HALVES; row++) {
            val two[2];
            for (unsigned i = 0; i < 2; i++) {
                val score = V(w->scores[row / HALVES][n][row % HALVES * 2 + i]);
                two[i] = ex2(p, makes_scores(w) ? add(p, score, less[row])
                                                : fma(p, score, w->factor[row], less[row]));
                if (w->tiles.rounded)
                    assign(p, w->sum[row], fma(p, two[i], c.inverses.v[i], w->sum[row]));
            }
            weights[row / HALVES][n / 2].v[n % 2 * 2 + row % HALVES] =
                pack_halves(p, two[0], two[1]);
        }
    }
}

static void add_values(ptx *p, const prompt_block *w,
                       val4 weights[PROMPT_MOST_PARTS][PROMPT_KEY_COLUMNS / 2])
{
    val ones = get(p, var_u32(p, ONES));
    for (unsigned down = 0; down < w->tiles.keys / FRAGMENT; down++) {
        for (unsigned across = 0; across < w->across; across++) {
            kv_fragments v = kv_tiles_values(p, &w->tiles, imm(U32, down), across);
            for (unsigned i = 0; i < 2; i++)
                for (unsigned part = 0; part < w->parts; part++)
                    fragment_add(p, w->o[part][2 * across + i], weights[part][down], v.b[i]);
        }
        for (unsigned part = 0; part < w->parts && !w->tiles.rounded; part++)
            fragment_add(p, w->sums[part], weights[part][down], (val2){ { ones, ones } });
    }
}

/* Returns a fragment of A with ones where a row attends to a position, from `position` on. */
static val4 ones_where_counted(ptx *p, const prompt_block *w, val position, unsigned part)
{
    val4 ones;
    for (unsigned h = 0; h < HALVES; h++) {
        row_mask m = mask_of(p, w, add(p, position, w->lane_column), part * HALVES + h);
        for (unsigned i = 0; i < 2; i++)
            ones.v[2 * i + h] =
                bit_or(p, masked(p, &m, i * COLUMNS, imm(U32, ONE), imm(U32, 0)),
                       masked(p, &m, i * COLUMNS + 1, imm(U32, ONE << 16), imm(U32, 0)));
    }
    return ones;
}

/* For tiles with masks: an infinity or NaN of V makes the results NaN in the rows that attend to
 * it. Then it is replaced by zero, so that 0 times it does not reach other rows. The rows are found
 * by a product: ones where a row attends to a position, times twos where V is infinite or NaN. */
static void spread_nonfinite_values(ptx *p, const prompt_block *w, val first)
{
    phase(p, "spread infinities and NaN of V to the rows that attend to them");
    val zero = get(p, var_f32(p, 0.0f));
    PTX_FOR (p, depth, 0, w->tiles.keys / FRAGMENT, 1) {
        val4 counts[PROMPT_MOST_PARTS];
        for (unsigned part = 0; part < w->parts; part++)
            counts[part] = ones_where_counted(p, w, mad(p, depth, FRAGMENT, first), part);
        for (unsigned across = 0; across < w->across; across++) {
            warp_barrier(p); /* limits the loads in flight to the registers */
            kv_fragments v = kv_tiles_values(p, &w->tiles, depth, across);
            for (unsigned i = 0; i < 4; i++)
                v.b[i / 2].v[i % 2] = shr(p, nonfinite_halves(p, v.b[i / 2].v[i % 2]), 1);
            for (unsigned i = 0; i < 2 * w->parts; i++) {
                val4 none = { { zero, zero, zero, zero } };
                val4 seen = mma_m16n8k16_f16(p, counts[i / 2], v.b[i % 2], none);
                const var *o = w->o[i / 2][2 * across + i % 2];
                for (unsigned j = 0; j < 4; j++)
                    assign(p, o[j], select(p, gt(p, seen.v[j], 0.0f), (float)NAN, V(o[j])));
            }
        }
    }
    kv_tiles_clear_nonfinite(p, &w->tiles);
}

/* Multiplies parts with a tile's keys and computes the weights. */
static void score(ptx *p, const prompt_block *w, parts of, val first, bool whole,
                  val4 weights[PROMPT_MOST_PARTS][PROMPT_KEY_COLUMNS / 2])
{
    val scales[PROMPT_LANE_ROWS];
    phase(p, "products of q with the keys of a tile");
    multiply_keys(p, w, of);
    phase(p, "softmax: products to weights");
    if (makes_scores(w))
        make_scores(p, w, of);
    if (!whole) {
        for (unsigned row = of.first * HALVES; row < of.end * HALVES; row++) {
            row_mask m = mask_of(p, w, add(p, first, w->lane_column), row);
            for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++)
                for (unsigned i = 0; i < 2; i++) {
                    var score = w->scores[row / HALVES][n][row % HALVES * 2 + i];
                    assign(p, score, masked(p, &m, n * COLUMNS + i, V(score), V(-INFINITY)));
                }
        }
    }
    for (unsigned row = of.first * HALVES; row < of.end * HALVES; row++) {
        val largest = { 0 };
        for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++)
            for (unsigned i = 0; i < 2; i++) {
                val score = V(w->scores[row / HALVES][n][row % HALVES * 2 + i]);
                largest = largest.kind ? max(p, largest, score) : score;
            }
        largest = group_max(p, largest, QUAD);
        if (!makes_scores(w))
            largest = mul(p, largest, w->factor[row]);
        scales[row] = softmax_raise_max(p, w->max[row], largest);
    }
    for (unsigned part = of.first; part < of.end; part++) {
        const val *factors = scales + part * HALVES;
        PTX_IF (p, bit_or(p, ne(p, factors[0], 1.0f), ne(p, factors[1], 1.0f))) {
            for (unsigned n = 0; n < w->across * 2; n++)
                for (unsigned i = 0; i < 4; i++)
                    assign(p, w->o[part][n][i], mul(p, w->o[part][n][i], factors[i / 2]));
            for (unsigned h = 0; h < HALVES; h++) {
                var sum = w->tiles.rounded ? w->sum[part * HALVES + h] : w->sums[part][2 * h];
                assign(p, sum, mul(p, sum, factors[h]));
            }
        }
    }
    weigh(p, w, of, weights);
}

/* Parts of tiles with masks are processed one after the other, since masks need registers, too. */
void prompt_attend(ptx *p, const prompt_block *w, val from, val to, bool whole)
{
    unsigned together = whole ? w->parts : 1;
    ptx_loop_work(p, w->tiles.keys, "positions");
    PTX_FOR (p, tile, from, to, 1) {
        val first = mul(p, tile, w->tiles.keys);
        val4 weights[PROMPT_MOST_PARTS][PROMPT_KEY_COLUMNS / 2];
        kv_tiles_next_keys(p, &w->tiles, tile);
        for (unsigned part = 0; part < w->parts; part += together)
            score(p, w, (parts){ part, part + together }, first, whole, weights);
        kv_tiles_next_values(p, &w->tiles, tile);
        if (!whole)
            PTX_IF (p, ne(p, kv_tiles_count_nonfinite(p, &w->tiles), 0))
                spread_nonfinite_values(p, w, first);
        phase(p, "weighted values of the tile");
        add_values(p, w, weights);
    }
}
