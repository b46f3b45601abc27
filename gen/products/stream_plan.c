#include "gen/products/stream_plan.h"

#include "gen/products/experts.h"

enum {
    LOOP_WEIGHTS = 128,   /* weights per lane and iteration, in all rows */
    LOOP_BYTES = 100,     /* bytes of a lane and iteration that registers can hold */
    LOOP_LOADS = 4,       /* loads of an iteration, in all rows, of floats */
    BYTES_IN_FLIGHT = 33, /* bytes per lane, at least: 25 KB for 24 warps */
    MOST_AT_ONCE = 4,     /* steps of rows in flight that LOOP_BYTES allows */
    MANY_VECTORS = 5,
};

/* Register needs of some formats' loads, as observed with ptxas: with fewer it spills, or delays
 * loads until their first use. --validate and the tests with ptxas find spills. */
static const struct register_need {
    /* Registers per thread to have all loads of two rows in flight: more bytes in flight, fewer
     * warps. 0: rows are loaded in sequence, in the 80 registers of two blocks per SM. */
    unsigned registers;

    /* Rows per warp that need more than 80 registers if each has its own pointers; 0: neither. */
    unsigned rows;

    /* Rows of two steps, the second partial, need more than 80: ptxas loads both at once. */
    bool partial_step;

    /* Two rows with their own pointers need more than 80 registers if they have one iteration of
     * two steps, one more step and a partial step. This code has no loop, and ptxas hoists loads
     * through it. Iterations are then single steps. */
    bool single_steps;

    /* Several vectors, or x in passes, need more than the 128 registers of 16 warps per SM. */
    bool vectors, passes;
} register_needs[FORMAT_COUNT] = {
    [FORMAT_Q4_0] = { .single_steps = true },
    [FORMAT_Q4_1] = { .single_steps = true },
    [FORMAT_Q5_0] = { .single_steps = true },
    [FORMAT_IQ4_NL] = { .single_steps = true },
    [FORMAT_MXFP4] = { .single_steps = true },
    [FORMAT_Q5_K] = { .partial_step = true },
    [FORMAT_IQ3_S] = { .rows = 2 },
    [FORMAT_Q3_K] = { .rows = 1, .vectors = true },
    [FORMAT_Q6_K] = { .registers = 96, .vectors = true },
    [FORMAT_TQ1_0] = { .vectors = true },
    [FORMAT_IQ1_M] = { .vectors = true },
    [FORMAT_TQ2_0] = { .passes = true },
    [FORMAT_Q1_0] = { .passes = true },
};

static const struct register_need *register_need_of(const instance *in)
{
    return &register_needs[instance_weights(in)];
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

/* Returns the fewest lanes that hold a row in one step. A step is at least what a warp stages at
 * once, one segment per lane. */
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

/* Returns lanes per row. Routed experts and the shared expert use the same number. */
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
    if (s->of_parts && !stream_has_sums(f))
        t.words = 1;
    if (f->floats) {
        t.bytes = s->step_values * F32_BYTES;
        return t;
    }
    t.quants = s->as_stored ? s->step_bytes : f->segments * t.plane;
    if (f->order == CROSSWISE) {
        t.bytes = t.quants + 2 * t.plane + s->lanes / CROSS_LANES * CROSS_SCALES * F32_BYTES;
        return t;
    }
    /* With two scales per lane, its two sums follow them. */
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

void stream_plan_loop(stream *s)
{
    unsigned rows = s->rows, whole = (unsigned)s->in->shape.k / s->step_values;
    if (s->f->floats) {
        s->loop_steps = LOOP_LOADS / rows;
        return;
    }
    /* Fewest steps of rows to load before the first is used. With several vectors it covers all
     * rows: ptxas would keep shared operands in registers from the first row to the last. */
    unsigned least = (BYTES_IN_FLIGHT * s->lanes + s->step_bytes - 1) / s->step_bytes;
    unsigned least_steps = (least + rows - 1) / rows;
    if (least > rows || s->vectors > 1)
        least = least_steps * rows;
    unsigned by_weights = LOOP_WEIGHTS / (STREAM_SEGMENT * s->f->segments * rows);
    unsigned by_bytes = LOOP_BYTES / (s->step_bytes / s->lanes * rows);
    unsigned most = by_weights < by_bytes ? by_weights : by_bytes;
    /* Registers are short, and a row ends with a partial step right after its first iteration. */
    bool own_pointers = rows > 1 && !stream_rows_share_pointers(s->in);
    bool ends_after_one = register_need_of(s->in)->single_steps && s->vectors == 1 &&
                          own_pointers && s->ragged && whole > most && whole < 2 * most;
    s->loop_steps = most > least_steps && !ends_after_one ? most : least_steps;

    /* With many vectors fewer warps fit an SM, and each can hold all loads of an iteration, up to
     * LOOP_BYTES. Not if rows end after the first iteration: ptxas hoists the rest's loads, too. */
    bool many = s->vectors >= MANY_VECTORS, ends_early = s->ragged && whole < 2 * s->loop_steps;
    bool fits = s->loop_steps * rows * s->step_bytes <= LOOP_BYTES * s->lanes;
    bool whole_iterations = many && s->loop_steps * rows <= MOST_AT_ONCE && fits && !ends_early;
    s->loads_at_once = whole_iterations ? s->loop_steps * rows : least;

    /* Formats with a table, and whole iterations of many vectors. Otherwise ptxas delays some loads
     * until their first use, to save registers. */
    s->loads_stay = s->f->table_bytes || whole_iterations;

    /* Emits the long code of four segments and many vectors once: clamping costs less. */
    s->clamped = s->ragged && many && s->f->segments == STREAM_SEGMENTS && s->loop_steps == 1;
}

/* Returns the largest power of two, up to 16, that divides the bytes of a row. */
static unsigned alignment_of_rows(const instance *in)
{
    unsigned alignment = STREAM_LANE_BYTES;
    while (format_bytes(instance_weights(in), (uint64_t)in->shape.k) % alignment)
        alignment /= 2;
    return alignment;
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
                 .alignment = alignment_of_rows(in) };
    s.step_values = s.f->floats ? WARP * STREAM_LANE_BYTES / s.weights->block_bytes
                                : s.lanes * STREAM_SEGMENT * s.f->segments;
    s.step_bytes = (unsigned)format_bytes(weights, s.step_values);
    s.x = tile_of(&s);
    s.steps = s.pass_steps = (k + s.step_values - 1) / s.step_values;
    s.ragged = k % s.step_values;
    stream_plan_loop(&s);
    if (passes > 1) {
        unsigned iterations = ((s.steps + passes - 1) / passes + s.loop_steps - 1) / s.loop_steps;
        s.pass_steps = iterations * s.loop_steps < s.steps ? iterations * s.loop_steps : s.steps;
    }
    s.passes = (s.steps + s.pass_steps - 1) / s.pass_steps;
    s.vector_bytes = s.pass_steps * s.x.bytes;
    return s;
}

stream stream_plan_parts(const instance *in, const stream_format *f, unsigned parts)
{
    enum { STEP = 256, PASS_OF_ONE = 2 /* a warp stages two steps at once */ };
    format weights = instance_weights(in);
    unsigned k = (unsigned)in->shape.k, passes = in->passes ? (unsigned)in->passes : 1;
    stream s = { .in = in,
                 .f = f,
                 .weights = &formats[weights],
                 .vectors = (unsigned)gemv_vectors(in),
                 .lanes = STEP / (STREAM_SEGMENT * f->segments),
                 .step_values = STEP,
                 .step_bytes = (unsigned)format_bytes(weights, STEP),
                 .alignment = alignment_of_rows(in),
                 .steps = (k + STEP - 1) / STEP,
                 .ragged = k % STEP,
                 .of_parts = true };
    s.as_stored = weights == FORMAT_Q8_0 && parts > 1 && s.vectors <= 8 && !s.ragged;
    s.x = tile_of(&s);
    unsigned at_once = parts > 1 ? parts : PASS_OF_ONE, turns = (s.steps + at_once - 1) / at_once;
    s.pass_steps = (turns + passes - 1) / passes * at_once;
    s.passes = (turns * at_once + s.pass_steps - 1) / s.pass_steps;
    /* An odd number of 16 bytes: eight vectors then lie in different banks. */
    s.vector_bytes = s.pass_steps * s.x.bytes | STREAM_LANE_BYTES;
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
    enum { OF_ONE_VECTOR = 80, OF_QKV = 78, MORE = 112, OF_VECTORS = 128 };
    const struct register_need *c = register_need_of(in);
    unsigned rows = of_one_matrix(in) ? (unsigned)in->rows_per_warp : STREAM_ROWS;
    if (in->shape.m > 1) {
        unsigned most = in->family->launch.registers;
        bool of_experts = in->shape.experts > 0; /* they have more live values */
        /* Passes get more registers if one block fits an SM anyway, or if the format spills. */
        bool two_blocks = 2 * in->num_warps <= target_warps_with(OF_VECTORS);
        bool alone = in->passes > 1 && (!two_blocks || c->passes) &&
                     in->num_warps <= target_warps_with(most);
        return c->vectors || of_experts || alone ? most : OF_VECTORS;
    }
    stream s = stream_plan(in, 0);
    int64_t step = s.step_values, k = in->shape.k, turn = s.loop_steps * step;
    bool ends = c->partial_step && k > step && k < 2 * step;
    if (ends || (c->rows == rows && !stream_rows_share_pointers(in)))
        return MORE;
    /* Q, K and V of single_steps without a loop: ptxas spills for sm_90 at 80 registers, not at 78. */
    if (c->single_steps && in->family->op == OP_QKV && s.ragged && k > turn + step && k < 2 * turn)
        return OF_QKV;
    return rows == STREAM_ROWS && c->registers ? c->registers : OF_ONE_VECTOR;
}
