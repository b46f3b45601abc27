/* How a launch's time comes about: see cost.h. What it rests on:
 *
 *   LATENCY    of memory under load, by Little's law: an H200 of 132 SMs needs some 25 KB in flight
 *              on each for the 4.3 TB/s of a copy. Taken for all parts.
 *   PORT_BYTES, L2_BYTES   of a clock: what one SM takes from the L2 at most (microbenchmarks of
 *              Volta: Jia et al., 2018), and all of them together (NVIDIA A100 white paper);
 *              SHARED_BYTES what an SM's shared memory gives or takes (the former).
 *
 * Example: 4096 rows by blocks of 24 rows are 171 blocks. On 132 SMs 39 have two of them and 93
 * have one: when those are done, after memory's time for 132 blocks, 39 SMs are left with a block's
 * rows each, which are few enough to be asked for at once: a round trip, and the bytes through the
 * port. Blocks of 16 rows are 256, and 124 SMs have two: memory has no time without work.
 */
#include "cost/cost.h"

#include <math.h>

#include "kernel/formula.h"

enum {
    WARP = 32,
    PORT_BYTES = 64,
    L2_BYTES = 5120,
    SHARED_BYTES = 128,
    PRODUCT_FMAS = 16 * 8 * 16
};
/* Of x on its way into shared memory, as it is and in 8 bits: values that a lane loads, of one
 * vector and of several, and instructions for each. */
enum { STAGED_AT_ONCE = 32, STAGE_INSTRUCTIONS = 6 };
enum { BYTES_AT_ONCE = 64, MANY_BYTES_AT_ONCE = 128, BYTE_INSTRUCTIONS = 3 };

static const double LATENCY = 780e-9, PERCENT = 0.01;
static const double NEARLY_A_SUM = 1.2;

const char *const cost_bound_names[BOUND_COUNT] = {
    [BOUND_MEMORY] = "memory",   [BOUND_ISSUE] = "issue",   [BOUND_LATENCY] = "latency",
    [BOUND_BALANCE] = "balance", [BOUND_TENSOR] = "tensor", [BOUND_SHARED] = "shared",
};

/* What blocks take at once of the work are items: some rows, or all that a block does. */
typedef struct dealing {
    double threads, blocks;
    double shared;       /* bytes of a block */
    double sms;          /* that have blocks */
    double fitting;      /* blocks on an SM at a time, */
    double resident;     /* or as many as there are for the busiest */
    double waves;        /* of blocks, where not all fit */
    double items;        /* in whole ones and a part */
    double most, fewest; /* that an SM has */
    double turns;        /* one behind the other, at most */
} dealing;

static double port_bandwidth(const cost_gpu *gpu)
{
    return fmin(PORT_BYTES, L2_BYTES / gpu->sm_count) * gpu->clock;
}

/* Whether blocks stride over the rows, a turn after the other. */
static bool stays(const launch *l)
{
    return l->rows != NULL;
}

static double rows_of(const instance *in)
{
    const problem_shape *s = &in->shape;
    if (in->family->op == OP_QKV)
        return (double)(s->n + s->n_kv + s->n_v);
    if (operation_is_of_experts(in->family->op))
        return (double)s->n * cost_experts(s) + (double)s->n_shared;
    return (double)s->n;
}

/* Of all blocks those that have something to do, each with whole columns of an expert's tile; and
 * these tiles. */
static void deal_tiles(const instance *in, dealing *d)
{
    double columns = (double)formula_value(in->family->launch.grid[0], in, NULL);
    d->items = columns * cost_expert_tiles(in);
    d->blocks = fmin(d->blocks, ceil(d->items));
}

/* Items go to the blocks in turn, and blocks to the SMs. Where more blocks wait than fit, an SM
 * takes the next one when one of its own has ended: all have as many as any other, but for one. */
static dealing deal(const cost_figures *f, const instance *in, const cost_work *work,
                    const cost_gpu *gpu)
{
    const launch *l = &in->family->launch;
    bool groups = in->rows_mode == ROWS_RUN_TIME;
    run_values run = { in->shape.k, in->shape.n, groups ? work->rows : in->shape.m,
                       (int64_t)gpu->sm_count };
    dealing d = { .threads = (double)formula_value(l->block, in, &run), .blocks = 1 };
    size_t dynamic = l->dynamic_shared ? (size_t)formula_value(l->dynamic_shared, in, &run) : 0;
    for (int i = 0; i < 3; i++)
        d.blocks *= (double)formula_value(l->grid[i], in, &run);
    if (cost_has_expert_tiles(in))
        deal_tiles(in, &d);
    d.shared = (double)(f->shared + dynamic);
    d.fitting =
        target_blocks_per_sm(gpu->target, (unsigned)d.threads, f->registers, f->shared + dynamic);
    if (d.fitting < 1)
        return d;
    d.sms = fmin(d.blocks, gpu->sm_count);
    d.resident = fmin(d.fitting, ceil(d.blocks / d.sms));
    d.waves = ceil(d.blocks / (d.sms * d.fitting));
    if (stays(l))
        d.items = rows_of(in) / (double)formula_value(l->rows, in, &run);
    else if (!cost_has_expert_tiles(in))
        d.items = d.blocks;
    if (stays(l) && groups)
        d.items *= ceil((double)work->rows / (double)in->shape.m);
    if (in->splits)
        d.items *= (double)in->splits;
    double items = ceil(d.items), each = floor(items / d.blocks), rest = items - each * d.blocks;
    d.most = ceil(d.blocks / d.sms) * each + ceil(rest / d.sms);
    d.fewest = floor(d.blocks / d.sms) * each + floor(rest / d.sms);
    d.turns = each + (rest > 0);
    if (d.waves > 1) {
        d.most = ceil(items / d.sms);
        d.fewest = floor(items / d.sms);
        d.turns = ceil(items / (d.sms * d.fitting));
    }
    return d;
}

/* Vectors of x that a block has, all of its experts' together, or on average of its tiles'. */
static double vectors_of(const instance *in)
{
    const problem_shape *s = &in->shape;
    double vectors = s->m > 0 ? (double)s->m : 1; /* 0: the family has no m */
    if (cost_has_expert_tiles(in))
        vectors *= (double)s->experts_used / cost_expert_tiles(in);
    else if (in->family->op == OP_EXPERT_GATE_UP)
        vectors *= (double)s->experts_used / cost_experts(s);
    return vectors;
}

/* Turns of the loop that a lane makes for an item: less than one where it has half a turn's work.
 */
static double loops_of(const cost_figures *f, const cost_work *work, const dealing *d)
{
    return work->units / (d->items * d->threads * f->turn);
}

/* Each lane waits for 128 bytes of x at a time, or for 72 or 144 where it comes in 8 bits. All
 * blocks of an SM take x through its port, and put it in order while others still do, but for the
 * last. */
static double staging_time(const instance *in, const dealing *d, const cost_gpu *gpu)
{
    const format_info *x = &formats[in->family->activations];
    bool rounded = x->block_values > 1;
    double values = (double)in->shape.k * vectors_of(in);
    double bytes = values * x->block_bytes / x->block_values;
    double instructions = values / WARP * (rounded ? BYTE_INSTRUCTIONS : STAGE_INSTRUCTIONS);
    double of_bytes = in->shape.m > 1 ? MANY_BYTES_AT_ONCE : BYTES_AT_ONCE;
    double at_once = rounded ? of_bytes : STAGED_AT_ONCE;
    return ceil(values / (d->threads * at_once)) * LATENCY +
           d->resident * bytes / port_bandwidth(gpu) +
           instructions / (TARGET_ISSUE_SLOTS * gpu->clock);
}

/* Of blocks that don't stage x what their first turns read of it, at once. Later ones find it in
 * the L1. */
static double first_x_time(const cost_figures *f, const instance *in, const cost_work *work,
                           const dealing *d, const cost_gpu *gpu)
{
    const format_info *x = &formats[in->family->activations];
    if (instance_weights(in) == FORMAT_NONE || in->family->activations == FORMAT_NONE)
        return 0;
    double values = (double)in->shape.k * vectors_of(in) / ceil(loops_of(f, work, d));
    return d->resident * values * x->block_bytes / x->block_values / port_bandwidth(gpu);
}

/* Whether blocks make x what they multiply by ahead of all products: of rows that are f16 tiles
 * come with the weights. */
static bool stages_x(const family *f)
{
    return f->launch.dynamic_shared && f->activations != FORMAT_F16;
}

/* What blocks of the launch wait for ahead of all else, once: or, where they stage x, each wave of
 * them. */
static double first_waits(const instance *in, const dealing *d)
{
    return stages_x(in->family) ? d->waves : 1;
}

/* Whether a kernel knows from a settled state which rows of caches to fetch ahead of its wait. It
 * loads q behind that, in a round trip of its own. */
static bool fetches_rows(const instance *in, const cost_work *work, const cost_gpu *gpu)
{
    return in->state == STATE_SETTLED && target_overlaps(gpu->target) && work->trips_ahead > 0;
}

/* Seconds of the start that a kernel spends ahead of its wait. */
static double early_trips(const instance *in, const cost_work *work, const cost_gpu *gpu)
{
    return fetches_rows(in, work, gpu) ? work->trips_ahead * LATENCY : 0;
}

/* Until weights come in, from the wait on or from where that ends which comes ahead of it; x in
 * passes is staged for each turn. */
static double start_time(const cost_figures *f, const instance *in, const cost_work *work,
                         const dealing *d, const cost_gpu *gpu)
{
    double start = (work->trips_ahead + first_waits(in, d)) * LATENCY;
    start -= fmin(work->early, early_trips(in, work, gpu));
    if (fetches_rows(in, work, gpu))
        return start + LATENCY;
    if (!stages_x(in->family))
        return start + first_x_time(f, in, work, d, gpu);
    return start + d->waves * (in->passes > 1 ? d->turns : 1) * staging_time(in, d, gpu);
}

/* Bytes that are fetched into the L2 ahead of x, or q: families that do so ask for their warps'
 * first turns at once, or for as much of them as the target lets warps ask for. */
static double bytes_fetched(const cost_work *work, const dealing *d, const cost_gpu *gpu)
{
    double warps = d->sms * d->resident * d->threads / WARP;
    double turns = d->sms * d->resident * work->bytes / d->items;
    return fmin(fmin(turns, warps * target_bytes_ahead(gpu->target)), work->bytes);
}

/* How long memory has work of its own while x is staged, or q comes, and ahead of q while the
 * launch ahead leaves it idle: from when it is known which rows to ask for. */
static double time_ahead(const instance *in, const cost_work *work, const dealing *d, double start,
                         const cost_gpu *gpu)
{
    double fetched = bytes_fetched(work, d, gpu) / gpu->bandwidth;
    if (fetches_rows(in, work, gpu))
        return fmin(LATENCY + fmax(0, work->early - early_trips(in, work, gpu)), fetched);
    if (in->family->launch.weights_first)
        return fmin(start - (1 + work->trips_ahead) * LATENCY, fetched);
    return 0;
}

/* How much of its weights' time memory has behind it where a launch ahead has fetched some. */
static double time_fetched(const cost_work *work, double start, const cost_gpu *gpu)
{
    return fmin(work->fetched / gpu->bandwidth, work->idle + start);
}

/* Bytes of a second where a warp has rows of its own, or a block's warps share them. */
static double memory_bandwidth(const instance *in, const dealing *d, const cost_gpu *gpu)
{
    double rows = rows_of(in) / d->items, warps = d->threads / WARP;
    bool apart = instance_weights(in) != FORMAT_NONE && rows >= warps;
    return gpu->bandwidth * (apart ? gpu->target->rows_apart * PERCENT : 1);
}

static double memory_time(const cost_work *work, double bandwidth)
{
    return work->bytes / bandwidth;
}

static double issue_time(const cost_figures *f, const cost_work *work, const dealing *d, bool stay,
                         const cost_gpu *gpu)
{
    double item = work->units / d->items * f->instructions / WARP;
    if (!stay)
        item += d->threads / WARP * f->beside;
    return d->most * item /
           (fmin(TARGET_ISSUE_SLOTS, d->resident * d->threads / WARP) * gpu->clock);
}

/* Of the busiest SM. */
static double tensor_time(const cost_figures *f, const cost_work *work, const dealing *d,
                          const cost_gpu *gpu)
{
    double item = work->units / d->items * f->products / WARP;
    double fmas = f->specific ? gpu->wgmma_fmas : gpu->tensor_fmas;
    return f->products > 0 ? d->most * item * PRODUCT_FMAS / (fmas * gpu->clock) : 0;
}

/* Returns the bytes of x that lanes load from shared memory for a weight, where kernels of several
 * vectors keep it there: 8 bits a value, or f32 for weights that are floats. Rows of one warp share
 * a load. */
static double x_bytes_of(const instance *in)
{
    double rows = in->rows_per_warp > 0 ? (double)in->rows_per_warp : 1;
    rows *= operation_is_gated(in->family->op) ? 2 : 1;
    bool is_float = formats[instance_weights(in)].block_values == 1;
    return vectors_of(in) / rows * (is_float ? (double)sizeof(float) : 1);
}

/* Returns true if lanes multiply each weight by several vectors, which are in shared memory. */
static bool shares_x(const cost_figures *f, const instance *in)
{
    return stages_x(in->family) && instance_weights(in) != FORMAT_NONE && f->products == 0 &&
           vectors_of(in) >= 2;
}

static double shared_time(const cost_figures *f, const instance *in, const cost_work *work,
                          const dealing *d, const cost_gpu *gpu)
{
    double bytes = shares_x(f, in) ? x_bytes_of(in) : f->shared_bytes;
    return d->most * work->units / d->items * bytes / (SHARED_BYTES * gpu->clock);
}

/* Bytes of a second that a block asks for: where its lanes have half a turn's work, they wait for a
 * whole one. */
static double block_bandwidth(const cost_figures *f, const instance *in, const cost_work *work,
                              const dealing *d)
{
    double loops = loops_of(f, work, d), chunks = in->stages ? (double)in->stages - 1 : 1;
    return d->threads * f->in_flight * chunks * loops / ceil(loops) / LATENCY;
}

/* Round trips of a last block; and of one that adds up the parts of a tile these, through the port,
 * behind its own. */
static double end_time(const instance *in, const cost_work *work, const cost_gpu *gpu)
{
    double parts = 0;
    if (in->splits)
        parts = (double)formula_value("(parts + 1)*tile_values", in, NULL) * (double)sizeof(float);
    return work->trips_behind * LATENCY + parts / port_bandwidth(gpu);
}

/* SMs that have more items than others don't let memory idle where they are enough for it. */
static void set_waiting_times(const cost_figures *f, const instance *in, const cost_work *work,
                              const dealing *d, double bandwidth, const cost_gpu *gpu,
                              double times[BOUND_COUNT])
{
    double item = work->units * f->unit_bytes / d->items, port = port_bandwidth(gpu);
    double taken = work->units * (f->unit_bytes + f->x_bytes) / d->items;
    double of_block = block_bandwidth(f, in, work, d);
    double rounds = d->turns * item / of_block - first_waits(in, d) * LATENCY;
    times[BOUND_LATENCY] = fmax(rounds, d->most * taken / port);
    double more = d->most - d->fewest, alone = fmin(d->resident * of_block, port);
    if (more > 0 && (ceil(d->items) - d->fewest * d->sms) / more * alone < bandwidth)
        times[BOUND_BALANCE] =
            d->fewest * d->sms * work->bytes / d->items / bandwidth + LATENCY + more * item / alone;
}

/* Returns how long a kernel takes between its start and its end, memory having begun so long ahead.
 *
 * Products on tensor cores wait at barriers for weights and x to be in shared memory, and hide
 * little of one thing behind another: on an H200 the sum was within 5 % where an SM has one block,
 * and 10 to 28 % too much where it has two. Lanes that multiply a weight by several vectors have
 * too few loads in flight to hide what they do between them: for 8 vectors the sum was 0 to 18 %
 * too much. Of others what is longest hides the rest; near the knee, where one thing begins to hold
 * a kernel and another one still does, both do. */
static double time_together(const cost_figures *f, const instance *in,
                            const double times[BOUND_COUNT], double ahead)
{
    double memory = fmax(times[BOUND_MEMORY], times[BOUND_BALANCE]) - ahead;
    double parts[BOUND_COUNT] = { memory, times[BOUND_ISSUE],  times[BOUND_LATENCY],
                                  0,      times[BOUND_TENSOR], times[BOUND_SHARED] };
    if (in->family->halves && instance_weights(in) != FORMAT_NONE)
        return fmax(memory, times[BOUND_ISSUE] + times[BOUND_LATENCY] + times[BOUND_TENSOR] +
                                times[BOUND_SHARED]);
    if (shares_x(f, in)) {
        double all = pow(fmax(times[BOUND_MEMORY] - ahead, 0), NEARLY_A_SUM) +
                     pow(times[BOUND_ISSUE], NEARLY_A_SUM) + pow(times[BOUND_SHARED], NEARLY_A_SUM);
        return fmax(times[BOUND_LATENCY], pow(all, 1 / NEARLY_A_SUM));
    }
    double longest = 0, sum = 0;
    for (cost_bound b = 0; b < BOUND_COUNT; b++)
        longest = fmax(longest, parts[b]);
    for (cost_bound b = 0; b < BOUND_COUNT; b++) {
        double square = parts[b] / longest * (parts[b] / longest);
        sum += square * square;
    }
    return longest * sqrt(sqrt(sum));
}

/* What blocks of two kernels, as many of each as an SM has, take of it together. */
static bool fit_together(const cost_kernel *a, const cost_kernel *b, const cost_gpu *gpu)
{
    const cost_kernel *both[] = { a, b };
    double registers = 0, warps = 0, blocks = 0, shared = 0;
    for (int i = 0; i < 2; i++) {
        const cost_kernel *k = both[i];
        dealing d = deal(k->figures, k->in, k->work, gpu);
        registers += d.resident * d.threads * k->figures->registers;
        warps += d.resident * ceil(d.threads / WARP);
        blocks += d.resident;
        shared += d.resident * d.shared;
        if (d.fitting < 1)
            return false;
    }
    const target *t = gpu->target;
    return registers <= TARGET_REGISTERS && warps <= t->warps_sm && blocks <= t->blocks_sm &&
           shared <= t->shared_sm;
}

double cost_room(const cost_kernel *ahead, double seconds, const cost_kernel *behind,
                 const cost_gpu *gpu)
{
    bool room = target_overlaps(gpu->target) && fit_together(ahead, behind, gpu);
    return room ? fmax(0, seconds - memory_time(ahead->work, gpu->bandwidth)) : 0;
}

double cost_fetches(const cost_kernel *k, const cost_gpu *gpu)
{
    dealing d = deal(k->figures, k->in, k->work, gpu);
    double most = d.blocks * ceil(d.threads / WARP) * target_bytes_ahead(gpu->target);
    return fmin((double)k->in->next, most);
}

double cost_of_bytes(double bytes, const cost_gpu *gpu)
{
    return LATENCY + bytes / gpu->bandwidth;
}

double cost_least(const cost_figures *f, const family *of, const cost_work *work,
                  const cost_gpu *gpu)
{
    const target *t = gpu->target;
    bool stages = stages_x(of) && !of->launch.weights_first;
    double start = (stages ? 2 : 1) * LATENCY;
    double instructions = work->units * f->instructions / WARP;
    double issue = instructions / (TARGET_ISSUE_SLOTS * gpu->sm_count * gpu->clock);
    double threads = fmin(t->warps_sm * WARP, (double)TARGET_REGISTERS / f->registers);
    double rounds =
        work->units * f->unit_bytes * LATENCY / (gpu->sm_count * threads * f->in_flight);
    return fmax(start + fmax(memory_time(work, gpu->bandwidth), issue), rounds);
}

cost_prediction cost_predict(const cost_figures *f, const instance *in, const cost_work *work,
                             const cost_gpu *gpu)
{
    dealing d = deal(f, in, work, gpu);
    if (d.fitting < 1)
        return (cost_prediction){ .total = HUGE_VAL };
    double bandwidth = memory_bandwidth(in, &d, gpu);
    cost_prediction p = {
        .warps_sm = (unsigned)(d.fitting * d.threads / WARP),
        .in_flight_sm = d.fitting * d.threads * f->in_flight,
        .start = start_time(f, in, work, &d, gpu),
        .times = { [BOUND_MEMORY] = memory_time(work, bandwidth),
                   [BOUND_ISSUE] = issue_time(f, work, &d, stays(&in->family->launch), gpu),
                   [BOUND_TENSOR] = tensor_time(f, work, &d, gpu),
                   [BOUND_SHARED] = shared_time(f, in, work, &d, gpu) },
        .end = end_time(in, work, gpu),
    };
    p.ahead = fmax(time_ahead(in, work, &d, p.start, gpu),
                   fmin(time_fetched(work, p.start, gpu), p.times[BOUND_MEMORY]));
    set_waiting_times(f, in, work, &d, bandwidth, gpu, p.times);
    for (cost_bound b = 0; b < BOUND_COUNT; b++)
        if (p.times[b] > p.times[p.bound])
            p.bound = b;
    p.total = p.start + time_together(f, in, p.times, p.ahead) + p.end;
    return p;
}
