/* A launch takes the time that cost.h predicts for its kernel. A kernel without counted figures, or
 * that touches only part of its buffers, takes the larger of two times: a memory latency plus its
 * bytes at read bandwidth, or its products on tensor cores, of attention those of the busiest SM.
 *
 * In a graph each launch adds a gap, measured with empty kernels. A launch that reads weights adds
 * a ramp until memory is at full speed, measured in steps of several models (measured.tsv). Both
 * are smaller where launches overlap, and equal on all GPUs. The overlap that kernels achieve is
 * part of these figures. Only what a settled state hides of a launch is subtracted, by cost.h. */
#include "model/plan_cost.h"

#include <math.h>

#include "cost/measured.h"
#include "kernel/formula.h"
#include "kernel/limits.h"

typedef struct counted_kernel {
    instance in;
    cost_figures figures;
    cost_work work;
    double bytes;
    size_t next; /* number of the prefetch parameter: see next_param */
    bool counted;
} counted_kernel;

static counted_kernel count_kernel(arena *a, const instance *planned, int64_t rows,
                                   int64_t positions, int64_t sequences, const cost_gpu *gpu)
{
    counted_kernel k = { .in = *planned };
    instance *in = &k.in, whole;
    if (in->options.window && in->options.window < positions)
        positions = in->options.window;
    if (in->shape.max_seq_len > positions)
        in->shape.max_seq_len = positions;
    if (in->options.ring > positions)
        in->options.ring = positions;
    whole = *in;
    whole.rows_mode = ROWS_FIXED;
    whole.shape.m = rows;
    param params[MAX_PARAMS];
    size_t count = instance_params(a, &whole, params);
    for (size_t i = 0; i < count; i++) { /* inputs and outputs */
        const param *p = &params[i];
        if ((p->kind != PARAM_OUT && p->kind != PARAM_IN) || p->order == ORDER_FETCHED)
            continue;
        double values = cost_touched(&whole, p);
        /* Rows share the caches of their sequence. */
        if (p->data == DATA_UPDATED || (p->data == DATA_CACHE && p->kind == PARAM_IN))
            values *= fmin(1, (double)sequences / (double)rows);
        const format_info *f = &formats[p->format];
        k.bytes += values * f->block_bytes / f->block_values;
    }
    k.counted = cost_find(in, gpu->target, &k.figures);
    k.next = next_param(a, in);
    if (k.counted) {
        k.work = cost_work_of_rows(a, in, rows);
        k.work.bytes = k.bytes;
    }
    return k;
}

bool cost_streams(const instance *in)
{
    return instance_weights(in) != FORMAT_NONE && in->family->op != OP_EMBED_ROWS &&
           in->family->op != OP_PER_LAYER_ROWS;
}

double cost_launch_gap(const instance *in, bool overlapped)
{
    double gap = overlapped ? COST_OVERLAPPED_LAUNCH : COST_LAUNCH;
    return gap + (cost_streams(in) ? overlapped ? COST_OVERLAPPED_RAMP : COST_RAMP : 0);
}

/* Returns the seconds of a prompt's attention: a block multiplies its rows by all positions of its
 * chunk, and the last one loads all partial rows from the L2. On an H200 blocks kept the tensor
 * cores of an SM 36 % busy, or 47 % if it had two of them. */
static double attention_seconds(const instance *in, int64_t rows, const cost_gpu *gpu)
{
    static const double busy = 0.4;
    const problem_shape *s = &in->shape;
    run_values run = { s->k, s->n, rows, (int64_t)gpu->sm_count };
    double blocks = 1, tile_rows = (double)formula_value("tile_rows", in, &run);
    double chunks = (double)formula_value("most_chunks", in, &run);
    for (int i = 0; i < 3; i++)
        blocks *= (double)formula_value(in->family->launch.grid[i], in, &run);
    double fmas = 2 * tile_rows * (double)(s->head_dim * s->max_seq_len) / chunks;
    double clocks = ceil(blocks / gpu->sm_count) * fmas / (busy * gpu->tensor_fmas);
    if (s->chunk_size)
        clocks += tile_rows * chunks * (double)s->head_dim * sizeof(float) / COST_PORT_BYTES;
    return clocks / gpu->clock;
}

static launch_cost cost_of_kernel(const counted_kernel *k, int64_t rows, const cost_gpu *gpu)
{
    launch_cost cost = { .bytes = k->bytes,
                         .bound = "",
                         .between = { cost_launch_gap(&k->in, false),
                                      cost_launch_gap(&k->in, true) } };
    if (!k->counted) { /* lower bound: bytes, or products on tensor cores */
        const problem_shape *s = &k->in.shape;
        operation op = k->in.family->op;
        double fmas = 0, columns = (double)(s->n + s->n_kv + s->n_v);
        cost.seconds = op == OP_PROMPT_ATTENTION ? attention_seconds(&k->in, rows, gpu) : 0;
        if (op != OP_PROMPT_ATTENTION && k->in.family->halves)
            fmas = (instance_is_gated(&k->in) ? 2 : 1) * columns * (double)(rows * s->k);
        if (operation_is_of_experts(op))
            fmas *= (double)s->experts_used;
        cost.seconds = fmax(cost.seconds, cost_of_bytes(cost.bytes, gpu));
        cost.seconds = fmax(cost.seconds, fmas / (gpu->tensor_fmas * gpu->sm_count * gpu->clock));
        return cost;
    }
    cost_prediction p = cost_predict(&k->figures, &k->in, &k->work, gpu);
    cost.seconds = p.total;
    cost.bound = cost_bound_names[p.bound];
    return cost;
}

launch_cost cost_of_launch(arena *a, const instance *planned, int64_t rows, int64_t positions,
                           const cost_gpu *gpu)
{
    counted_kernel k = count_kernel(a, planned, rows, positions, 1, gpu);
    return cost_of_kernel(&k, rows, gpu);
}

/* Data that earlier launches have prefetched when a launch starts. */
typedef struct fetching {
    const plan_argument *from; /* NULL = none */
    double bytes, idle;
} fetching;

/* Returns true if a launch reads the prefetched data, other than to prefetch it again. */
static bool reads(const plan_launch *l, const counted_kernel *k, const fetching *f)
{
    for (size_t i = 0; f->from && i < l->argument_count; i++)
        if (i != k->next && l->arguments[i].memory == f->from->memory &&
            l->arguments[i].offset == f->from->offset)
            return true;
    return false;
}

/* Returns the prefetched data after a launch, from it or from an earlier launch. A launch that
 * prefetches early leaves memory the time in which it makes no reads of its own. */
static fetching prefetch_after(const plan_launch *l, const counted_kernel *k, const cost_work *work,
                               const cost_prediction *p, const fetching *before, bool overlapped,
                               const cost_gpu *gpu)
{
    double boundary = overlapped ? 0 : COST_LAUNCH;
    cost_kernel of = { &k->figures, &k->in, &k->work };
    if (!k->counted || !k->in.next)
        return (fetching){ before->from, before->bytes, before->idle + p->total + boundary };
    const plan_argument *from = &l->arguments[k->next];
    double bytes = cost_fetches(&of, gpu);
    if (before->from && before->from->offset == from->offset) /* both prefetch the same */
        return (fetching){ from, fmax(before->bytes, bytes), before->idle + p->total + boundary };
    double own = p->times[BOUND_MEMORY] - fmin(p->ahead, work->idle);
    double idle = next_is_early(&k->in) ? fmax(p->end, p->total - own) : p->end;
    return (fetching){ from, bytes, idle + boundary };
}

step_cost cost_of_step(const plan_step *step, const launch_cost *costs, bool overlapped)
{
    step_cost cost = { 0 };
    double launches = 0;
    for (size_t i = 0; i < step->launch_count; i++) {
        const launch_cost *of = &costs[step->launches[i].kernel];
        launches += of->seconds - of->spared[overlapped];
        cost.between += of->between[overlapped];
        cost.bytes += of->bytes;
    }
    cost.seconds = launches + cost.between;
    return cost;
}

void cost_of_launches(arena *a, const plan *p, const plan_step *step, int64_t positions,
                      const cost_gpu *gpu, launch_cost *costs)
{
    size_t *times = arena_zalloc(a, p->kernel_count * sizeof *times);
    counted_kernel *kernels = arena_alloc(a, p->kernel_count * sizeof *kernels);
    fetching fetched[2] = { 0 };
    double seconds[2] = { 0 }; /* seconds of the preceding launch */
    for (size_t i = 0; i < step->launch_count; i++) {
        const plan_launch *l = &step->launches[i];
        size_t k = l->kernel;
        const counted_kernel *before = &kernels[i ? step->launches[i - 1].kernel : k];
        if (!times[k]++) {
            size_t count = l->argument_count; /* the last one is m_val, if any */
            const plan_argument *last = &l->arguments[count ? count - 1 : 0];
            bool has_rows = count && last->is_number && p->kernels[k].rows_mode == ROWS_RUN_TIME;
            int64_t rows = has_rows ? last->number : p->kernels[k].shape.m;
            instance made[TARGET_MOST];
            launch_fit(&p->kernels[k], p->targets, p->target_count, made);
            const instance *taken = launch_taken(made, p->targets, p->target_count, gpu->target);
            kernels[k] = count_kernel(a, taken ? taken : &p->kernels[k], rows, positions,
                                      p->decoder->sequences, gpu);
            costs[k] = cost_of_kernel(&kernels[k], rows, gpu);
        }
        for (int o = 0; o < 2; o++) {
            const counted_kernel *of = &kernels[k];
            cost_kernel ahead = { &before->figures, &before->in, &before->work };
            cost_kernel behind = { &of->figures, &of->in, &of->work };
            cost_work work = of->work;
            if (i && before->counted && of->counted) {
                bool has_fetched = reads(l, of, &fetched[o]);
                work.early = o ? cost_room(&ahead, seconds[o], &behind, gpu) : work.early;
                work.fetched = has_fetched ? fetched[o].bytes : 0;
                work.idle = has_fetched ? fetched[o].idle : 0;
            }
            cost_prediction of_launch = { .total = costs[k].seconds };
            if (of->counted)
                of_launch = cost_predict(&of->figures, &of->in, &work, gpu);
            double spared = costs[k].seconds - of_launch.total;
            costs[k].spared[o] += (spared - costs[k].spared[o]) / (double)times[k];
            seconds[o] = of_launch.total;
            fetched[o] = prefetch_after(l, of, &work, &of_launch, &fetched[o], o, gpu);
        }
    }
}
