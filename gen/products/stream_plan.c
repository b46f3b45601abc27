#include "gen/products/stream_plan.h"

#include "gen/products/experts.h"

enum {
    TURN_WEIGHTS = 128,   /* of a lane, in all rows: longer rows take turns of as many, */
    TURN_BYTES = 100,     /* but of no more bytes, which registers hold at once */
    TURN_LOADS = 4,       /* of floats, in all rows */
    BYTES_IN_FLIGHT = 33, /* of a lane, at least: 24 warps make it 25 KB */
    MOST_AT_ONCE = 4,     /* steps of a row that are so many bytes */
    MANY_VECTORS = 5,
};

/* What ptxas was seen to need for the loads of some formats, so that it neither spills nor puts
 * loads off until what they load is used. Formats that are not here are content with the usual
 * numbers; --validate and the tests with ptxas find spills. */
static const struct crowd {
    /* Two rows of a turn are loaded one after the other in the 80 registers that two blocks of an
     * SM leave a thread: with so many all loads of a turn are under way at once, which is more
     * bytes in flight though fewer warps. 0: 80 are enough. */
    unsigned registers;

    /* A warp that takes so many rows, each with pointers of its own, needs more than the 80: 1
     * or 2. 0: not with any. */
    unsigned rows;

    /* So does one with rows of two steps of which the second is not whole: ptxas loads both at
     * once. */
    bool end;

    /* So do two rows with pointers of their own that are a turn of two steps, one more and part of
     * one, code without a loop through which ptxas loads ahead. Turns then are single steps. */
    bool turn;

    /* Several vectors need more than the 128 with which an SM has room for 16 warps; or if x comes
     * in passes. */
    bool vectors, passes;
} crowds[FORMAT_COUNT] = {
    [FORMAT_Q4_0] = { .turn = true },
    [FORMAT_Q4_1] = { .turn = true },
    [FORMAT_Q5_0] = { .turn = true },
    [FORMAT_IQ4_NL] = { .turn = true },
    [FORMAT_MXFP4] = { .turn = true },
    [FORMAT_Q5_K] = { .end = true },
    [FORMAT_IQ3_S] = { .rows = 2 },
    [FORMAT_Q3_K] = { .rows = 1, .vectors = true },
    [FORMAT_Q6_K] = { .registers = 96, .vectors = true },
    [FORMAT_TQ1_0] = { .vectors = true },
    [FORMAT_IQ1_M] = { .vectors = true },
    [FORMAT_TQ2_0] = { .passes = true },
    [FORMAT_Q1_0] = { .passes = true },
};

static const struct crowd *crowd_of(const instance *in)
{
    return &crowds[instance_weights(in)];
}

static const stream_format *stream_format_of(const instance *in)
{
    return &weight_format_of(instance_weights(in))->stream;
}

bool stream_is_of_8_bits(const instance *in)
{
    return in->family->activations == FORMAT_Q8_F32;
}

bool stream_has_sums(const stream_format *f)
{
    return f->offset || f->minima;
}

/* The fewest lanes that have a row in a step. A step is no less than what a warp stages at once, a
 * segment a lane. */
static unsigned lanes_of_row(const instance *in)
{
    const stream_format *f = stream_format_of(in);
    if (f->floats)
        return WARP;
    unsigned lanes = WARP / f->segments;
    while (lanes < WARP && lanes * STREAM_SEGMENT * f->segments < in->shape.k)
        lanes *= 2;
    return lanes;
}

/* Of experts and of the one that all rows use they are the same. */
static unsigned lanes_of(const instance *in)
{
    if (in->family->op != OP_EXPERT_DOWN)
        return WARP;
    unsigned lanes = lanes_of_row(in), beside = 0;
    if (in->shape.n_shared) {
        instance shared = expert_down_shared(in);
        beside = lanes_of_row(&shared);
    }
    return lanes > beside ? lanes : beside;
}

static stream_tile tile_of(const stream *s)
{
    const stream_format *f = s->f;
    stream_tile t = { .plane = s->lanes * STREAM_LANE_BYTES, .words = 2, .sums_at = F32_BYTES };
    if (f->floats) {
        t.bytes = s->step_values * F32_BYTES;
        return t;
    }
    t.quants = f->segments * t.plane;
    if (f->order == CROSSWISE) {
        t.bytes = t.quants + 2 * t.plane + s->lanes / CROSS_LANES * CROSS_SCALES * F32_BYTES;
        return t;
    }
    /* Sums stand behind a lane's scales where there are two of each. */
    bool has_sums = stream_has_sums(f), beside = has_sums && (f->segments == 2 || f->twos);
    if (f->scales == SCALES) {
        t.words = beside ? 4 : f->segments;
        t.sums_at = beside ? 2 * F32_BYTES : t.plane;
    }
    unsigned planes = f->segments == 4 && has_sums && !beside ? 2 : 1;
    t.bytes = t.quants + planes * s->lanes * t.words * F32_BYTES;
    return t;
}

static bool of_one_matrix(const instance *in)
{
    return family_key(in->family, "rows_per_warp");
}

bool stream_rows_share_pointers(const instance *in)
{
    uint64_t row_bytes = format_bytes(instance_weights(in), (uint64_t)in->shape.k);
    return of_one_matrix(in) && in->rows_per_warp > 1 && in->shape.n % in->rows_per_warp == 0 &&
           row_bytes % STREAM_LANE_BYTES == 0;
}

void stream_plan_turns(stream *s)
{
    unsigned rows = s->rows, whole = (unsigned)s->in->shape.k / s->step_values;
    if (s->f->floats) {
        s->turn_steps = TURN_LOADS / rows;
        return;
    }
    /* Steps of rows that are loaded before any of them is used, at least. Of several vectors all
     * rows take what they need at once: ptxas would keep it in registers from the first row to the
     * last. */
    unsigned least = (BYTES_IN_FLIGHT * s->lanes + s->step_bytes - 1) / s->step_bytes;
    unsigned least_steps = (least + rows - 1) / rows;
    if (least > rows || s->vectors > 1)
        least = least_steps * rows;
    unsigned by_weights = TURN_WEIGHTS / (STREAM_SEGMENT * s->f->segments * rows);
    unsigned by_bytes = TURN_BYTES / (s->step_bytes / s->lanes * rows);
    unsigned most = by_weights < by_bytes ? by_weights : by_bytes;
    /* Whether a row is a turn of so many steps, some more and part of one, where that is crowded.
     */
    bool own_pointers = rows > 1 && !stream_rows_share_pointers(s->in);
    bool ends_behind_a_turn = crowd_of(s->in)->turn && s->vectors == 1 && own_pointers &&
                              s->ragged && whole > most && whole < 2 * most;
    s->turn_steps = most > least_steps && !ends_behind_a_turn ? most : least_steps;

    /* With many vectors fewer warps stay on an SM, and each has registers for all of a turn, if it
     * is of no more bytes than they hold; but not where rows end behind the first one, for ptxas
     * then loads ahead what is left, too. */
    bool many = s->vectors >= MANY_VECTORS, ends_early = s->ragged && whole < 2 * s->turn_steps;
    bool fits = s->turn_steps * rows * s->step_bytes <= TURN_BYTES * s->lanes;
    bool whole_turns = many && s->turn_steps * rows <= MOST_AT_ONCE && fits && !ends_early;
    s->loads_at_once = whole_turns ? s->turn_steps * rows : least;

    /* Of formats with a table, and as whole turns always do for many vectors: ptxas would else put
     * some loads off until what they load is used, to save registers. */
    s->loads_stay = s->f->table_bytes || whole_turns;

    /* Long code, of four segments for many vectors, then stands there once, and what clamping takes
     * is little beside it. */
    s->clamped = s->ragged && many && s->f->segments == STREAM_SEGMENTS && s->turn_steps == 1;
}

stream stream_plan(const instance *in, unsigned rows)
{
    format weights = instance_weights(in);
    unsigned k = (unsigned)in->shape.k, passes = (unsigned)in->passes;
    stream s = { .in = in,
                 .f = stream_format_of(in),
                 .weights = &formats[weights],
                 .rows = rows                ? rows
                         : of_one_matrix(in) ? (unsigned)in->rows_per_warp
                                             : STREAM_ROWS,
                 .vectors = (unsigned)in->shape.m,
                 .lanes = lanes_of(in),
                 .alignment = STREAM_LANE_BYTES };
    s.step_values = s.f->floats ? WARP * STREAM_LANE_BYTES / s.weights->block_bytes
                                : s.lanes * STREAM_SEGMENT * s.f->segments;
    s.step_bytes = (unsigned)format_bytes(weights, s.step_values);
    while (format_bytes(weights, k) % s.alignment)
        s.alignment /= 2;
    s.x = tile_of(&s);
    s.steps = s.pass_steps = (k + s.step_values - 1) / s.step_values;
    s.ragged = k % s.step_values;
    stream_plan_turns(&s);
    if (passes > 1) {
        unsigned turns = ((s.steps + passes - 1) / passes + s.turn_steps - 1) / s.turn_steps;
        s.pass_steps = turns * s.turn_steps < s.steps ? turns * s.turn_steps : s.steps;
    }
    s.passes = (s.steps + s.pass_steps - 1) / s.pass_steps;
    return s;
}

int64_t stream_step_bytes(const instance *in)
{
    return stream_plan(in, 0).x.bytes;
}

int64_t stream_pass_steps(const instance *in)
{
    return stream_plan(in, 0).pass_steps;
}

int64_t stream_table_bytes(const instance *in)
{
    return stream_format_of(in)->table_bytes;
}

int64_t stream_chunks(const instance *in)
{
    stream s = stream_plan(in, 0);
    unsigned of_lane = s.f->floats ? STREAM_PIECE : STREAM_SEGMENT;
    return s.passes * s.pass_steps * s.step_values / (WARP * of_lane);
}

int64_t stream_most_of(const instance *in, int64_t (*of)(const instance *one))
{
    unsigned matrices = in->shape.n_shared ? MAX_MATRICES : in->shape.n_v ? QKV_MATRICES : 2;
    int64_t most = 0;
    for (unsigned i = 0; i < matrices; i++) {
        instance one = instance_matrix(in, i);
        most = of(&one) > most ? of(&one) : most;
    }
    return most;
}

int64_t stream_most_chunks(const instance *in)
{
    return stream_most_of(in, stream_chunks);
}

int64_t stream_staged_bytes(const instance *in)
{
    stream s = stream_plan(in, 0);
    return stream_table_bytes(in) + in->shape.m * s.pass_steps * s.x.bytes;
}

int64_t stream_registers(const instance *in)
{
    enum { OF_ONE_VECTOR = 80, CROWDED = 112, OF_VECTORS = 128 };
    const struct crowd *c = crowd_of(in);
    unsigned rows = of_one_matrix(in) ? (unsigned)in->rows_per_warp : STREAM_ROWS;
    if (in->shape.m > 1) {
        unsigned most = in->family->launch.registers;
        bool of_experts = in->shape.experts > 0; /* whose code has more around a turn */
        /* Passes need more where that leaves an SM as many blocks, or where the format spills. */
        bool two_blocks = 2 * in->num_warps <= target_warps_with(OF_VECTORS);
        bool alone = in->passes > 1 && (!two_blocks || c->passes) &&
                     in->num_warps <= target_warps_with(most);
        return c->vectors || of_experts || alone ? most : OF_VECTORS;
    }
    int64_t step = stream_plan(in, 0).step_values, k = in->shape.k;
    bool ends = c->end && k > step && k < 2 * step;
    if (ends || (c->rows == rows && !stream_rows_share_pointers(in)))
        return CROWDED;
    return rows == STREAM_ROWS && c->registers ? c->registers : OF_ONE_VECTOR;
}
