/* Predicts the time of a launch (see cost.h), from these constants:
 *
 *   LATENCY       of memory under load, from Little's law: an H200 with 132 SMs needs about 25 KB
 *                 in flight per SM for the 4.3 TB/s of a copy. Assumed for all parts.
 *   L2_BYTES      per clock: maximum of all SMs together (NVIDIA A100 white paper)
 *   SHARED_BYTES  per clock: maximum of an SM's shared memory (Jia et al., 2018)
 *
 * Example: 4096 rows in blocks of 24 rows are 171 blocks. Of 132 SMs, 39 have two blocks and 93
 * have one. After memory's time for 132 blocks, 39 SMs have a block's rows left, few enough to load
 * at once: a round trip, and the bytes through the port. Blocks of 16 rows are 256 blocks, and 124
 * SMs have two: memory is never idle. */
#include "cost/cost.h"

#include <math.h>

#include "kernel/formula.h"

enum { L2_BYTES = 5120, SHARED_BYTES = 128, PRODUCT_FMAS = 16 * 8 * 16 };
/* Costs of staging x in shared memory, as f32 and in 8 bits: values in flight per lane, for one
 * vector and for several, and instructions per value. */
enum { STAGED_AT_ONCE = 32, STAGE_INSTRUCTIONS = 8 };
enum { BYTES_AT_ONCE = 64, MANY_BYTES_AT_ONCE = 128, BYTE_INSTRUCTIONS = 3 };

static const double LATENCY = 780e-9, PERCENT = 0.01;
static const double NEARLY_A_SUM = 1.65;

const char *const cost_bound_names[BOUND_COUNT] = {
    [BOUND_MEMORY] = "memory",   [BOUND_ISSUE] = "issue",   [BOUND_LATENCY] = "latency",
    [BOUND_BALANCE] = "balance", [BOUND_TENSOR] = "tensor", [BOUND_SHARED] = "shared",
};

/* A launch on a GPU. An item is the work that a block does at once: some rows, or all its work. */
typedef struct dealing {
    const cost_figures *figures;
    const instance *in;
    const cost_work *work;
    const cost_gpu *gpu;
    double port; /* bytes per second that an SM loads from the L2 */
    double threads, blocks;
    double shared;       /* bytes of shared memory per block */
    double sms;          /* number of SMs with blocks */
    double fitting;      /* blocks that fit an SM */
    double resident;     /* resident blocks on the busiest SM */
    double waves;        /* waves of blocks, 1 if all fit */
    double items;        /* number of items; may be fractional */
    double most, fewest; /* items per SM */
    double turns;        /* maximum number of items of a block */
    double rounds;       /* maximum number of consecutive items of a block's team */
    double loops;        /* loop iterations of a lane per item; 0.5 for half an iteration's work */
    double vectors;      /* vectors of x per block, on average */
    double first_waits;  /* first memory latencies: 1, or one per wave if blocks stage x */
    bool stages_x, shares_x, fetches_rows; /* see deal() */
} dealing;

static double rows_of(const instance *in)
{
    const problem_shape *s = &in->shape;
    if (in->family->op == OP_QKV)
        return (double)(s->n + s->n_kv + s->n_v);
    if (operation_is_of_experts(in->family->op))
        return (double)s->n * cost_experts(s) + (double)s->n_shared;
    return (double)s->n;
}

/* Returns true if blocks stage x in shared memory before all products. Tiles of f16 rows are loaded
 * along with the weights instead. */
static bool stages_x(const family *f)
{
    return f->launch.dynamic_shared && f->activations != FORMAT_F16;
}

/* Distributes items to blocks, and blocks to SMs, round robin. Blocks with rows (launch.rows) are
 * resident and stride over them. If not all blocks fit, an SM starts a block when one ends, so the
 * numbers of blocks per SM differ by at most one. If fitting is 0, a block does not fit, and later
 * fields are not set. */
static dealing deal(const cost_figures *f, const instance *in, const cost_work *work,
                    const cost_gpu *gpu)
{
    const launch *l = &in->family->launch;
    const problem_shape *s = &in->shape;
    bool groups = in->rows_mode == ROWS_RUN_TIME, has_tiles = cost_has_expert_tiles(in);
    run_values run = { s->k, s->n, groups ? work->rows : s->m, (int64_t)gpu->sm_count };
    dealing d = { .figures = f,
                  .in = in,
                  .work = work,
                  .gpu = gpu,
                  .port = fmin(COST_PORT_BYTES, L2_BYTES / gpu->sm_count) * gpu->clock,
                  .threads = (double)formula_value(l->block, in, &run),
                  .blocks = 1 };
    size_t dynamic = l->dynamic_shared ? (size_t)formula_value(l->dynamic_shared, in, &run) : 0;
    double tiles = has_tiles ? cost_expert_tiles(in) : 0;
    for (int i = 0; i < 3; i++)
        d.blocks *= (double)formula_value(l->grid[i], in, &run);
    if (has_tiles) { /* only blocks with columns of a tile have work */
        d.items = (double)formula_value(l->grid[0], in, &run) * tiles;
        d.blocks = fmin(d.blocks, ceil(d.items));
    }
    d.shared = (double)(f->shared + dynamic);
    d.fitting =
        target_blocks_per_sm(gpu->target, (unsigned)d.threads, f->registers, f->shared + dynamic);
    if (d.fitting < 1)
        return d;
    d.sms = fmin(d.blocks, gpu->sm_count);
    d.resident = fmin(d.fitting, ceil(d.blocks / d.sms));
    d.waves = ceil(d.blocks / (d.sms * d.fitting));
    if (l->rows)
        d.items = rows_of(in) / (double)formula_value(l->rows, in, &run);
    else if (!has_tiles)
        d.items = d.blocks;
    if (l->rows)
        d.items *= cost_row_groups(in, work->rows);
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
    d.rounds = ceil(d.turns / (double)formula_value(l->teams, in, &run));
    d.loops = work->units / (d.items * d.threads * f->turn);
    /* s->m is 0 without the key m */
    d.vectors = s->m > 0 ? (double)s->m / cost_row_groups(in, s->m) : 1;
    if (has_tiles)
        d.vectors *= (double)s->experts_used / tiles;
    else if (in->family->op == OP_EXPERT_GATE_UP)
        d.vectors *= (double)s->experts_used / cost_experts(s);
    d.stages_x = stages_x(in->family);
    d.first_waits = d.stages_x ? d.waves : 1;
    /* Lanes multiply each weight by several vectors from shared memory. */
    d.shares_x =
        d.stages_x && instance_weights(in) != FORMAT_NONE && f->products == 0 && d.vectors >= 2;
    /* A settled state allows prefetching cache rows before the wait. q needs a later round trip. */
    d.fetches_rows =
        in->state == STATE_SETTLED && target_overlaps(gpu->target) && work->first_trips > 0;
    return d;
}

/* Returns the seconds in which blocks stage x. A lane has 128 bytes in flight, or 72 or 144 with x
 * in 8 bits. All blocks of an SM load x through its port. Processing x overlaps the loads of other
 * blocks, except for the last block. */
static double staging_time(const dealing *d)
{
    const format_info *x = &formats[d->in->family->activations];
    bool rounded = x->block_values > 1;
    double values = (double)d->in->shape.k * d->vectors;
    double bytes = values * x->block_bytes / x->block_values;
    double instructions = values / WARP * (rounded ? BYTE_INSTRUCTIONS : STAGE_INSTRUCTIONS);
    double of_bytes = d->in->shape.m > 1 ? MANY_BYTES_AT_ONCE : BYTES_AT_ONCE;
    double at_once = rounded ? of_bytes : STAGED_AT_ONCE;
    return ceil(values / (d->threads * at_once)) * LATENCY + d->resident * bytes / d->port +
           instructions / (TARGET_ISSUE_SLOTS * d->gpu->clock);
}

/* Returns the seconds of the start that a kernel spends before its wait. */
static double early_trips(const dealing *d)
{
    return d->fetches_rows ? d->work->first_trips * LATENCY : 0;
}

/* Returns the seconds from the wait, or from the end of the work before it, until weights arrive.
 * With several passes, x is staged in each round. Blocks that do not stage x load it for their first
 * iterations at once; later iterations hit the L1. */
static double start_time(const dealing *d)
{
    const format_info *x = &formats[d->in->family->activations];
    double start = (d->work->first_trips + d->first_waits) * LATENCY;
    start -= fmin(d->work->early, early_trips(d));
    if (d->fetches_rows)
        return start + LATENCY;
    if (d->stages_x)
        return start + (d->in->passes > 1 ? d->rounds : d->waves) * staging_time(d);
    if (instance_weights(d->in) == FORMAT_NONE || d->in->family->activations == FORMAT_NONE)
        return start;
    double values = (double)d->in->shape.k * d->vectors / ceil(d->loops);
    return start + d->resident * values * x->block_bytes / x->block_values / d->port;
}

/* Returns the seconds of the start in which memory is busy: while x is staged or q is loaded, and
 * before q while the predecessor leaves memory idle. Families that prefetch into the L2 request the
 * weights of their warps' first iterations, up to the target's limit per warp. */
static double time_ahead(const dealing *d, double start)
{
    const cost_work *work = d->work;
    double warps = d->sms * d->resident * d->threads / WARP;
    double bytes = d->sms * d->resident * work->bytes / d->items;
    bytes = fmin(fmin(bytes, warps * target_bytes_ahead(d->gpu->target)), work->bytes);
    double fetched = bytes / d->gpu->bandwidth;
    if (d->fetches_rows)
        return fmin(LATENCY + fmax(0, work->early - early_trips(d)), fetched);
    if (d->in->family->launch.weights_first)
        return fmin(start - (1 + work->first_trips) * LATENCY, fetched);
    return 0;
}

/* Sets the busy times of the busiest SM: schedulers, tensor cores, shared memory. x in shared
 * memory has 8 bits per value, or is f32 for float weights. Rows of one warp share a load. The L1
 * cache is the same memory: on an H200 the clocks of loads from global memory and of lines that
 * arrive add up to those of shared memory. */
static void set_busy_times(const dealing *d, double times[BOUND_COUNT])
{
    const cost_figures *f = d->figures;
    const double units = d->work->units / d->items;
    double issued = units * f->instructions / WARP, product = units * f->products / WARP;
    if (!d->in->family->launch.rows)
        issued += d->threads / WARP * f->beside;
    times[BOUND_ISSUE] =
        d->most * issued /
        (fmin(TARGET_ISSUE_SLOTS, d->resident * d->threads / WARP) * d->gpu->clock);
    double fmas = f->specific ? d->gpu->wgmma_fmas : d->gpu->tensor_fmas;
    if (d->in->family->activations == FORMAT_Q8_F32)
        fmas = d->gpu->byte_fmas;
    if (f->products > 0)
        times[BOUND_TENSOR] = d->most * product * PRODUCT_FMAS / (fmas * d->gpu->clock);
    double bytes = f->shared_bytes;
    if (d->shares_x) {
        double rows = d->in->rows_per_warp > 0 ? (double)d->in->rows_per_warp : 1;
        rows *= instance_is_gated(d->in) ? 2 : 1;
        bool is_float = formats[instance_weights(d->in)].block_values == 1;
        bytes = d->vectors / rows * (is_float ? (double)sizeof(float) : 1);
    }
    double clocks = bytes / SHARED_BYTES;
    if (f->l1_clocks > 0)
        clocks += f->l1_clocks / WARP + f->unit_bytes / SHARED_BYTES;
    times[BOUND_SHARED] = d->most * units * clocks / d->gpu->clock;
}

/* Sets the waiting times. A lane with half an iteration's work waits for a whole iteration. SMs
 * with more items than others do not leave memory idle if they can saturate it. */
static void set_waiting_times(const dealing *d, double bandwidth, double times[BOUND_COUNT])
{
    const cost_figures *f = d->figures;
    double item = d->work->units * f->unit_bytes / d->items;
    double taken = d->work->units * (f->unit_bytes + f->x_bytes) / d->items;
    double chunks = d->in->stages ? (double)d->in->stages - 1 : 1;
    double of_block = d->threads * f->in_flight * chunks * d->loops / ceil(d->loops) / LATENCY;
    double rounds = d->turns * item / of_block - d->first_waits * LATENCY;
    times[BOUND_LATENCY] = fmax(rounds, d->most * taken / d->port);
    double more = d->most - d->fewest, alone = fmin(d->resident * of_block, d->port);
    if (more > 0 && (ceil(d->items) - d->fewest * d->sms) / more * alone < bandwidth)
        times[BOUND_BALANCE] = d->fewest * d->sms * d->work->bytes / d->items / bandwidth +
                               LATENCY + more * item / alone;
}

/* Returns the seconds between start and end; memory has begun `ahead` seconds before.
 * - Tensor-core products wait at barriers for weights and x in shared memory, and overlap little:
 *   on an H200 the sum was within 5 % with one block per SM, and 10 to 28 % too large with two.
 * - Lanes that multiply a weight by several vectors have too few loads in flight to overlap their
 *   other work: for 8 vectors the sum was 0 to 18 % too large.
 * - For other kernels the longest time hides the rest. Near the knee, where two times are similar,
 *   both contribute. */
static double time_together(const dealing *d, const double times[BOUND_COUNT], double ahead)
{
    double memory = fmax(times[BOUND_MEMORY], times[BOUND_BALANCE]) - ahead;
    double parts[BOUND_COUNT] = { memory, times[BOUND_ISSUE],  times[BOUND_LATENCY],
                                  0,      times[BOUND_TENSOR], times[BOUND_SHARED] };
    if (d->in->family->halves && instance_weights(d->in) != FORMAT_NONE)
        return fmax(memory, times[BOUND_ISSUE] + times[BOUND_LATENCY] + times[BOUND_TENSOR] +
                                times[BOUND_SHARED]);
    if (d->shares_x) {
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

double cost_room(const cost_kernel *ahead, double seconds, const cost_kernel *behind,
                 const cost_gpu *gpu)
{
    const cost_kernel *both[] = { ahead, behind };
    const target *t = gpu->target;
    double registers = 0, warps = 0, blocks = 0, shared = 0;
    for (int i = 0; i < 2 && target_overlaps(t); i++) {
        const cost_kernel *k = both[i];
        dealing d = deal(k->figures, k->in, k->work, gpu);
        registers += d.resident * d.threads * k->figures->registers;
        warps += d.resident * ceil(d.threads / WARP);
        blocks += d.resident;
        shared += d.resident * d.shared;
        if (d.fitting < 1)
            return 0;
    }
    bool fits = registers <= TARGET_REGISTERS && warps <= t->warps_sm && blocks <= t->blocks_sm &&
                shared <= t->shared_sm;
    return target_overlaps(t) && fits ? fmax(0, seconds - ahead->work->bytes / gpu->bandwidth) : 0;
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
    return fmax(start + fmax(work->bytes / gpu->bandwidth, issue), rounds);
}

cost_prediction cost_predict(const cost_figures *f, const instance *in, const cost_work *work,
                             const cost_gpu *gpu)
{
    dealing d = deal(f, in, work, gpu);
    if (d.fitting < 1)
        return (cost_prediction){ .total = HUGE_VAL };
    /* true: each warp has its own rows; false: a block's warps share rows */
    bool apart = instance_weights(in) != FORMAT_NONE && rows_of(in) / d.items >= d.threads / WARP;
    double bandwidth = gpu->bandwidth * (apart ? gpu->target->rows_apart * PERCENT : 1), parts = 0;
    if (in->splits) /* parts of a tile that a last block adds after its own */
        parts = (double)formula_value("(parts + 1)*tile_values", in, NULL) * (double)sizeof(float);
    cost_prediction p = {
        .warps_sm = (unsigned)(d.fitting * d.threads / WARP),
        .in_flight_sm = d.fitting * d.threads * f->in_flight,
        .start = start_time(&d),
        .times[BOUND_MEMORY] = work->bytes / bandwidth,
        .end = work->last_trips * LATENCY + parts / d.port,
    };
    /* Weights that the predecessor has prefetched need no time of memory. */
    double fetched = fmin(work->fetched / gpu->bandwidth, work->idle + p.start);
    p.ahead = fmax(time_ahead(&d, p.start), fmin(fetched, p.times[BOUND_MEMORY]));
    set_busy_times(&d, p.times);
    set_waiting_times(&d, bandwidth, p.times);
    for (cost_bound b = 0; b < BOUND_COUNT; b++)
        if (p.times[b] > p.times[p.bound])
            p.bound = b;
    p.total = p.start + time_together(&d, p.times, p.ahead) + p.end;
    return p;
}
