#include <float.h>
#include <math.h>

#include "gen/attention/attention.h"
#include "gen/common/halves.h"
#include "gen/common/reduce.h"
#include "gen/common/functions.h"
#include "gen/common/next.h"

enum {
    MOST_USUAL_WARPS = 16,
    LANE_VALUES = MAX_LANE_VALUES,
    WIDE_PIECE = 16,       /* bytes */
    LEAST_GROUP = 2,       /* lanes a position */
    BYTES_IN_FLIGHT = 128, /* of K a lane, and as many of V */
    MAX_IN_FLIGHT = 4,     /* positions */
    ROWS_IN_FLIGHT = 8,    /* partial ones, */
    MOST_IN_FLIGHT = 16,   /* and where a block has few warps to merge many */
};

/* Returns what a thread may use of registers. Threads of the largest blocks have 64 registers: half
 * of everything. */
static unsigned share(const instance *in, unsigned usual)
{
    return in->num_warps > MOST_USUAL_WARPS ? usual / 2 : usual;
}

val attention_factor_of_power(ptx *p, const instance *in, val exponent)
{
    val factor = mul(p, inverse_of_power(p, exponent), attention_query_scale(in));
    return max(p, min(p, factor, FLT_MAX), FLT_MIN);
}

positions attention_within_ring(ptx *p, int64_t rows, positions run)
{
    val first = rem(p, run.first, imm(U32, rows));
    return (positions){ .first = first, .end = add(p, first, sub(p, run.end, run.first)) };
}

positions attention_positions(ptx *p, const instance *in, val seq_len)
{
    positions run = { .first = imm(U32, 0) };
    run.end = named(p, "seq_len", min(p, seq_len, in->shape.max_seq_len));
    if (in->options.window)
        run.first = sub(p, run.end, min(p, run.end, in->options.window));
    return run;
}

float attention_query_scale(const instance *in)
{
    double scale = in->options.scale > 0 ? in->options.scale : 1 / sqrt((double)in->shape.head_dim);
    return (float)(in->options.softcap > 0 ? scale / in->options.softcap : scale * LOG2_E);
}

static val f32_row(ptx *p, const instance *in, const char *name, val query)
{
    return mad_wide(p, query, in->shape.head_dim * F32_BYTES, parameter(p, name));
}

attention attention_new(ptx *p, const instance *in, val query)
{
    attention a = { .in = in };
    a.row = row_lane_new(p, in, row_split_of(in, share(in, LANE_VALUES), LEAST_GROUP));
    row_lane_load(p, &a.row, f32_row(p, in, "q", query), attention_query_scale(in), a.q);
    a.state = softmax_new(p, row_split_values(&a.row.split));
    return a;
}

val attention_sequence_length(ptx *p, bool settled, val sequence)
{
    return load_state(p, settled, U32, mad_wide(p, sequence, 4, parameter(p, "seq_lens")));
}

val attention_sequence_cache(ptx *p, bool settled, const char *name, val sequence)
{
    return load_state(p, settled, U64, mad_wide(p, sequence, 8, parameter(p, name)));
}

val attention_cache_offset(ptx *p, const instance *in, val head)
{
    int64_t ratio = in->shape.num_heads / in->shape.num_kv_heads;
    return attention_kv_head_offset(p, in, named(p, "kv_head", div(p, head, ratio)));
}

val attention_kv_head_offset(ptx *p, const instance *in, val kv_head)
{
    return mul(p, mul_wide(p, kv_head, kv_rows(in)), cache_row_bytes(in));
}

val attention_score(ptx *p, const instance *in, val product)
{
    if (in->options.softcap > 0)
        return mul(p, hyperbolic_tangent(p, product), in->options.softcap * LOG2_E);
    return product;
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
        k[i] = raw_row_load(p, &a->row, V(a->k.first), V(a->k.last), i * step);
        v[i] = raw_row_load(p, &a->row, V(a->v.first), V(a->v.last), i * step);
    }
    for (unsigned i = 0; i < count; i++) {
        val values[LANE_VALUES];
        raw_row_unpack(p, &a->row, &k[i], values);
        val sum = mul(p, a->q[0], values[0]);
        for (unsigned j = 1; j < row_split_values(&a->row.split); j++)
            sum = fma(p, a->q[j], values[j], sum);
        scores[i] = attention_score(p, a->in, group_sum(p, sum, a->row.split.group));
        if (valid)
            scores[i] = select(p, *valid, scores[i], -INFINITY);
    }
    softmax_raise(p, &a->state, scores, count);
    for (unsigned i = 0; i < count; i++) {
        val weight = softmax_weight(p, &a->state, scores[i]);
        val x[LANE_VALUES];
        raw_row_unpack(p, &a->row, &v[i], x);
        for (unsigned l = 0; l < row_split_values(&a->row.split); l++)
            assign(p, a->state.values[l], fma(p, weight, x[l], a->state.values[l]));
    }
}

static void point_at(ptx *p, const attention *a, val k, val v, val position)
{
    val row = mul_wide(p, position, cache_row_bytes(a->in));
    const val starts[] = { k, v };
    const lane_rows *rows[] = { &a->k, &a->v };
    for (int i = 0; i < 2; i++) {
        assign(p, rows[i]->first, add(p, starts[i], row));
        assign(p, rows[i]->last, add(p, rows[i]->first, a->row.last_offset));
    }
}

/* Several positions a group at once as long as they all exist; the rest one a group, where a group
 * without one takes the last position and gives it no weight. */
void attention_add(ptx *p, attention *a, val k, val v, positions run)
{
    unsigned count = share(a->in, BYTES_IN_FLIGHT) / (raw_row_words(&a->row.split) * F32_BYTES);
    unsigned groups = WARP / a->row.split.group,
             in_flight = count < MAX_IN_FLIGHT ? count : MAX_IN_FLIGHT;
    int64_t step = groups * cache_row_bytes(a->in);
    val turns = div(p, sub(p, run.end, run.first), groups * in_flight);
    val offset = row_lane_offset(p, &a->row);
    var *pointers[] = { &a->k.first, &a->k.last, &a->v.first, &a->v.last };
    for (int i = 0; i < 4; i++)
        *pointers[i] = var_u64(p, 0);
    k = add(p, k, offset);
    v = add(p, v, offset);
    point_at(p, a, k, v, add(p, run.first, a->row.group));
    phase(p, "attend: several positions of each group of lanes at once");
    ptx_loop_work(p, 2 * in_flight * row_split_values(&a->row.split), "elements");
    PTX_FOR (p, turn, 0, turns, 1) {
        add_positions(p, a, in_flight, step, NULL);
        int64_t bytes = in_flight * step;
        const lane_rows *rows[] = { &a->k, &a->v };
        for (int i = 0; i < 2; i++) {
            assign(p, rows[i]->first, add(p, rows[i]->first, bytes));
            assign(p, rows[i]->last, add(p, rows[i]->last, bytes));
        }
    }
    phase(p, "attend: the positions left over, one a group");
    val rest_first = mad(p, turns, imm(U32, groups * in_flight), run.first);
    PTX_FOR (p, rest, rest_first, run.end, groups) {
        val position = add(p, rest, a->row.group), last = sub(p, run.end, 1);
        val valid = le(p, position, last);
        point_at(p, a, k, v, min(p, position, last));
        add_positions(p, a, 1, 0, &valid);
    }
    phase(p, "merge the groups of lanes");
    for (unsigned mask = a->row.split.group; mask < WARP; mask *= 2)
        softmax_merge_lanes(p, &a->state, mask);
}

/* The sum is a NaN where the sink is one: the values, of which none belongs to it, do not tell. */
val attention_output_scale(ptx *p, const instance *in, const softmax *state, val query)
{
    if (!in->options.sinks)
        return select(p, gt(p, state->sum, 0.0f), rcp(p, state->sum), imm(F32, 0));
    val head = rem(p, query, imm(U32, in->shape.num_heads));
    val sink = ld_const(p, F32, mad_wide(p, head, F32_BYTES, parameter(p, "sinks")), 0);
    val score = mul(p, sink, (float)LOG2_E);
    softmax_raise(p, state, &score, 1);
    softmax_weight(p, state, score);
    return select(p, eq(p, state->sum, 0.0f), imm(F32, 0), rcp(p, state->sum));
}

void attention_store_output(ptx *p, const attention *a, val query)
{
    val scale = attention_output_scale(p, a->in, &a->state, query);
    val at = row_lane_at(p, &a->row, f32_row(p, a->in, "o", query));
    PTX_IF (p, eq(p, a->row.group, 0))
        row_lane_store(p, &a->row, at, a->state.values, &scale);
}

val2 partial_load_sums(ptx *p, const instance *in, val row)
{
    return ld_shared_v2(p, F32, row, in->shape.head_dim * F32_BYTES);
}

void partial_store_sums(ptx *p, const instance *in, val row, val max, val sum)
{
    const val sums[] = { max, sum, imm(F32, 0), imm(F32, 0) };
    store_floats(p, row, in->shape.head_dim * F32_BYTES, 4, sums);
}

void attention_store_partial(ptx *p, const attention *a, val row)
{
    val at = row_lane_at(p, &a->row, row);
    PTX_IF (p, eq(p, a->row.group, 0)) {
        row_lane_store(p, &a->row, at, a->state.values, NULL);
        PTX_IF (p, eq(p, a->row.lane, 0))
            partial_store_sums(p, a->in, row, get(p, a->state.max), get(p, a->state.sum));
    }
}

unsigned partial_bytes(const instance *in)
{
    return (unsigned)(in->shape.head_dim + PARTIAL_EXTRA) * F32_BYTES;
}

val partial_rows(ptx *p, const instance *in, val query, val chunks)
{
    val row = mul_wide(p, query, chunks); /* may pass 2^32 */
    return mad(p, row, imm(U64, partial_bytes(in)), parameter(p, "partials"));
}

val attention_chunk_count(ptx *p, val count, val size)
{
    return div(p, add(p, count, sub(p, size, 1)), size);
}

positions attention_chunk(ptx *p, positions all, val size, val chunk)
{
    positions run = { .first = mad(p, chunk, size, all.first) };
    run.end = min(p, add(p, run.first, size), all.end);
    return run;
}

static unsigned partial_pieces(const instance *in)
{
    return (unsigned)in->shape.head_dim * F32_BYTES / WIDE_PIECE;
}

/* A lane's four values of a partial row, and the row's max and sum. */
typedef struct partial_piece {
    val4 values;
    val2 sums;
} partial_piece;

/* Pieces of several rows; count is at most MOST_IN_FLIGHT. */
static void merge_pieces(ptx *p, const softmax *state, const partial_piece *pieces, unsigned count)
{
    val maxima[MOST_IN_FLIGHT] = { { 0 } };
    for (unsigned i = 0; i < count; i++)
        maxima[i] = pieces[i].sums.v[0];
    softmax_raise(p, state, maxima, count);
    for (unsigned i = 0; i < count; i++) {
        val weight = ex2(p, sub(p, maxima[i], state->max));
        assign(p, state->sum, fma(p, weight, pieces[i].sums.v[1], state->sum));
        for (unsigned j = 0; j < 4; j++)
            assign(p, state->values[j], fma(p, weight, pieces[i].values.v[j], state->values[j]));
    }
}

/* Merges a piece of several rows. Past the last row of global memory it loads that one again, with
 * the lowest maximum, which weighs nothing. */
static softmax merge_rows(ptx *p, const instance *in, row_source source, val rows, val count,
                          val piece, unsigned at_once)
{
    softmax state = softmax_new(p, 4);
    int64_t sums = in->shape.head_dim * F32_BYTES;
    partial_piece pieces[MOST_IN_FLIGHT];
    if (source == ROWS_IN_SHARED) {
        val values = mad(p, piece, imm(U32, WIDE_PIECE), rows);
        for (unsigned i = 0; i < count.bits; i++) {
            int64_t at = i * partial_bytes(in);
            unsigned turn = i % ROWS_IN_FLIGHT;
            pieces[turn].values = ld_shared_v4(p, F32, values, at);
            pieces[turn].sums = partial_load_sums(p, in, add(p, rows, at));
            if (turn + 1 == ROWS_IN_FLIGHT || i + 1 == count.bits)
                merge_pieces(p, &state, pieces, turn + 1);
        }
        return state;
    }
    val last = sub(p, count, 1);
    if (source == ROWS_OF_ANOTHER_GRID) /* this is all that the kernel does */
        ptx_loop_work(p, 4 * at_once, "elements");
    PTX_FOR (p, row, 0, count, at_once) {
        for (unsigned i = 0; i < at_once; i++) {
            val number = add(p, row, i);
            val at = mad_wide(p, min(p, number, last), partial_bytes(in), rows);
            val values = mad_wide(p, piece, WIDE_PIECE, at);
            ptx_op load = source == ROWS_OF_THIS_GRID ? INST_LD_GLOBAL : INST_LD_CONST;
            pieces[i].values = ptx_load_v4(p, load, F32, values, 0);
            pieces[i].sums = ptx_load_v2(p, load, F32, at, sums);
            if (i)
                pieces[i].sums.v[0] = select(p, le(p, number, last), pieces[i].sums.v[0], -FLT_MAX);
        }
        merge_pieces(p, &state, pieces, at_once);
    }
    return state;
}

val attention_is_last_block(ptx *p, val column, val blocks, val ticket)
{
    val counter = mad_wide(p, column, sizeof(uint32_t), parameter(p, "counters"));
    return block_is_last(p, counter, blocks, ticket);
}

/* Zero times a gate is a NaN where the gate is none of the numbers that by_sigmoid knows. */
val attention_gated(ptx *p, val value, val gate)
{
    return fma(p, gate, imm(F32, 0), by_sigmoid(p, value, gate));
}

void partials_merge(ptx *p, const instance *in, row_source source, val rows, val count, val query)
{
    PTX_FOR (p, piece, lane_id(p), partial_pieces(in), WARP) {
        softmax state = merge_rows(p, in, source, rows, count, piece, ROWS_IN_FLIGHT);
        val scale = attention_output_scale(p, in, &state, query);
        val row = f32_row(p, in, "o", query);
        val4 values;
        for (unsigned j = 0; j < 4; j++)
            values.v[j] = mul(p, state.values[j], scale);
        if (in->options.gate) {
            val gate_row = f32_row(p, in, "gate", query);
            val4 gates = ld_const_v4(p, F32, mad_wide(p, piece, WIDE_PIECE, gate_row), 0);
            for (unsigned j = 0; j < 4; j++)
                values.v[j] = attention_gated(p, values.v[j], gates.v[j]);
        }
        st_global_v4(p, F32, mad_wide(p, piece, WIDE_PIECE, row), 0, values);
    }
}

void partials_merge_to(ptx *p, const instance *in, row_source source, val rows, val count, val row)
{
    PTX_FOR (p, piece, lane_id(p), partial_pieces(in), WARP) {
        softmax state = merge_rows(p, in, source, rows, count, piece, MOST_IN_FLIGHT);
        val values[4];
        for (unsigned j = 0; j < 4; j++)
            values[j] = get(p, state.values[j]);
        val at = row.type == U32 ? mad(p, piece, imm(U32, WIDE_PIECE), row)
                                 : mad_wide(p, piece, WIDE_PIECE, row);
        store_floats(p, at, 0, 4, values);
        PTX_IF (p, eq(p, piece, 0))
            partial_store_sums(p, in, row, get(p, state.max), get(p, state.sum));
    }
}
