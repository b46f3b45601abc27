#include <float.h>
#include <math.h>

#include "gen/attention/attention.h"
#include "gen/common/halves.h"
#include "gen/common/next.h"
#include "gen/common/reduce.h"

enum {
    WIDE_PIECE = 16,     /* bytes */
    ROWS_IN_FLIGHT = 8,  /* partial rows */
    MOST_IN_FLIGHT = 16, /* the same if few warps merge many rows */
};

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

val attention_f32_row(ptx *p, const instance *in, const char *name, val query)
{
    return mad_wide(p, query, in->shape.head_dim * F32_BYTES, parameter(p, name));
}

val attention_sequence_length(ptx *p, bool settled, val row)
{
    return load_state(p, settled, U32, mad_wide(p, row, 4, parameter(p, "seq_lens")));
}

cache_pages cache_pages_of(ptx *p, const instance *in, bool settled, val row)
{
    val at = mad_wide(p, row, 4, parameter(p, "sequences"));
    val number = named(p, "sequence_page", load_state(p, settled, U32, at));
    if (in->options.page)
        number = mul(p, number, (unsigned)kv_pages(in));
    return (cache_pages){ in, settled, number };
}

val cache_pages_start(ptx *p, const cache_pages *c, val pool, val kv_head)
{
    const instance *in = c->in;
    if (!in->options.page)
        kv_head = mad(p, c->number, imm(U32, problem_cache_heads(&in->shape)), kv_head);
    val row = mul_wide(p, kv_head, (unsigned)kv_page_rows(in));
    return mad(p, row, imm(U64, cache_row_bytes(in)), pool);
}

val cache_pages_row(ptx *p, const cache_pages *c, val position)
{
    unsigned page = (unsigned)c->in->options.page;
    if (!page)
        return position;
    val entry = add(p, c->number, div(p, position, page));
    val at = mad_wide(p, entry, sizeof(uint32_t), parameter(p, "pages"));
    val first = mul(p, load_state(p, c->settled, U32, at),
                    (unsigned)problem_cache_heads(&c->in->shape) * page);
    return add(p, first, rem(p, position, page));
}

val cache_pages_existing(ptx *p, const instance *in, val position)
{
    return in->options.page ? min(p, position, in->shape.max_seq_len - 1) : position;
}

val attention_score(ptx *p, const instance *in, val product)
{
    if (in->options.softcap > 0)
        return mul(p, hyperbolic_tangent(p, product), in->options.softcap * LOG2_E);
    return product;
}

/* A NaN sink makes the sum NaN. The values cannot show it, since no value belongs to the sink. */
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

val2 partial_load_sums(ptx *p, const instance *in, val row)
{
    return ld_shared_v2(p, F32, row, in->shape.head_dim * F32_BYTES);
}

void partial_store_sums(ptx *p, const instance *in, val row, val max, val sum)
{
    const val sums[] = { max, sum, imm(F32, 0), imm(F32, 0) };
    store_floats(p, row, in->shape.head_dim * F32_BYTES, 4, sums);
}

bool partial_has_halves(const instance *in)
{
    return in->family->by_runs && in->shape.head_dim > PROBLEM_SPLIT_HEAD_DIM;
}

unsigned partial_bytes(const instance *in)
{
    return (unsigned)(in->shape.head_dim + PARTIAL_EXTRA) * F32_BYTES;
}

val partial_rows(ptx *p, const instance *in, val query, val chunks)
{
    val row = mul_wide(p, query, chunks); /* may exceed 2^32 */
    return mad(p, row, imm(U64, partial_bytes(in)), parameter(p, "partials"));
}

val attention_chunk_count(ptx *p, val count, val size)
{
    return div(p, add(p, count, sub(p, size, 1)), size);
}

int64_t attention_most_chunks(const instance *in)
{
    return (in->shape.max_seq_len + in->shape.chunk_size - 1) / in->shape.chunk_size;
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

/* Merges one piece of all rows. Iterations past the last row of global memory load that row again,
 * with the lowest maximum, so that its weight is 0. */
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
    val last = sub(p, count, 1), of_piece = rows;
    if (partial_has_halves(in)) {
        val second = ge(p, piece, partial_pieces(in) / 2);
        of_piece = add(p, rows, select(p, second, imm(U64, PARTIAL_SUMS_BYTES), imm(U64, 0)));
    }
    if (source == ROWS_OF_ANOTHER_GRID) /* only then is it the kernel's whole work */
        ptx_loop_work(p, 4 * at_once, "elements");
    PTX_FOR (p, row, 0, count, at_once) {
        for (unsigned i = 0; i < at_once; i++) {
            val number = add(p, row, i);
            val at = mad_wide(p, min(p, number, last), partial_bytes(in), rows);
            val values = mad_wide(p, piece, WIDE_PIECE, at);
            ptx_op load = source == ROWS_OF_THIS_GRID ? INST_LD_GLOBAL : INST_LD_CONST;
            pieces[i].values = ptx_load_v4(p, load, F32, values, 0);
            if (partial_has_halves(in))
                at = mad_wide(p, min(p, number, last), partial_bytes(in), of_piece);
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

/* by_sigmoid and softplus lose NaN and infinite gates. Adding 0 times the gate gives NaN. */
void attention_gate(ptx *p, const instance *in, val *values, const val *gates, unsigned count)
{
    bool sigmoid = in->options.gate == GATE_SIGMOID || in->options.gate == GATE_SIGMOID_HEAD;
    for (unsigned i = 0; i < count; i++) {
        val gated =
            sigmoid ? by_sigmoid(p, values[i], gates[i]) : mul(p, values[i], softplus(p, gates[i]));
        values[i] = fma(p, gates[i], imm(F32, 0), gated);
    }
}

val attention_head_gate(ptx *p, val query)
{
    return ld_const(p, F32, mad_wide(p, query, F32_BYTES, parameter(p, "gate")), 0);
}

void partials_merge(ptx *p, const instance *in, row_source source, val rows, val count, val query)
{
    unsigned at_once = source == ROWS_OF_THIS_GRID ? MOST_IN_FLIGHT : ROWS_IN_FLIGHT;
    PTX_FOR (p, piece, lane_id(p), partial_pieces(in), WARP) {
        softmax state = merge_rows(p, in, source, rows, count, piece, at_once);
        val scale = attention_output_scale(p, in, &state, query);
        val row = attention_f32_row(p, in, "o", query);
        val4 values;
        for (unsigned j = 0; j < 4; j++)
            values.v[j] = mul(p, state.values[j], scale);
        if (problem_gate_is_of_head(in->options.gate)) {
            val gate = attention_head_gate(p, query);
            attention_gate(p, in, values.v, (val[]){ gate, gate, gate, gate }, 4);
        } else if (in->options.gate) {
            val gate_row = attention_f32_row(p, in, "gate", query);
            val4 gates = ld_const_v4(p, F32, mad_wide(p, piece, WIDE_PIECE, gate_row), 0);
            attention_gate(p, in, values.v, gates.v, 4);
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
