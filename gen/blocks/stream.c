#include "gen/blocks/stream.h"

#include "gen/blocks/q8_1.h"
#include "gen/blocks/reduce.h"

enum {
    WARP = 32,
    F32_BYTES = 4,
    PIECE_BYTES = 16,
    SEGMENTS = STREAM_VALUES / STREAM_SEGMENT,
    AT_HIGH = 512, /* in a step's activations */
    AT_SCALES = 1024,
    UNROLLED = 4,        /* steps; longer rows take turns of as many */
    LOADS_IN_FLIGHT = 2, /* steps of one row, or one of each of two */
};

typedef struct stream {
    const instance *in;
    const stream_format *f;
    unsigned steps, rows, vectors;
    bool ragged; /* the last step has lanes without a block */
    val tile;    /* shared memory, at the lane's first piece */
    stream_lane lane;
    var sums[STREAM_ROWS * MAX_VECTORS];
} stream;

static unsigned step_count(const instance *in)
{
    return (unsigned)((in->shape.k + STREAM_VALUES - 1) / STREAM_VALUES);
}

static unsigned step_bytes(const instance *in)
{
    return (unsigned)format_bytes(in->family->weights, STREAM_VALUES);
}

/* Sixteen values of a vector, of lanes whose segment exists; zeros for the others. */
static void load_segment(ptx *p, const instance *in, val vector, val segment, val x[STREAM_SEGMENT])
{
    bool whole = in->shape.k % STREAM_VALUES == 0;
    var loaded[STREAM_SEGMENT];
    for (int i = 0; i < STREAM_SEGMENT && !whole; i++)
        loaded[i] = var_f32(p, 0.0f);
    val at = mad_wide(p, segment, STREAM_SEGMENT * F32_BYTES, vector);
    PTX_IF (p, whole ? imm(PRED, 1) : lt(p, segment, in->shape.k / STREAM_SEGMENT))
        for (int i = 0; i < STREAM_SEGMENT; i += 4) {
            val4 four = ld_const_v4(p, F32, at, i * F32_BYTES);
            for (int j = 0; j < 4; j++) {
                x[i + j] = four.v[j];
                if (!whole)
                    assign(p, loaded[i + j], four.v[j]);
            }
        }
    for (int i = 0; i < STREAM_SEGMENT && !whole; i++)
        x[i] = get(p, loaded[i]);
}

/* What stands beside a segment's scale: of what the integers' sum adds to its product. */
static val sum_word(ptx *p, const stream_format *f, const val4 *q, val d)
{
    val sum = imm(S32, 0);
    for (int i = 0; i < STREAM_WORDS; i++)
        sum = dp4a(p, imm(U32, 0x01010101), q->v[i], sum);
    if (f->scales == TWO_SCALES_AND_MINS)
        return bits_as(p, U32, mul(p, d, convert(p, F32, sum)));
    if (f->scales == ONE_SCALE)
        sum = add(p, sum, shuffle_xor(p, sum, 1));
    int offset = f->offset * (int)(f->scales == ONE_SCALE ? f->high_factor : 1);
    return bits_as(p, U32, mad(p, sum, imm(S32, offset), imm(S32, DP4A_START)));
}

/* Quantizes a lane's segment into the tile. Neighbouring lanes share 32 values and their scale. */
static void stage_segment(ptx *p, const stream_format *f, const val x[STREAM_SEGMENT], val tile,
                          val segment)
{
    val largest = imm(F32, 0);
    for (int i = 0; i < STREAM_SEGMENT; i++)
        largest = max(p, largest, abs(p, x[i]));
    val d = q8_scale(p, group_max(p, largest, 2)), inverse = rcp_approx(p, d);
    val4 q;
    for (int i = 0; i < STREAM_WORDS; i++)
        q.v[i] = q8_pack(p, x + 4 * i, inverse);

    val within = bit_and(p, segment, SEGMENTS - 1);
    val lane = f->lane_of(p, within), high = f->is_high(p, within);
    val step = mad(p, shr(p, segment, 6), imm(U32, STREAM_BYTES), tile);
    val piece = mad(p, lane, imm(U32, PIECE_BYTES), step);
    st_shared_v4(p, S32, mad(p, high, imm(U32, AT_HIGH), piece), 0, q);
    val words = mad(p, high, imm(U32, F32_BYTES), piece), scale = d;
    if (f->high_factor > 1) {
        val less = mul(p, d, 1.0f / (float)f->high_factor);
        scale = f->scales == ONE_SCALE ? less : select(p, ne(p, high, 0), less, d);
    }
    st_shared(p, F32, words, AT_SCALES, scale);
    st_shared(p, U32, words, AT_SCALES + 2 * F32_BYTES, sum_word(p, f, &q, d));
}

/* All vectors into shared memory, a warp 32 segments at once. */
static void stage_activations(ptx *p, const instance *in, const stream_format *f, val tile, val x)
{
    unsigned segments = step_count(in) * SEGMENTS;
    for (unsigned v = 0; v < in->shape.m; v++) {
        val vector = add(p, x, (long long)v * in->shape.k * F32_BYTES);
        val into = add(p, tile, v * step_count(in) * STREAM_BYTES);
        PTX_FOR (p, first, mul(p, warp_id(p), WARP), segments, ptx_block(p)) {
            val segment = add(p, first, lane_id(p)), values[STREAM_SEGMENT];
            load_segment(p, in, vector, segment, values);
            stage_segment(p, f, values, into, segment);
        }
    }
    barrier(p);
}

/* A lane's activations of a step: of its low and its high segment. */
typedef struct stream_x {
    val4 q[2], words;
} stream_x;

static stream_x load_x(ptx *p, const stream *s, val tile, unsigned step, unsigned vector)
{
    int64_t at = ((int64_t)vector * s->steps + step) * STREAM_BYTES;
    return (stream_x){ .q = { ld_shared_v4(p, S32, tile, at),
                              ld_shared_v4(p, S32, tile, at + AT_HIGH) },
                       .words = ld_shared_v4(p, F32, tile, at + AT_SCALES) };
}

static val products(ptx *p, const val q[STREAM_WORDS], const val4 *x, val sum)
{
    for (int i = 0; i < STREAM_WORDS; i++)
        sum = dp4a(p, q[i], x->v[i], sum);
    return sum;
}

static val start_of(ptx *p, const stream_x *x, int segment)
{
    return bits_as(p, S32, x->words.v[2 + segment]);
}

static val dot_one_scale(ptx *p, const stream_format *f, const stream_weights *w, const stream_x *x,
                         val acc)
{
    val start = start_of(p, x, 0), sum;
    if (f->high_factor == 1)
        sum = products(p, w->q[0], &x->q[0], start);
    else
        sum = mad(p, products(p, w->q[0], &x->q[0], imm(S32, 0)), imm(S32, f->high_factor), start);
    sum = dp4a_sum_as_f32(p, products(p, w->q[1], &x->q[1], sum));
    return fma(p, mul(p, w->d, x->words.v[0]), sum, acc);
}

static val dot_two_scales(ptx *p, const stream_format *f, const stream_weights *w,
                          const stream_x *x, val acc)
{
    bool mins = f->scales == TWO_SCALES_AND_MINS;
    val scaled[2], sum[2];
    for (int i = 0; i < 2; i++) {
        val start = mins ? imm(S32, DP4A_START) : start_of(p, x, i);
        sum[i] = dp4a_sum_as_f32(p, products(p, w->q[i], &x->q[i], start));
        scaled[i] = mul(p, w->scale[i], x->words.v[i]);
    }
    val product = fma(p, scaled[1], sum[1], mul(p, scaled[0], sum[0]));
    acc = fma(p, w->d, product, acc);
    if (!mins)
        return acc;
    val low = fma(p, w->min[1], x->words.v[3], mul(p, w->min[0], x->words.v[2]));
    return fma(p, neg(p, w->dmin), low, acc);
}

static void add_product(ptx *p, stream *s, unsigned row, unsigned vector, const stream_weights *w,
                        const stream_x *x)
{
    var sum = s->sums[s->rows * vector + row];
    val acc = get(p, sum);
    assign(p, sum,
           s->f->scales == ONE_SCALE ? dot_one_scale(p, s->f, w, x, acc)
                                     : dot_two_scales(p, s->f, w, x, acc));
}

/* Steps first .. first + count - 1 of all rows; their weights are loaded before any is used. */
static void add_steps(ptx *p, stream *s, const stream_row rows[STREAM_ROWS], val tile,
                      unsigned first, unsigned count)
{
    val words[LOADS_IN_FLIGHT * STREAM_ROWS][STREAM_LOADED];
    for (unsigned i = 0; i < count * s->rows; i++) {
        const stream_row *row = &rows[i % s->rows];
        int64_t step = (int64_t)(first + i / s->rows) * step_bytes(s->in);
        s->f->load(p, row, row->offset + step, words[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        stream_weights w[STREAM_ROWS];
        for (unsigned r = 0; r < s->rows; r++)
            w[r] = s->f->decode(p, &s->lane, &rows[r], words[i * s->rows + r]);
        for (unsigned v = 0; v < s->vectors; v++) {
            stream_x x = load_x(p, s, tile, first + i, v);
            for (unsigned r = 0; r < s->rows; r++)
                add_product(p, s, r, v, &w[r], &x);
        }
    }
}

/* Several steps with constant offsets. */
static void add_run(ptx *p, stream *s, const stream_row rows[STREAM_ROWS], val tile, unsigned first,
                    unsigned count)
{
    unsigned at_once = s->rows < LOADS_IN_FLIGHT ? LOADS_IN_FLIGHT / s->rows : 1;
    for (unsigned i = 0; i < count; i += at_once)
        add_steps(p, s, rows, tile, first + i, count - i < at_once ? count - i : at_once);
}

/* The rows' pointers in their first step; or, behind, in the last one, where lanes past the end
 * take the row's last block. */
static void point_at(ptx *p, const stream *s, const place addresses[STREAM_ROWS], bool behind,
                     stream_row rows[STREAM_ROWS])
{
    const format_info *f = &formats[s->in->family->weights];
    val block = s->lane.block;
    if (behind) {
        unsigned whole = (s->steps - 1) * (STREAM_VALUES / f->block_values);
        unsigned last = (unsigned)s->in->shape.k / f->block_values - 1;
        block = min(p, block, last - whole);
    }
    for (unsigned r = 0; r < s->rows; r++) {
        if (addresses[r].offset)
            rows[r] = rows[0];
        else
            rows[r] =
                s->f->row_new(p, &s->lane, mad_wide(p, block, f->block_bytes, addresses[r].base));
        rows[r].offset = addresses[r].offset;
    }
}

static stream_row moved(ptx *p, stream_row row, val bytes)
{
    for (int i = 0; i < STREAM_POINTERS; i++)
        if (row.at[i].kind)
            row.at[i] = add(p, row.at[i], bytes);
    return row;
}

static unsigned steps_of_turn(const stream *s)
{
    return UNROLLED / s->rows;
}

/* All weights of the rows at these addresses, into sums. */
static void add_rows(ptx *p, stream *s, const place addresses[STREAM_ROWS])
{
    stream_row rows[STREAM_ROWS], last[STREAM_ROWS];
    unsigned whole = s->steps - s->ragged, turn_steps = steps_of_turn(s);
    point_at(p, s, addresses, false, rows);
    if (whole <= turn_steps) {
        add_run(p, s, rows, s->tile, 0, whole);
    } else {
        unsigned turns = whole / turn_steps;
        ptx_loop_work(p, s->rows * turn_steps * STREAM_VALUES / WARP, "weights");
        PTX_FOR (p, turn, 0, turns, 1) {
            stream_row here[STREAM_ROWS];
            val bytes = mul_wide(p, turn, turn_steps * step_bytes(s->in));
            for (unsigned r = 0; r < s->rows; r++)
                here[r] = moved(p, rows[r], bytes);
            val tile = mad(p, turn, imm(U32, turn_steps * STREAM_BYTES), s->tile);
            add_run(p, s, here, tile, 0, turn_steps);
        }
        add_run(p, s, rows, s->tile, turns * turn_steps, whole % turn_steps);
    }
    if (s->ragged) {
        point_at(p, s, addresses, true, last);
        for (unsigned r = 0; r < s->rows; r++)
            last[r] = moved(p, last[r], imm(U64, (int64_t)whole * step_bytes(s->in)));
        add_run(p, s, last, add(p, s->tile, whole * STREAM_BYTES), 0, 1);
    }
}

static stream stream_new(ptx *p, const instance *in, const stream_format *f, val x, unsigned rows)
{
    val tile = shared_dynamic(p, "activations", U32);
    stage_activations(p, in, f, tile, x);
    stream s = { .in = in,
                 .f = f,
                 .steps = step_count(in),
                 .rows = rows,
                 .vectors = (unsigned)in->shape.m,
                 .ragged = in->shape.k % STREAM_VALUES != 0,
                 .lane = f->lane_new(p) };
    s.tile = mad(p, lane_id(p), imm(U32, PIECE_BYTES), tile);
    if (s.steps - s.ragged <= steps_of_turn(&s))
        ptx_loop_work(p, (unsigned)(rows * in->shape.k / WARP), "weights");
    return s;
}

static void clear_sums(ptx *p, stream *s)
{
    for (unsigned i = 0; i < s->rows * s->vectors; i++)
        s->sums[i] = var_f32(p, 0.0f);
}

val stream_warp(ptx *p)
{
    return mad(p, ctaid_x(p), imm(U32, ptx_block(p) / WARP), warp_id(p));
}

val stream_warps(ptx *p)
{
    return mul(p, nctaid_x(p), ptx_block(p) / WARP);
}

gemv stream_parameters(ptx *p, const instance *in)
{
    gemv g = gemv_parameters(p, in);
    if (in->bias)
        g.bias = parameter(p, "bias");
    if (in->residual)
        g.residual = parameter(p, "residual");
    return g;
}

unsigned stream_registers(const instance *in)
{
    enum { OF_ONE_VECTOR = 80 };
    return in->shape.m == 1 ? OF_ONE_VECTOR : in->family->launch.registers;
}

void stream_rows_of_turn(ptx *p, const gemv *g, val row, unsigned rows,
                         place addresses[STREAM_ROWS])
{
    bool alike = gemv_turns_are_whole(g, rows) && g->row_bytes.bits % 4 == 0;
    addresses[0] = (place){ gemv_row_of_turn(p, g, row, 0, rows), 0 };
    for (unsigned r = 1; r < rows; r++)
        addresses[r] = alike ? (place){ addresses[0].base, (int64_t)(r * g->row_bytes.bits) }
                             : (place){ gemv_row_of_turn(p, g, row, r, rows), 0 };
}

void stream_gemv(ptx *p, const instance *in, const stream_format *f)
{
    ptx_max_registers(p, stream_registers(in));
    gemv g = stream_parameters(p, in);
    unsigned rows = (unsigned)in->rows_per_warp, count = rows * (unsigned)in->shape.m;
    val first = mul(p, stream_warp(p), rows), stride = mul(p, stream_warps(p), rows);
    stream s = stream_new(p, in, f, g.x, rows);
    PTX_FOR (p, row, first, g.n, stride) {
        place addresses[STREAM_ROWS];
        val sums[STREAM_ROWS * MAX_VECTORS];
        stream_rows_of_turn(p, &g, row, rows, addresses);
        clear_sums(p, &s);
        add_rows(p, &s, addresses);
        for (unsigned i = 0; i < count; i++)
            sums[i] = get(p, s.sums[i]);
        spread_sums spread = block_sum_spread(p, sums, count, 1);
        gemv_store_turn(p, &g, row, rows, s.vectors, spread);
    }
}

void stream_gate_up_swiglu(ptx *p, const instance *in, const stream_format *f)
{
    enum { MATRICES = 2 };
    ptx_max_registers(p, stream_registers(in));
    gemv g[MATRICES];
    g[0] = gemv_of(p, in, "y", "wg", "x");
    g[1] = gemv_of(p, in, "y", "wu", "x");
    val first = stream_warp(p), stride = stream_warps(p);
    stream s = stream_new(p, in, f, g[0].x, MATRICES);
    PTX_FOR (p, row, first, g[0].n, stride) {
        place addresses[STREAM_ROWS];
        for (int i = 0; i < MATRICES; i++)
            addresses[i] = (place){ gemv_row(p, &g[i], row), 0 };
        clear_sums(p, &s);
        add_rows(p, &s, addresses);
        for (unsigned v = 0; v < s.vectors; v++) {
            val gate = warp_sum(p, get(p, s.sums[MATRICES * v]));
            val up = warp_sum(p, get(p, s.sums[MATRICES * v + 1]));
            val y = add(p, g[0].y, (long long)v * in->shape.n * F32_BYTES);
            PTX_IF (p, eq(p, lane_id(p), 0))
                st_global(p, F32, mad_wide(p, row, F32_BYTES, y), 0, swiglu(p, gate, up));
        }
    }
}
