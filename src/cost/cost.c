/* Memory latency by Little's law: bytes in flight = bandwidth x latency. Under load it is about
 * 780 ns: an H200 of 132 SMs needs some 25 KB in flight on each for the 4.3 TB/s of a copy. The
 * model takes it for all parts, and for all the share of the published bandwidth that a copy
 * reaches there, 4.3 of 4.8 TB/s.
 */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

#include "family/formula.h"

enum { WARP = 32, BATCH = 8, COLUMN = 11, SUMMARY_COLUMN = 11 };
enum { STAGED_AT_ONCE = 16, STAGE_INSTRUCTIONS = 6 }; /* of x: values a lane loads; for each */

static const double LATENCY = 780e-9;
static const double COPY_SHARE = 0.9;
static const double MEGA = 1e6, GIGA = 1e9, MICROSECONDS = 1e6, KILO = 1e3;

const char *const cost_bound_names[BOUND_COUNT] = {
    [BOUND_MEMORY] = "memory",
    [BOUND_ISSUE] = "issue",
    [BOUND_LATENCY] = "latency",
};

/* Whether a row is nearer to a target than another one (NULL: none), for kernels of a number of
 * vectors: the newest target first, then, of those on one side of m, the nearest m. */
static bool is_nearer(const cost_figures *row, const cost_figures *found, unsigned m)
{
    if (!found || row->sm != found->sm)
        return !found || row->sm > found->sm;
    return row->m <= m ? row->m > found->m : row->m < found->m;
}

static double between(double low, double high, double share)
{
    return low + (high - low) * share;
}

/* Those of kernels of a family with these weights. */
static bool find_counted(const instance *in, unsigned sm, cost_figures *found)
{
    const cost_figures *below = NULL, *above = NULL; /* with as many vectors or fewer; with more */
    format weights = instance_weights(in);
    unsigned m = (unsigned)in->shape.m;
    const char *name = NULL; /* of the rows' family, which stand together */
    bool wanted = false, passed = false;
    for (const cost_figures *f = cost_table; f < cost_table + cost_table_size && !passed; f++) {
        if (f->family != name) {
            bool before = wanted;
            wanted = strcmp(f->family, in->family->name) == 0;
            passed = before && !wanted;
        }
        name = f->family;
        if (!wanted || f->weights != weights || f->sm > sm)
            continue;
        const cost_figures **side = f->m <= m ? &below : &above;
        if (is_nearer(f, *side, m))
            *side = f;
    }
    if (!below && !above)
        return false;
    *found = below ? *below : *above;
    if (!below || !above || below->m == m)
        return true;
    double share = (double)(m - below->m) / (above->m - below->m);
    *found = *above;
    found->instructions = between(below->instructions, above->instructions, share);
    found->beside = between(below->beside, above->beside, share);
    found->in_flight = between(below->in_flight, above->in_flight, share);
    return true;
}

/* How many matrices a kernel has that may differ in their formats: 0 where it has weights alone. */
static unsigned matrix_count(const instance *in)
{
    unsigned count = 0;
    for (const param *p = in->family->params; p->name; p++)
        count = p->matrix > count ? p->matrix : count;
    return count;
}

static bool has_one_format(const instance *in, unsigned matrices)
{
    for (unsigned i = 1; i < matrices; i++)
        if (in->weights_of[i] != in->weights_of[0] && instance_matrix(in, i).shape.n)
            return false;
    return true;
}

static void add_share(cost_figures *sum, const cost_figures *of, double share)
{
    sum->sm = of->sm > sum->sm ? of->sm : sum->sm;
    sum->registers = of->registers > sum->registers ? of->registers : sum->registers;
    sum->shared = of->shared > sum->shared ? of->shared : sum->shared;
    sum->instructions += share * of->instructions;
    sum->beside += share * of->beside;
    sum->load_bytes += share * of->load_bytes;
    sum->unit_bytes += share * of->unit_bytes;
    sum->turn += share * of->turn;
    sum->in_flight += share * of->in_flight;
}

/* Each matrix's own, by its share of the rows: columns are the same. */
static bool compose(const instance *in, unsigned matrices, unsigned sm, cost_figures *found)
{
    double rows = 0;
    *found = (cost_figures){ .family = in->family->name,
                             .weights = instance_weights(in),
                             .m = (unsigned)in->shape.m };
    for (unsigned i = 0; i < matrices; i++)
        rows += (double)instance_matrix(in, i).shape.n;
    for (unsigned i = 0; i < matrices; i++) {
        instance one = instance_matrix(in, i);
        cost_figures figures;
        if (!one.shape.n)
            continue;
        one.family = family_find(families, in->family->each_matrix);
        if (!find_counted(&one, sm, &figures))
            return false;
        add_share(found, &figures, (double)one.shape.n / rows);
    }
    return true;
}

bool cost_find(const instance *in, unsigned sm, cost_figures *found)
{
    unsigned matrices = matrix_count(in);
    bool counted = find_counted(in, sm, found);
    if (!in->family->each_matrix || (counted && has_one_format(in, matrices)))
        return counted;
    return compose(in, matrices, sm, found);
}

cost_gpu cost_gpu_of(const target *t)
{
    const gpu_part *part = target_part(t);
    for (const target *older = t; !part && older > targets; older--)
        part = target_part(older - 1);
    return (cost_gpu){ t, part->sm_count, part->clock_mhz * MEGA,
                       part->bandwidth_gbps * GIGA * COPY_SHARE };
}

static double value_bytes(format f)
{
    return (double)formats[f].block_bytes / formats[f].block_values;
}

/* Experts that rows use between them, where each chooses its own with equal chances. */
static double experts_touched(const problem_shape *s)
{
    double all = (double)s->experts, of_row = (double)s->experts_used;
    return all * (1 - pow(1 - of_row / all, (double)s->m));
}

double cost_touched(const instance *in, const param *p)
{
    const problem_shape *s = &in->shape;
    double values = (double)formula_value(p->values, in, NULL);
    if (p->touched)
        return (double)formula_value(p->touched, in, NULL) *
               (p->by_expert ? experts_touched(s) : (double)s->m);
    if (p->target_values && p->kind == PARAM_OUT)
        return (double)(s->m * problem_cache_heads(s) * problem_cache_values(s));
    if (p->target_values)
        return values * (double)formula_value(p->target_values, in, NULL);
    return values;
}

cost_work cost_work_of(arena *a, const instance *in)
{
    cost_work work = { 0 };
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params);
    const problem_shape *s = &in->shape;
    double largest_input = 0;
    format weights = instance_weights(in);
    for (size_t i = 0; i < count; i++) {
        const param *p = &params[i];
        if (p->kind == PARAM_U32 || p->kind == PARAM_SCRATCH)
            continue;
        double values = cost_touched(in, p);
        format f = p->target_values ? p->target : p->format;
        work.bytes += values * value_bytes(f);
        if (p->kind == PARAM_IN && values > largest_input)
            largest_input = values;
        bool may_be_x = f == in->family->activations && work.units > 0;
        /* Each query head goes over its head's cache on its own. */
        if (p->updated)
            work.units += values;
        else if (p->cache && p->kind == PARAM_IN)
            work.units += values * (double)s->num_heads / (double)problem_cache_heads(s);
        else if (p->kind == PARAM_IN && (p->matrix || f == weights) && f != FORMAT_NONE &&
                 !may_be_x)
            work.units += values;
        if (work.units > 0 && work.unit_bytes <= 0)
            work.unit_bytes = value_bytes(f);
    }
    if (work.units <= 0) {
        work.units = largest_input;
        work.unit_bytes = value_bytes(FORMAT_F32);
    }
    return work;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Whether blocks stride over the rows, a turn after the other. */
static bool stays(const launch *l)
{
    return l->rows != NULL;
}

/* Each lane waits for 64 bytes of x at a time; then all blocks of an SM quantize them at once. */
static double staging_time(const instance *in, double threads, double blocks_sm,
                           const cost_gpu *gpu)
{
    const launch *l = &in->family->launch;
    if (!l->dynamic_shared)
        return 0;
    const problem_shape *s = &in->shape;
    double vectors = s->m > 0 ? (double)s->m : 1; /* 0: the family has no m */
    if (in->family->op == OP_EXPERT_GATE_UP)
        vectors *= (double)s->experts_used / experts_touched(s);
    double values = (double)s->k * vectors;
    double instructions = blocks_sm * values / WARP * STAGE_INSTRUCTIONS;
    return ceil(values / (threads * STAGED_AT_ONCE)) * LATENCY +
           instructions / (TARGET_ISSUE_SLOTS * gpu->clock);
}

/* Turns that the busiest have by those that there are on average: of rows, among blocks that stay,
 * and of the loop, among the lanes of a block. */
static double longest_by_average(const instance *in, const cost_work *work, double blocks,
                                 double threads, double turn, const run_values *run)
{
    const launch *l = &in->family->launch;
    double of_rows = 1, lane_units = work->units / (blocks * threads);
    if (stays(l)) {
        double rows = (double)formula_value(l->rows, in, run), n = (double)in->shape.n;
        if (in->family->op == OP_QKV)
            n += (double)(in->shape.n_kv + in->shape.n_v);
        if (in->family->op == OP_EXPERT_GATE_UP)
            n = n * experts_touched(&in->shape) + (double)in->shape.n_shared;
        of_rows = n / (blocks * rows);
        lane_units = rows * work->units / (n * threads);
    }
    double of_loop = lane_units / turn;
    return ceil(of_rows) / of_rows * ceil(of_loop) / of_loop;
}

static double memory_time(const cost_work *work, const cost_gpu *gpu)
{
    return work->bytes / gpu->bandwidth;
}

double cost_of_bytes(double bytes, const cost_gpu *gpu)
{
    return LATENCY + bytes / gpu->bandwidth;
}

double cost_least(const cost_figures *f, const family *of, const cost_work *work,
                  const cost_gpu *gpu)
{
    double start = of->launch.dynamic_shared ? LATENCY : 0;
    double instructions = work->units * f->instructions / WARP;
    double issue = instructions / (TARGET_ISSUE_SLOTS * gpu->sm_count * gpu->clock);
    return start + fmax(memory_time(work, gpu), issue);
}

cost_prediction cost_predict(const cost_figures *f, const instance *in, const cost_work *work,
                             const cost_gpu *gpu)
{
    const launch *l = &in->family->launch;
    run_values run = { in->shape.k, in->shape.n, in->shape.m, (int64_t)gpu->sm_count };
    double blocks = 1, threads = (double)formula_value(l->block, in, &run);
    for (int i = 0; i < 3; i++)
        blocks *= (double)formula_value(l->grid[i], in, &run);
    size_t dynamic = l->dynamic_shared ? (size_t)formula_value(l->dynamic_shared, in, &run) : 0;
    double fitting =
        target_blocks_per_sm(gpu->target, (unsigned)threads, f->registers, f->shared + dynamic);
    if (fitting < 1)
        return (cost_prediction){ .total = HUGE_VAL };
    double sms = least(blocks, gpu->sm_count), resident = sms * least(fitting, blocks / sms);
    double schedulers = least(TARGET_ISSUE_SLOTS * sms, resident * threads / WARP);
    double waves = ceil(blocks / (sms * fitting));
    double instructions = work->units * f->instructions / WARP;
    if (!stays(l))
        instructions += blocks * threads / WARP * f->beside;
    cost_prediction p = {
        .warps_sm = (unsigned)(fitting * threads / WARP),
        .in_flight_sm = fitting * threads * f->in_flight,
        .times = { [BOUND_MEMORY] = memory_time(work, gpu),
                   [BOUND_ISSUE] = instructions / (schedulers * gpu->clock),
                   [BOUND_LATENCY] = work->units * f->unit_bytes * LATENCY /
                                     (resident * threads * f->in_flight) *
                                     longest_by_average(in, work, blocks, threads, f->turn, &run) },
        .start = waves * staging_time(in, threads, resident / sms, gpu),
    };
    for (cost_bound b = 0; b < BOUND_COUNT; b++)
        if (p.times[b] > p.times[p.bound])
            p.bound = b;
    p.total = p.start + p.times[p.bound];
    return p;
}

/* Defaults, and of the sizes that have none those of an 8B model's. */
static instance usual_instance(arena *a, const family *f, int64_t weights)
{
    static const struct {
        const char *key;
        int64_t value;
    } sizes[] = {
        { "k", 4096 },         { "n", 14336 },          { "head_dim", 128 },   { "num_heads", 32 },
        { "num_kv_heads", 8 }, { "max_seq_len", 8192 }, { "kv_type", KV_F16 }, { "n_kv", 1024 },
        { "n_v", 1024 },       { "latent", 512 },       { "n_rope", 64 },      { "nope", 128 },
        { "value_dim", 128 },  { "experts", 64 },       { "experts_used", 8 },
    };
    instance in = { .family = f };
    for (const key *k = f->keys; k->name; k++)
        instance_set(&in, k, key_default(k));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const key *k = family_key(f, sizes[i].key);
        if (k)
            instance_set(&in, k, sizes[i].value);
    }
    in.weights = weights;
    for (const key *k = f->keys; k->name; k++)
        if (k->like)
            instance_set(&in, k, instance_default(&in, k));
    if (in.shape.n_kv)
        in.shape.n = in.shape.k;
    if (in.shape.m == 0 && family_key(f, "m"))
        in.shape.m = BATCH;
    in.shape.seq_len = in.shape.max_seq_len;
    in.name = instance_make_name(a, &in);
    return in;
}

static void put_heading(strbuf *out, const target *t, const gpu_part *part)
{
    strbuf_format(out, "\n%s: %s, %u SMs, %u MHz, %u GB/s\n", t->name, part->name, part->sm_count,
                  part->clock_mhz, part->bandwidth_gbps);
}

static void put_row(strbuf *out, const instance *in, const cost_figures *f, const cost_gpu *gpu,
                    size_t width)
{
    cost_work work = cost_work_of(out->arena, in);
    cost_prediction p = cost_predict(f, in, &work, gpu);
    strbuf_format(out, "%-*s%*u%*.2f%*.0f%*.1f", (int)width, in->name, COLUMN, p.warps_sm, COLUMN,
                  f->instructions, COLUMN, f->load_bytes, COLUMN, p.in_flight_sm / KILO);
    for (cost_bound b = 0; b < BOUND_COUNT; b++)
        strbuf_format(out, "%*.1f", COLUMN, p.times[b] * MICROSECONDS);
    strbuf_format(out, "%*.1f", COLUMN, p.start * MICROSECONDS);
    strbuf_format(out, "  %s\n", cost_bound_names[p.bound]);
}

/* A usual instance of each family, or of each format of its weights. */
typedef VEC(instance) instance_list;

static instance_list usual_instances(arena *a)
{
    instance_list usual = { 0 };
    for (const family *const *f = families; *f; f++) {
        const key *weights = family_key(*f, "weights");
        for (const choice *c = weights ? weights->choices : NULL; !c || c->word; c++) {
            *VEC_PUSH(a, &usual) = usual_instance(a, *f, c ? c - weights->choices : 0);
            if (!c)
                break;
        }
    }
    return usual;
}

bool cost_list(strbuf *out, const target *t)
{
    static const char *const columns[] = { "warps/SM",  "instr/unit", "bytes/load", "KB/SM",
                                           "memory us", "issue us",   "latency us", "start us" };
    if (!target_part(t))
        return false;
    cost_gpu gpu = cost_gpu_of(t);
    cost_figures figures;
    size_t width = 0;
    instance_list usual = usual_instances(out->arena);
    for (size_t i = 0; i < usual.count; i++) {
        size_t length = strlen(usual.items[i].name);
        width = length > width ? length : width;
    }
    put_heading(out, t, target_part(t));
    strbuf_format(out, "%-*s", (int)width, "kernel");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        strbuf_format(out, "%*s", COLUMN, columns[i]);
    strbuf_put(out, "  bound\n");
    for (size_t i = 0; i < usual.count; i++)
        if (cost_find(&usual.items[i], t->sm, &figures))
            put_row(out, &usual.items[i], &figures, &gpu, width);
    return true;
}

/* A summary's row: "stream_gemv q4_k". */
static const char *kind_of(arena *a, const instance *in)
{
    if (!family_key(in->family, "weights"))
        return in->family->name;
    return arena_format(a, "%s %s", in->family->name, formats[instance_weights(in)].name);
}

/* Whether the model knows a time for any target. */
static bool is_counted(const instance *in)
{
    cost_figures figures;
    bool counted = false;
    for (size_t t = 0; t < target_count; t++)
        counted |= target_part(&targets[t]) && cost_find(in, targets[t].sm, &figures);
    return counted;
}

static void put_total(strbuf *out, const instance *in, const target *t)
{
    cost_gpu gpu = cost_gpu_of(t);
    cost_figures figures;
    if (!cost_find(in, t->sm, &figures)) {
        strbuf_format(out, "%*s", SUMMARY_COLUMN, "");
        return;
    }
    cost_work work = cost_work_of(out->arena, in);
    cost_prediction p = cost_predict(&figures, in, &work, &gpu);
    strbuf_format(out, "%*.1f %c", SUMMARY_COLUMN - 2, p.total * MICROSECONDS,
                  *cost_bound_names[p.bound]);
}

void cost_summary(strbuf *out)
{
    instance_list usual = usual_instances(out->arena);
    size_t width = 0;
    for (size_t i = 0; i < usual.count; i++) {
        size_t length = strlen(kind_of(out->arena, &usual.items[i]));
        width = length > width ? length : width;
    }
    strbuf_format(out, "\n%-*s", (int)width, "kernel");
    for (size_t t = 0; t < target_count; t++)
        if (target_part(&targets[t]))
            strbuf_format(out, "%*s", SUMMARY_COLUMN, targets[t].name);
    strbuf_char(out, '\n');
    for (size_t i = 0; i < usual.count; i++) {
        if (!is_counted(&usual.items[i]))
            continue;
        strbuf_format(out, "%-*s", (int)width, kind_of(out->arena, &usual.items[i]));
        for (size_t t = 0; t < target_count; t++)
            if (target_part(&targets[t]))
                put_total(out, &usual.items[i], &targets[t]);
        strbuf_char(out, '\n');
    }
}
