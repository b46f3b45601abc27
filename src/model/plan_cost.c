/* A launch takes what cost.h predicts for its kernel; where that was not counted, or touches a part
 * of its buffers alone, it takes one wait for memory and what its bytes take at the speed of
 * reads, or what tensor cores take for its products.
 *
 * A launch in a graph adds to that what launches of empty kernels take, and where it reads weights
 * what steps of several models were measured to take more until memory is at full speed
 * (measured.tsv): less where each launch may begin before the one ahead has ended. Taken for all
 * GPUs. What kernels hide behind the launches ahead of them is in that, but for what a settled
 * state lets them do: so much of a launch, by cost.h, is hidden besides.
 */
#include "model/plan_cost.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cost/choose.h"
#include "cost/measured.h"
#include "kernel/formula.h"
#include "kernel/limits.h"
#include "kernel/next.h"

static const double MICROSECONDS = 1e6, MILLISECONDS = 1e3, MEGA = 1e6, GIGA = 1e9;

typedef struct shown_plan {
    strbuf *out;
    const plan *plan;
    cost_gpu gpu;
    launch_cost *costs; /* by kernel, of the step that is shown */
    bool overlapped;
    size_t kind_width, said_width;
} shown_plan;

const char *cost_kind(arena *a, const instance *in)
{
    strbuf kind = strbuf_new(a);
    uint64_t said = 0;
    strbuf_put(&kind, in->family->name);
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t value = instance_value(in, k);
        if (k->choices != weights_choices || !key_matters(in, k) || value < 0 || said >> value & 1)
            continue;
        said |= UINT64_C(1) << value;
        strbuf_format(&kind, " %s", k->choices[value].word);
    }
    return kind.text;
}

static double bytes_of(format f, double values)
{
    return values * formats[f].block_bytes / formats[f].block_values;
}

/* Rows of one sequence share its caches. */
static double touched_values(const instance *in, const param *p)
{
    if (p->updated)
        return (double)formula_value(p->touched, in, NULL);
    return p->target_values && p->kind == PARAM_IN
               ? (double)formula_value(p->target_values, in, NULL)
               : cost_touched(in, p);
}

static double touched_bytes(arena *a, const instance *in)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params);
    double bytes = 0;
    for (size_t i = 0; i < count; i++)
        if ((params[i].kind == PARAM_OUT || params[i].kind == PARAM_IN) && !params[i].fetched)
            bytes += bytes_of(params[i].target_values ? params[i].target : params[i].format,
                              touched_values(in, &params[i]));
    return bytes;
}

/* What tensor cores take at least for a kernel's products; of others nothing. */
static double products_time(const instance *in, int64_t rows, const cost_gpu *gpu)
{
    const problem_shape *s = &in->shape;
    operation op = in->family->op;
    double fmas = 0, columns = (double)(s->n + s->n_kv + s->n_v);
    if (op == OP_PROMPT_ATTENTION)
        fmas = 2.0 * (double)(rows * s->num_heads * s->head_dim) * (double)s->max_seq_len;
    else if (in->family->halves)
        fmas = (operation_is_gated(op) ? 2 : 1) * columns * (double)(rows * s->k);
    if (operation_is_of_experts(op))
        fmas *= (double)s->experts_used;
    return fmas / (gpu->tensor_fmas * gpu->sm_count * gpu->clock);
}

/* A kernel with so many rows, and what it has to do. */
typedef struct counted_kernel {
    instance in;
    cost_figures figures;
    cost_work work;
    double bytes;
    size_t next; /* see next_param */
    bool counted;
} counted_kernel;

static counted_kernel count_kernel(arena *a, const instance *planned, int64_t rows,
                                   int64_t positions, const cost_gpu *gpu)
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
    k.bytes = touched_bytes(a, &whole);
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
    return instance_weights(in) != FORMAT_NONE && in->family->op != OP_EMBED_ROWS;
}

double cost_between(const instance *in, bool overlapped)
{
    double gap = overlapped ? COST_OVERLAPPED_LAUNCH : COST_LAUNCH;
    return gap + (cost_streams(in) ? overlapped ? COST_OVERLAPPED_RAMP : COST_RAMP : 0);
}

static launch_cost cost_of_kernel(const counted_kernel *k, int64_t rows, const cost_gpu *gpu)
{
    launch_cost cost = { .bytes = k->bytes,
                         .bound = "",
                         .between = { cost_between(&k->in, false), cost_between(&k->in, true) } };
    if (!k->counted) {
        double products = products_time(&k->in, rows, gpu);
        cost.seconds = cost_of_bytes(cost.bytes, gpu);
        cost.seconds = products > cost.seconds ? products : cost.seconds;
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
    counted_kernel k = count_kernel(a, planned, rows, positions, gpu);
    return cost_of_kernel(&k, rows, gpu);
}

static cost_kernel as_predicted(const counted_kernel *k)
{
    return (cost_kernel){ &k->figures, &k->in, &k->work };
}

/* A launch, ahead of which there is another one. */
typedef struct pair {
    const counted_kernel *ahead, *k;
    double seconds; /* of the one ahead */
} pair;

/* What memory may have fetched by the time that a launch starts. */
typedef struct fetching {
    const plan_argument *from; /* NULL: nothing */
    double bytes, idle;
} fetching;

/* What a launch has to do behind another one, where both are counted. */
static cost_work work_behind(const pair *of, const fetching *f, bool overlapped,
                             const cost_gpu *gpu)
{
    cost_work work = of->k->work;
    if (!of->ahead->counted || !of->k->counted)
        return work;
    cost_kernel ahead = as_predicted(of->ahead), behind = as_predicted(of->k);
    if (overlapped)
        work.early = cost_room(&ahead, of->seconds, &behind, gpu);
    work.fetched = f->bytes;
    work.idle = f->idle;
    return work;
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

static bool same_launch(const plan_launch *a, const plan_launch *b)
{
    return a->kernel == b->kernel && strcmp(a->said, b->said) == 0;
}

/* A layer's launches. */
typedef struct layer_part {
    size_t first, count;
} layer_part;

static layer_part layer_of(const plan_step *step, int64_t layer)
{
    layer_part part = { 0 };
    while (part.first < step->launch_count && step->launches[part.first].layer < layer)
        part.first++;
    while (part.first + part.count < step->launch_count &&
           step->launches[part.first + part.count].layer == layer)
        part.count++;
    return part;
}

static bool same_layers(const plan_step *step, int64_t a, int64_t b)
{
    layer_part of_a = layer_of(step, a), of_b = layer_of(step, b);
    bool same = of_a.count == of_b.count;
    for (size_t i = 0; same && i < of_a.count; i++)
        same = same_launch(&step->launches[of_a.first + i], &step->launches[of_b.first + i]);
    return same;
}

/* "layer 0..3, 7, 10:", those that are like one of them; false where one ahead of it is. */
static bool print_layers(const shown_plan *p, const plan_step *step, int64_t of)
{
    int64_t layers = p->plan->decoder->layers;
    for (int64_t l = 0; l < of; l++)
        if (same_layers(step, l, of))
            return false;
    strbuf_put(p->out, "      layer ");
    for (int64_t l = of; l < layers;) {
        int64_t last = l;
        while (last + 1 < layers && same_layers(step, last + 1, of))
            last++;
        strbuf_format(p->out, "%s%" PRId64, l > of ? ", " : "", l);
        if (last > l)
            strbuf_format(p->out, "%s%" PRId64, last == l + 1 ? ", " : "..", last);
        for (l = last + 1; l < layers && !same_layers(step, l, of);)
            l++;
    }
    strbuf_put(p->out, ":\n");
    return true;
}

static void print_launch(const shown_plan *p, const plan_step *step, size_t number)
{
    const plan_launch *l = &step->launches[number];
    const launch_cost *cost = &p->costs[l->kernel];
    bool guessed = !*cost->bound;
    double seconds = cost->seconds - cost->spared[p->overlapped];
    strbuf_format(p->out, "%5zu %-*s  %-*s %9s us%s%s\n", number + 1, (int)p->kind_width,
                  cost_kind(p->out->arena, &p->plan->kernels[l->kernel]), (int)p->said_width,
                  l->said,
                  arena_format(p->out->arena, "%s%.1f", guessed ? "~" : "", seconds * MICROSECONDS),
                  guessed ? "" : "  ", cost->bound);
}

/* "1.55 ms", "23.4 us". */
static void print_time(strbuf *out, double seconds)
{
    bool is_long = seconds >= 1 / MILLISECONDS;
    strbuf_format(out, "%.*f %s", is_long ? 2 : 1,
                  seconds * (is_long ? MILLISECONDS : MICROSECONDS), is_long ? "ms" : "us");
}

/* Rows of a launch: those of its kernel, or an argument. */
static int64_t rows_of_launch(const plan *p, const plan_launch *l)
{
    for (size_t i = 0; i < l->argument_count; i++)
        if (l->arguments[i].is_number)
            return l->arguments[i].number;
    return p->kernels[l->kernel].shape.m;
}

/* Whether it loads what has been fetched: it may only have it fetched, too. */
static bool reads(const plan_launch *l, const counted_kernel *k, const fetching *f)
{
    for (size_t i = 0; f->from && i < l->argument_count; i++)
        if (i != k->next && l->arguments[i].memory == f->from->memory &&
            l->arguments[i].offset == f->from->offset)
            return true;
    return false;
}

/* What a launch fetches, or what one ahead of it has, while it takes so long. Where it fetches
 * early memory has all of its time for that in which it has nothing to do for the launch itself. */
static fetching fetching_behind(const plan_launch *l, const counted_kernel *k,
                                const cost_work *work, const cost_prediction *p,
                                const fetching *before, bool overlapped, const cost_gpu *gpu)
{
    double boundary = overlapped ? 0 : COST_LAUNCH;
    cost_kernel of = as_predicted(k);
    if (!k->counted || !k->in.next)
        return (fetching){ before->from, before->bytes, before->idle + p->total + boundary };
    const plan_argument *from = &l->arguments[k->next];
    double bytes = cost_fetches(&of, gpu);
    if (before->from && before->from->offset == from->offset) /* by both */
        return (fetching){ from, fmax(before->bytes, bytes), before->idle + p->total + boundary };
    double own = p->times[BOUND_MEMORY] - fmin(p->ahead, work->idle);
    double idle = next_is_early(&k->in) ? fmax(p->end, p->total - own) : p->end;
    return (fetching){ from, bytes, idle + boundary };
}

void cost_of_launches(arena *a, const plan *p, const plan_step *step, int64_t positions,
                      const cost_gpu *gpu, launch_cost *costs)
{
    size_t *times = arena_zalloc(a, p->kernel_count * sizeof *times);
    counted_kernel *kernels = arena_alloc(a, p->kernel_count * sizeof *kernels);
    fetching fetched[2] = { 0 };
    double before[2] = { 0 };
    for (size_t i = 0; i < step->launch_count; i++) {
        const plan_launch *l = &step->launches[i];
        size_t k = l->kernel, ahead = i ? step->launches[i - 1].kernel : k;
        if (!times[k]++) {
            int64_t rows = rows_of_launch(p, l);
            instance made[TARGET_MOST];
            launch_fit(&p->kernels[k], p->targets, p->target_count, made);
            const instance *taken = launch_taken(made, p->targets, p->target_count, gpu->target);
            kernels[k] = count_kernel(a, taken ? taken : &p->kernels[k], rows, positions, gpu);
            costs[k] = cost_of_kernel(&kernels[k], rows, gpu);
        }
        for (int o = 0; o < 2; o++) {
            const pair of = { &kernels[ahead], &kernels[k], before[o] };
            const fetching own = reads(l, &kernels[k], &fetched[o]) ? fetched[o] : (fetching){ 0 };
            const cost_work work = i ? work_behind(&of, &own, o, gpu) : kernels[k].work;
            cost_prediction of_launch = { .total = costs[k].seconds };
            if (kernels[k].counted)
                of_launch = cost_predict(&kernels[k].figures, &kernels[k].in, &work, gpu);
            double spared = costs[k].seconds - of_launch.total;
            costs[k].spared[o] += (spared - costs[k].spared[o]) / (double)times[k];
            before[o] = of_launch.total;
            fetched[o] = fetching_behind(l, &kernels[k], &work, &of_launch, &fetched[o], o, gpu);
        }
    }
}

static void print_step(const shown_plan *p, const plan_step *step)
{
    cost_of_launches(p->out->arena, p->plan, step, COST_USUAL_POSITIONS, &p->gpu, p->costs);
    step_cost cost = cost_of_step(step, p->costs, p->overlapped);
    bool large = cost.bytes >= GIGA;
    strbuf_format(p->out,
                  "step of %" PRId64 " token%s, %zu launches, %.*f %s read and written: ", step->m,
                  step->m == 1 ? "" : "s", step->launch_count, large ? 2 : 1,
                  cost.bytes / (large ? GIGA : MEGA), large ? "GB" : "MB");
    print_time(p->out, cost.seconds);
    strbuf_format(p->out, " on %s (memory alone ", p->gpu.target->name);
    print_time(p->out, cost.bytes / p->gpu.bandwidth);
    strbuf_put(p->out, ", between launches ");
    print_time(p->out, cost.between);
    strbuf_put(p->out, ")\n");
    for (size_t i = 0; i < step->launch_count;) {
        int64_t layer = step->launches[i].layer;
        layer_part part = { i, 1 };
        bool shown = true;
        if (layer >= 0 && layer < p->plan->decoder->layers) {
            part = layer_of(step, layer);
            shown = print_layers(p, step, layer);
        }
        for (size_t l = 0; shown && l < part.count; l++)
            print_launch(p, step, part.first + l);
        i += part.count;
    }
}

/* "4.58 GiB", "1.2 MiB", "576 bytes". */
static void print_bytes(strbuf *out, uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
    enum { UNITS = sizeof units / sizeof *units, KIB = 1024 };
    double number = (double)bytes / KIB;
    size_t unit = 0;
    if (bytes < KIB) {
        strbuf_format(out, "%" PRIu64 " bytes", bytes);
        return;
    }
    for (; number >= KIB && unit + 1 < UNITS; unit++)
        number /= KIB;
    strbuf_format(out, "%.*f %s", unit > 1 ? 2 : 1, number, units[unit]);
}

/* Of the step with the most: its buffers, and in how many places they are. */
static void print_buffers(strbuf *out, const plan_step *step)
{
    size_t places = 0;
    for (size_t i = 0; i < step->buffer_count; i++) {
        size_t earlier = 0;
        while (step->buffers[earlier].offset != step->buffers[i].offset)
            earlier++;
        places += earlier == i;
    }
    strbuf_format(out, " (%zu buffer%s in %zu place%s)", step->buffer_count,
                  step->buffer_count == 1 ? "" : "s", places, places == 1 ? "" : "s");
}

static void print_memory(strbuf *out, const plan *p)
{
    const decoder *d = p->decoder;
    strbuf_put(out, "memory  weights ");
    print_bytes(out, p->bytes[PLAN_WEIGHTS]);
    strbuf_put(out, ", cache ");
    print_bytes(out, p->bytes[PLAN_CACHE]);
    strbuf_format(out, " (%" PRId64 " positions", d->max_seq_len);
    if (d->sequences > 1)
        strbuf_format(out, " of %" PRId64 " sequences", d->sequences);
    strbuf_format(out, ", %s), state ", formats[kv_formats[d->kv_type]].name);
    print_bytes(out, p->bytes[PLAN_STATE]);
    strbuf_put(out, ", workspace ");
    print_bytes(out, p->bytes[PLAN_WORKSPACE]);
    print_buffers(out, &p->steps[p->step_count - 1]);
    strbuf_char(out, '\n');
}

static size_t wider(size_t width, const char *text)
{
    return strlen(text) > width ? strlen(text) : width;
}

void cost_plan(strbuf *out, const plan *p, const target *t, bool overlapped)
{
    arena *a = out->arena;
    shown_plan shown = { .out = out,
                         .plan = p,
                         .gpu = cost_gpu_of(t),
                         .overlapped = overlapped,
                         .costs = arena_alloc(a, p->kernel_count * sizeof *shown.costs) };
    for (size_t i = 0; i < p->kernel_count; i++)
        shown.kind_width = wider(shown.kind_width, cost_kind(a, &p->kernels[i]));
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t i = 0; i < p->steps[s].launch_count; i++)
            shown.said_width = wider(shown.said_width, p->steps[s].launches[i].said);
    for (size_t s = 0; s < p->step_count; s++) {
        print_step(&shown, &p->steps[s]);
        strbuf_char(out, '\n');
    }
    print_memory(out, p);
    int64_t positions = p->decoder->max_seq_len < COST_USUAL_POSITIONS ? p->decoder->max_seq_len
                                                                       : COST_USUAL_POSITIONS;
    strbuf_format(out,
                  "model   times are predicted, not measured; attention to %" PRId64 " positions; "
                  "~ by bytes or products alone\n",
                  positions);
}
