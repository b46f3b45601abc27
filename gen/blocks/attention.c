#include <math.h>

#include "gen/blocks/attention.h"
#include "gen/blocks/reduce.h"

enum {
    WARP = 32,
    MOST_USUAL_WARPS = 16,
    F32_BYTES = 4,
    WIDE_PIECE = 16, /* bytes */
    NARROW_PIECE = 8,
    BYTES_IN_FLIGHT = 128, /* of K a lane, and as many of V */
    MAX_IN_FLIGHT = 4,     /* positions */
    ROWS_IN_FLIGHT = 8,    /* partial ones */
};

/* Threads of the largest blocks have 64 registers: half of everything. */
static unsigned share(const instance *in, unsigned usual)
{
    return in->num_warps > MOST_USUAL_WARPS ? usual / 2 : usual;
}

static row_split split_into(const instance *in, unsigned piece_bytes)
{
    unsigned lane_values = share(in, LANE_VALUES);
    row_split s = { .value_bytes = formats[kv_format(in)].block_bytes, .group = 2 };
    s.piece = piece_bytes / s.value_bytes;
    unsigned pieces = (unsigned)in->shape.head_dim / s.piece;
    while (s.group * lane_values < pieces * s.piece)
        s.group *= 2;
    s.pieces = (pieces + s.group - 1) / s.group;
    s.ragged = pieces % s.group != 0;
    return s;
}

static unsigned covered(const row_split *s)
{
    return s->group * s->pieces * s->piece;
}

/* Narrow pieces where wide ones would leave more lanes without work. */
static row_split split_row(const instance *in)
{
    row_split wide = split_into(in, WIDE_PIECE), narrow = split_into(in, NARROW_PIECE);
    bool halves = wide.value_bytes < F32_BYTES;
    return halves && covered(&narrow) < covered(&wide) ? narrow : wide;
}

static unsigned lane_values(const row_split *s)
{
    return s->pieces * s->piece;
}

/* Bytes from a lane's piece to its next. */
static unsigned stride(const row_split *s, unsigned value_bytes)
{
    return s->group * s->piece * value_bytes;
}

positions attention_positions(ptx *p, const instance *in, val seq_len)
{
    positions run = { .first = imm(U32, 0) };
    run.end = named(p, "seq_len", min(p, seq_len, in->shape.max_seq_len));
    if (in->window)
        run.first = sub(p, run.end, min(p, run.end, in->window));
    return run;
}

/* What q is multiplied by: scores come in units of log 2, or in units of the cap. */
static float query_scale(const instance *in)
{
    double scale = in->scale > 0 ? in->scale : 1 / sqrt((double)in->shape.head_dim);
    return (float)(in->softcap > 0 ? scale / in->softcap : scale * LOG2_E);
}

/* The address of a lane's part of an f32 row at a parameter. */
static val lane_row(ptx *p, const attention *a, const char *name, val query)
{
    val row = mad_wide(p, query, a->in->shape.head_dim * F32_BYTES, parameter(p, name));
    return mad_wide(p, a->first_piece, a->split.piece * F32_BYTES, row);
}

static bool is_ragged_piece(const row_split *s, unsigned piece)
{
    return s->ragged && piece + 1 == s->pieces;
}

static void load_query(ptx *p, attention *a, val query)
{
    float scale = query_scale(a->in);
    val row = lane_row(p, a, "q", query), last = row;
    unsigned step = stride(&a->split, F32_BYTES);
    if (a->split.ragged)
        last = add(p, row,
                   select(p, a->has_last, imm(U64, (a->split.pieces - 1) * step), imm(U64, 0)));
    for (unsigned i = 0; i < lane_values(&a->split); i += 4) {
        unsigned piece = i / a->split.piece, within = i % a->split.piece * F32_BYTES;
        bool ragged = is_ragged_piece(&a->split, piece);
        val4 loaded =
            ld_const_v4(p, F32, ragged ? last : row, (ragged ? 0 : piece * step) + within);
        for (unsigned j = 0; j < 4; j++) {
            val scaled = mul(p, loaded.v[j], scale);
            a->q[i + j] = ragged ? select(p, a->has_last, scaled, imm(F32, 0)) : scaled;
        }
    }
}

attention attention_new(ptx *p, const instance *in, val query)
{
    attention a = { .in = in, .split = split_row(in) };
    val lane = lane_id(p);
    unsigned last = (a.split.pieces - 1) * a.split.group;
    a.lane = named(p, "piece", bit_and(p, lane, a.split.group - 1));
    a.group = named(p, "group", div(p, lane, a.split.group));
    a.has_last = lt(p, a.lane, in->shape.head_dim / a.split.piece - last);
    a.last_offset =
        select(p, a.has_last, imm(U64, last * a.split.piece * a.split.value_bytes), imm(U64, 0));
    a.first_piece = a.split.pieces == 1 ? select(p, a.has_last, a.lane, imm(U32, 0)) : a.lane;
    load_query(p, &a, query);
    a.state = softmax_new(p, lane_values(&a.split));
    return a;
}

val attention_cache_offset(ptx *p, const instance *in, val head)
{
    unsigned value_bytes = formats[kv_format(in)].block_bytes;
    val kv_head = named(p, "kv_head", div(p, head, in->shape.num_heads / in->shape.num_kv_heads));
    val row = mul_wide(p, kv_head, in->shape.max_seq_len); /* elements may pass 2^32 */
    return mul(p, row, in->shape.head_dim * value_bytes);
}

/* A lane's part of a cache row, as loaded: f32 values, or words of two values. */
typedef struct raw_row {
    val words[LANE_VALUES];
} raw_row;

/* The row at a pointer, offset bytes behind it. */
static raw_row load_row(ptx *p, const attention *a, const lane_rows *rows, int64_t offset)
{
    const row_split *s = &a->split;
    type t = s->value_bytes == F32_BYTES ? F32 : U32;
    unsigned words = s->piece * s->value_bytes / F32_BYTES;
    raw_row row = { { { 0 } } };
    for (unsigned i = 0; i < s->pieces; i++) {
        bool ragged = is_ragged_piece(s, i);
        var base = ragged ? rows->last : rows->first;
        int64_t at = offset + (ragged ? 0 : i * stride(s, s->value_bytes));
        val2 two = { { { 0 } } };
        val4 four = { { { 0 } } };
        if (words == 4)
            four = ld_const_v4(p, t, base, at);
        else
            two = ld_const_v2(p, t, base, at);
        for (unsigned j = 0; j < words; j++)
            row.words[i * words + j] = words == 4 ? four.v[j] : two.v[j];
    }
    return row;
}

static void unpack(ptx *p, const attention *a, const raw_row *row, val values[LANE_VALUES])
{
    for (unsigned i = 0; i < lane_values(&a->split); i++) {
        val word = row->words[i * a->split.value_bytes / F32_BYTES];
        if (a->in->kv_type == KV_F16)
            values[i] = convert(p, F32, halves(p, word).v[i % 2]);
        else if (a->in->kv_type == KV_BF16)
            values[i] = bits_as(p, F32, i % 2 ? bit_and(p, word, 0xffff0000) : shl(p, word, 16));
        else
            values[i] = word;
    }
}

/* tanh: x + x^3 P(x^2) below 0.625, where the other form would cancel (Moshier's Cephes has these
 * coefficients, good to 1 unit in the last place), else 1 - 2 / (exp(2x) + 1). */
static val hyperbolic_tangent(ptx *p, val x)
{
    static const float series[] = { -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                                    1.33314422036e-1f, -3.33332819422e-1f };
    val square = mul(p, x, x), small = imm(F32, 0);
    for (size_t i = 0; i < sizeof series / sizeof *series; i++)
        small = i ? fma(p, small, square, series[i]) : add(p, small, series[i]);
    small = fma(p, mul(p, small, square), x, x);
    val size = abs(p, x);
    val inverse = rcp_approx(p, add(p, ex2(p, mul(p, size, 2 * LOG2_E)), 1));
    val large = fma(p, inverse, -2, 1);
    large = select(p, lt(p, x, 0), neg(p, large), large);
    return select(p, lt(p, size, 0.625f), small, large);
}

static val score(ptx *p, const attention *a, const raw_row *k)
{
    val values[LANE_VALUES];
    unpack(p, a, k, values);
    val sum = mul(p, a->q[0], values[0]);
    for (unsigned i = 1; i < lane_values(&a->split); i++)
        sum = fma(p, a->q[i], values[i], sum);
    sum = group_sum(p, sum, a->split.group);
    if (a->in->softcap > 0)
        return mul(p, hyperbolic_tangent(p, sum), a->in->softcap * LOG2_E);
    return sum;
}

static void add_row(ptx *p, const attention *a, val weight, const raw_row *v)
{
    val values[LANE_VALUES];
    unpack(p, a, v, values);
    for (unsigned i = 0; i < lane_values(&a->split); i++)
        assign(p, a->state.values[i], fma(p, weight, values[i], a->state.values[i]));
}

/* One position for every group, count times: position i of a group lies i * step bytes behind its
 * pointers. valid, a predicate or none, says whether a group's position exists; one that does not
 * weighs nothing. */
static void add_positions(ptx *p, const attention *a, unsigned count, int64_t step,
                          const val *valid)
{
    val scores[MAX_IN_FLIGHT] = { { 0 } };
    raw_row k[MAX_IN_FLIGHT], v[MAX_IN_FLIGHT];
    for (unsigned i = 0; i < count; i++) {
        k[i] = load_row(p, a, &a->k, i * step);
        v[i] = load_row(p, a, &a->v, i * step);
    }
    for (unsigned i = 0; i < count; i++) {
        scores[i] = score(p, a, &k[i]);
        if (valid)
            scores[i] = select(p, *valid, scores[i], -INFINITY);
    }
    softmax_raise(p, &a->state, scores, count);
    for (unsigned i = 0; i < count; i++)
        add_row(p, a, softmax_weight(p, &a->state, scores[i]), &v[i]);
}

static void point_at(ptx *p, const attention *a, val k, val v, val position)
{
    val row = mul_wide(p, position, a->in->shape.head_dim * a->split.value_bytes);
    const val starts[] = { k, v };
    const lane_rows *rows[] = { &a->k, &a->v };
    for (int i = 0; i < 2; i++) {
        assign(p, rows[i]->first, add(p, starts[i], row));
        assign(p, rows[i]->last, add(p, rows[i]->first, a->last_offset));
    }
}

static void advance(ptx *p, const attention *a, int64_t bytes)
{
    const lane_rows *rows[] = { &a->k, &a->v };
    for (int i = 0; i < 2; i++) {
        assign(p, rows[i]->first, add(p, rows[i]->first, bytes));
        assign(p, rows[i]->last, add(p, rows[i]->last, bytes));
    }
}

static unsigned positions_in_flight(const instance *in, const row_split *s)
{
    unsigned count = share(in, BYTES_IN_FLIGHT) / (lane_values(s) * s->value_bytes);
    return count < MAX_IN_FLIGHT ? count : MAX_IN_FLIGHT;
}

/* Several positions a group at once as long as they all exist; the rest one a group, where a group
 * without one takes the last position and gives it no weight. */
void attention_add(ptx *p, attention *a, val k, val v, positions run)
{
    unsigned groups = WARP / a->split.group, in_flight = positions_in_flight(a->in, &a->split);
    int64_t step = groups * a->in->shape.head_dim * a->split.value_bytes;
    val turns = div(p, sub(p, run.end, run.first), groups * in_flight);
    val offset = mul_wide(p, a->first_piece, a->split.piece * a->split.value_bytes);
    var *pointers[] = { &a->k.first, &a->k.last, &a->v.first, &a->v.last };
    for (int i = 0; i < 4; i++)
        *pointers[i] = var_u64(p, 0);
    k = add(p, k, offset);
    v = add(p, v, offset);
    point_at(p, a, k, v, add(p, run.first, a->group));
    ptx_loop_work(p, 2 * in_flight * lane_values(&a->split), "elements");
    PTX_FOR (p, turn, 0, turns, 1) {
        add_positions(p, a, in_flight, step, NULL);
        advance(p, a, in_flight * step);
    }
    val rest_first = mad(p, turns, imm(U32, groups * in_flight), run.first);
    PTX_FOR (p, rest, rest_first, run.end, groups) {
        val position = add(p, rest, a->group), last = sub(p, run.end, 1);
        val valid = le(p, position, last);
        point_at(p, a, k, v, min(p, position, last));
        add_positions(p, a, 1, 0, &valid);
    }
    for (unsigned mask = a->split.group; mask < WARP; mask *= 2)
        softmax_merge_lanes(p, &a->state, mask);
}

/* The lane's values, multiplied by scale where there is one, as f32 from an address on. One group
 * of the warp stores, since all have the same. */
static void store_values(ptx *p, const attention *a, val row, bool shared, const val *scale)
{
    for (unsigned i = 0; i < lane_values(&a->split); i += 4) {
        unsigned piece = i / a->split.piece;
        int64_t offset = piece * stride(&a->split, F32_BYTES) + i % a->split.piece * F32_BYTES;
        val4 values;
        for (unsigned j = 0; j < 4; j++) {
            values.v[j] = get(p, a->state.values[i + j]);
            if (scale)
                values.v[j] = mul(p, values.v[j], *scale);
        }
        PTX_IF (p, is_ragged_piece(&a->split, piece) ? a->has_last : imm(PRED, 1)) {
            if (shared)
                st_shared_v4(p, F32, row, offset, values);
            else
                st_global_v4(p, F32, row, offset, values);
        }
    }
}

void attention_store_output(ptx *p, const attention *a, val query)
{
    val scale = softmax_scale(p, &a->state), row = lane_row(p, a, "o", query);
    PTX_IF (p, eq(p, a->group, 0))
        store_values(p, a, row, false, &scale);
}

void attention_store_partial(ptx *p, const attention *a, val row, bool shared)
{
    val lane_bytes = mul(p, a->first_piece, a->split.piece * F32_BYTES);
    val lane_row = add(p, row, shared ? lane_bytes : convert(p, U64, lane_bytes));
    int64_t sums = a->in->shape.head_dim * F32_BYTES;
    PTX_IF (p, eq(p, a->group, 0)) {
        store_values(p, a, lane_row, shared, NULL);
        PTX_IF (p, eq(p, a->lane, 0)) {
            val max = get(p, a->state.max), sum = get(p, a->state.sum);
            val4 extra = { { max, sum, imm(F32, 0), imm(F32, 0) } };
            if (shared)
                st_shared_v4(p, F32, row, sums, extra);
            else
                st_global_v4(p, F32, row, sums, extra);
        }
    }
}

unsigned partial_bytes(const instance *in)
{
    return (unsigned)(in->shape.head_dim + PARTIAL_EXTRA) * F32_BYTES;
}

/* A lane's four values of several rows: they lie at values, the rows' own sums at row. */
static void merge_rows(ptx *p, const instance *in, const softmax *state, val values, val row,
                       unsigned first, unsigned count, bool shared)
{
    val4 loaded[ROWS_IN_FLIGHT], extra[ROWS_IN_FLIGHT];
    val maxima[ROWS_IN_FLIGHT];
    for (unsigned i = 0; i < count; i++) {
        int64_t at = (first + i) * partial_bytes(in);
        int64_t sums = at + in->shape.head_dim * F32_BYTES;
        loaded[i] = shared ? ld_shared_v4(p, F32, values, at) : ld_const_v4(p, F32, values, at);
        extra[i] = shared ? ld_shared_v4(p, F32, row, sums) : ld_const_v4(p, F32, row, sums);
        maxima[i] = extra[i].v[0];
    }
    softmax_raise(p, state, maxima, count);
    for (unsigned i = 0; i < count; i++) {
        val weight = softmax_add_sum(p, state, maxima[i], extra[i].v[1]);
        for (unsigned j = 0; j < 4; j++)
            assign(p, state->values[j], fma(p, weight, loaded[i].v[j], state->values[j]));
    }
}

static void store_merged(ptx *p, const instance *in, const softmax *state, val query, val piece)
{
    val scale = softmax_scale(p, state);
    val row = mad_wide(p, query, in->shape.head_dim * F32_BYTES, parameter(p, "o"));
    val4 values;
    for (unsigned j = 0; j < 4; j++)
        values.v[j] = mul(p, state->values[j], scale);
    st_global_v4(p, F32, mad_wide(p, piece, WIDE_PIECE, row), 0, values);
}

void partials_merge(ptx *p, const instance *in, val rows, val count, val query)
{
    PTX_FOR (p, piece, lane_id(p), in->shape.head_dim * F32_BYTES / WIDE_PIECE, WARP) {
        softmax state = softmax_new(p, 4);
        var row = var_like(p, rows), values = var_like(p, mad_wide(p, piece, WIDE_PIECE, rows));
        val turns = div(p, count, ROWS_IN_FLIGHT);
        ptx_loop_work(p, 4 * ROWS_IN_FLIGHT, "elements");
        PTX_FOR (p, turn, 0, turns, 1) {
            merge_rows(p, in, &state, get(p, values), get(p, row), 0, ROWS_IN_FLIGHT, false);
            assign(p, row, add(p, row, ROWS_IN_FLIGHT * partial_bytes(in)));
            assign(p, values, add(p, values, ROWS_IN_FLIGHT * partial_bytes(in)));
        }
        PTX_FOR (p, rest, mul(p, turns, ROWS_IN_FLIGHT), count, 1) {
            merge_rows(p, in, &state, get(p, values), get(p, row), 0, 1, false);
            assign(p, row, add(p, row, partial_bytes(in)));
            assign(p, values, add(p, values, partial_bytes(in)));
        }
        store_merged(p, in, &state, query, piece);
    }
}

void partials_merge_shared(ptx *p, const instance *in, val rows, unsigned count, val query)
{
    PTX_FOR (p, piece, lane_id(p), in->shape.head_dim * F32_BYTES / WIDE_PIECE, WARP) {
        softmax state = softmax_new(p, 4);
        val values = mad(p, piece, imm(U32, WIDE_PIECE), rows);
        for (unsigned i = 0; i < count; i += ROWS_IN_FLIGHT)
            merge_rows(p, in, &state, values, rows, i,
                       count - i < ROWS_IN_FLIGHT ? count - i : ROWS_IN_FLIGHT, true);
        store_merged(p, in, &state, query, piece);
    }
}
