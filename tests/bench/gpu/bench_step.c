/* Times the steps of decoders on a GPU:
 *
 *     bench_step [--quick] [--positions N] [--prompts N,N | none] [--rows N,N]
 *                [--next] [--warps FAMILY=N,N [--early]] [--without FAMILY] [--kernels]
 *                [--repeat N] [--jobs N] SPEC...
 *
 * For each spec's [decoder] it prints a table with
 *
 *   - each step after N tokens (4096, or as many as fit max_seq_len), as the median time of a
 *     replayed graph. A second row is without overlap: each launch starts when its predecessor has
 *     finished. Steps of few rows have a third row, not captured: the host launches several steps
 *     one by one, and the time ends when all are done.
 *   - prompts (of 512 and 2048 tokens) from an empty cache, by the steps of a header's
 *     PREFIX_prompt: as many as possible of the largest m, launched one by one
 *
 * Options add rows for steps with few rows:
 *
 *   --without  the step without the launches of families whose name contains FAMILY; its logits
 *              mean nothing
 *   --repeat N each step N times with its logits compared. If they differ, the step runs again
 *              without overlap, then for each family with only its launches not overlapping.
 *   --next     with the other value of the key next: usually `fetched`
 *   --warps    with other numbers of warps per block in families whose name contains FAMILY
 *   --early    the variants of --warps and the usual step with launches that let the next launch
 *              start when they start
 *   --kernels  a table of the kernels of each step, steps of many rows included: all launches of a
 *              kernel are in their own graph, with the tensors of their layers
 *
 * A row has the bytes read and written, their speed relative to a copy on this device, and the
 * prediction of the cost model for this device's number of SMs, clock and copy. --rows replaces the
 * key m of all specs.
 *
 * Weights and caches are made up (device_model.h). Logits, token and position of each step and
 * prompt are checked in the same run. A model that fails has a line "FAILED MODEL: text". After a
 * failed call the program restarts with the next model (--from N). The last line has the number of
 * models that passed. Before the first model several processes (--jobs, by default one per core)
 * compile the kernels. The driver then has them in its cache on disk.
 *
 * Exit status: 0 success; 1 a wrong result or an error; 77 there is no GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_process.h"
#include "bench/gpu/device.h"
#include "bench/gpu/device_model.h"
#include "bench/gpu/variants.h"
#include "model/plan_cost.h"
#include "input/values.h"
#include "ref/reference.h"

enum {
    FAILED = 1,
    USAGE = 2,
    SKIPPED = 77,
    USUAL_POSITIONS = 4096,
    MOST_JOBS = 8,
    MOST_BATCHES = 9,
    KERNEL_TURNS = 32, /* minimum launches of one kernel in a graph */
    STEP_TURNS = 8,    /* repetitions of a step in a graph; each advances the position, so there
                          must be room for all */
    PROMPT_TURNS = 1,  /* repetitions of a prompt's step in a graph */
    PROMPT_BATCHES = 3,
    L2_TIMES = 3,
};

typedef struct options {
    bool quick, kernels;
    int64_t positions, repeat;
    number_list prompts;
    variant_options variants;
    const char *without;
    unsigned jobs;
    size_t from; /* index of the first model; if not 0, an earlier model has failed */
    char **specs;
    int spec_count;
    char **argv;
} options;

typedef struct bench {
    const options *options;
    gpu gpu;
    cost_gpu model;
    int64_t positions;
    arena *arena;                     /* memory for one model */
    const char *name;                 /* name of the model */
    double usual[DECODER_MOST_STEPS]; /* seconds of each step without variants */
    size_t passed;                    /* number of models that passed */
    bool all_right, judged_right;
} bench;

/* A row of the table. A value of 0 is printed as an empty cell. */
typedef struct row {
    const char *name;
    size_t launches, streams; /* streams: launches that read whole matrices of weights */
    double bytes, seconds, of_step, predicted, tokens;
    const char *bound, *remark;
} row;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_cell(int digits, double number)
{
    if (number > 0 && isfinite(number))
        printf(" %.*f |", digits, number);
    else
        printf(" |");
}

/* Prints the head of a table. `of` is "" or "kernels of the step of 8, ". */
static void print_head(const bench *b, const char *of)
{
    printf("\n%s, %safter %lld tokens:\n\n"
           "| step or kernel | launches | of weights | MB | us | of step %% | GB/s | of copy %% | "
           "model us | of "
           "model "
           "| tokens/s | bound | remark |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
           b->name, of, (long long)b->positions);
    fflush(stdout);
}

static void print_row(const bench *b, const row *r)
{
    printf("| %s |", cell_text(b->arena, r->name));
    print_cell(0, (double)r->launches);
    print_cell(0, (double)r->streams);
    print_cell(2, r->bytes / 1e6);
    print_cell(r->seconds < 1e-3 ? 2 : 1, r->seconds * 1e6);
    print_cell(1, 100 * r->of_step);
    print_cell(1, r->bytes / r->seconds / 1e9);
    print_cell(1, 100 * r->bytes / r->seconds / device_copy(&b->model));
    print_cell(r->predicted < 1e-3 ? 2 : 1, r->predicted * 1e6);
    print_cell(2, r->seconds / r->predicted);
    print_cell(1, r->tokens / r->seconds);
    printf(" %s | %s |\n", r->bound ? r->bound : "", r->remark ? r->remark : "");
    fflush(stdout);
}

static void print_failure(bench *b, const char *wrong)
{
    printf("FAILED %s: %s\n", b->name, cell_text(b->arena, wrong));
    fflush(stdout);
    b->all_right = b->judged_right = false;
}

/* A function that runs and times a batch. Returns false if a call failed. */
typedef bool timed_work(const bench *b, device_model *m, const void *context, double *seconds);

/* Measures the median time of some batches. The first run is not timed. */
static bool measure(const bench *b, device_model *m, timed_work *work, const void *context,
                    size_t batches, double *median)
{
    double seconds[MOST_BATCHES];
    batches = b->options->quick ? 1 : batches;
    if (!b->options->quick && !work(b, m, context, seconds))
        return false;
    for (size_t i = 0; i < batches; i++)
        if (!work(b, m, context, &seconds[i]))
            return false;
    qsort(seconds, batches, sizeof *seconds, by_size);
    *median = seconds[batches / 2];
    return true;
}

/* A step in a batch, or only its launches of one kernel. */
typedef struct steps {
    const plan_step *step;
    int64_t only;
    size_t turns;
} steps;

/* Times a replay of the graph, after a replay that is not timed. Both advance the positions. */
static bool time_graph(const bench *b, device_model *m, const void *context, double *seconds)
{
    const steps *s = context;
    bool timed = device_model_set_rows(m, s->step->m, b->positions) && gpu_replay(m->gpu) &&
                 gpu_start(m->gpu) && gpu_replay(m->gpu) && gpu_stop(m->gpu, seconds);
    *seconds /= (double)s->turns;
    return timed;
}

static bool measure_graph(const bench *b, device_model *m, const plan_step *step, int64_t only,
                          size_t turns, double *median)
{
    steps s = { step, only, b->options->quick ? 1 : turns };
    bool launched = gpu_begin_graph(m->gpu);
    for (size_t i = 0; i < s.turns && launched; i++)
        launched = device_model_launch(m, step, only);
    return launched && gpu_end_graph(m->gpu) &&
           measure(b, m, time_graph, &s, decoder_is_prompt(step->m) ? PROMPT_BATCHES : MOST_BATCHES,
                   median);
}

static bool time_launches(const bench *b, device_model *m, const void *context, double *seconds)
{
    const steps *s = context;
    if (!device_model_set_rows(m, s->step->m, b->positions) || !gpu_wait(m->gpu))
        return false;
    uint64_t start = os_nanoseconds();
    for (size_t i = 0; i < s->turns; i++)
        if (!device_model_launch(m, s->step, s->only))
            return false;
    bool done = gpu_wait(m->gpu);
    *seconds = (double)(os_nanoseconds() - start) / 1e9 / (double)s->turns;
    return done;
}

static bool time_prompt(const bench *b, device_model *m, const void *context, double *seconds)
{
    (void)b;
    return gpu_wait(m->gpu) && gpu_start(m->gpu) && device_prompt_launch(m, context) &&
           gpu_stop(m->gpu, seconds);
}

static size_t step_turns(const plan_step *s)
{
    return decoder_is_prompt(s->m) ? PROMPT_TURNS : STEP_TURNS;
}

static bool overlaps(const device_model *m)
{
    for (size_t i = 0; i < m->plan->kernel_count; i++)
        if (m->overlap[i])
            return true;
    return false;
}

/* Returns the step with only the launches that the model has. */
static plan_step launched_of(const device_model *m, const plan_step *s)
{
    plan_step launched = *s;
    launched.launches = arena_alloc(m->arena, s->launch_count * sizeof *s->launches);
    launched.launch_count = 0;
    for (size_t i = 0; i < s->launch_count; i++)
        if (device_model_has(m, s->launches[i].kernel))
            launched.launches[launched.launch_count++] = s->launches[i];
    return launched;
}

static launch_cost *costs_of(const bench *b, const device_model *m, const plan_step *s,
                             int64_t positions)
{
    launch_cost *costs = arena_zalloc(m->arena, m->plan->kernel_count * sizeof *costs);
    cost_of_launches(m->arena, m->plan, s, positions, &b->model, costs);
    return costs;
}

/* Returns the number of launches of a step that read whole matrices of weights. */
static size_t streams_of(const plan *p, const plan_step *s)
{
    size_t streams = 0;
    for (size_t i = 0; i < s->launch_count; i++)
        streams += cost_streams(&p->kernels[s->launches[i].kernel]);
    return streams;
}

/* A variant of a model, and how its steps are launched. */
typedef struct way {
    const char *label; /* NULL for the usual model */
    bool no_overlap, uncaptured;
} way;

static bool bench_way(bench *b, device_model *m, const plan_step *s, const way *how)
{
    plan_step launched = launched_of(m, s);
    launch_cost *costs = costs_of(b, m, s, b->positions + s->m);
    step_cost predicted = cost_of_step(&launched, costs, !how->no_overlap && overlaps(m));
    double *usual = &b->usual[s - m->plan->steps];
    row r = { .launches = launched.launch_count,
              .streams = streams_of(m->plan, &launched),
              .bytes = predicted.bytes,
              .predicted = how->uncaptured ? 0 : predicted.seconds,
              .tokens = (double)s->m };
    r.name = arena_format(m->arena, "step of %lld%s%s%s%s", (long long)s->m, how->label ? ", " : "",
                          how->label ? how->label : "", how->no_overlap ? ", no overlap" : "",
                          how->uncaptured ? ", not captured" : "");
    steps uncaptured = { s, EVERY_KERNEL, b->options->quick ? 1 : step_turns(s) };
    m->no_overlap = how->no_overlap;
    bool timed = how->uncaptured
                     ? measure(b, m, time_launches, &uncaptured, MOST_BATCHES, &r.seconds)
                     : measure_graph(b, m, s, EVERY_KERNEL, step_turns(s), &r.seconds);
    m->no_overlap = false;
    if (!timed)
        return false;
    if (!how->label && !how->no_overlap && !how->uncaptured)
        *usual = r.seconds;
    r.of_step = r.seconds / *usual;
    print_row(b, &r);
    return true;
}

static bool bench_step(bench *b, device_model *m, const plan_step *s, const char *label,
                       bool only_overlapping)
{
    const way usual = { label, false, false }, no_overlap = { label, true, false },
              uncaptured = { label, false, true };
    return bench_way(b, m, s, &usual) &&
           (only_overlapping || !overlaps(m) || bench_way(b, m, s, &no_overlap)) &&
           (label || decoder_is_prompt(s->m) || bench_way(b, m, s, &uncaptured));
}

/* Times the steps of few rows of a variant. */
static bool bench_few(bench *b, device_model *m, const char *label, bool only_overlapping)
{
    for (size_t i = 0; i < m->plan->step_count && !decoder_is_prompt(m->plan->steps[i].m); i++)
        if (!bench_step(b, m, &m->plan->steps[i], label, only_overlapping))
            return false;
    return true;
}

static size_t launches_of(const plan_step *s, size_t number)
{
    size_t launches = 0;
    for (size_t i = 0; i < s->launch_count; i++)
        launches += s->launches[i].kernel == number;
    return launches;
}

static const char *purpose_of(const plan_step *s, size_t number)
{
    size_t i = 0;
    while (s->launches[i].kernel != number)
        i++;
    return s->launches[i].said;
}

/* Times each kernel of a step. The sum is the time of the step without any effect of one launch on
 * the next. */
static bool bench_kernels(const bench *b, device_model *m, const plan_step *s)
{
    const plan *p = m->plan;
    launch_cost *costs = costs_of(b, m, s, b->positions + s->m);
    double step_seconds = b->usual[s - p->steps], all;
    row sum = { .name = "sum of the kernels" };
    print_head(b, arena_format(m->arena, "kernels of the step of %lld, ", (long long)s->m));
    for (size_t i = 0; i < p->kernel_count; i++) {
        size_t launches = launches_of(s, i);
        if (!launches)
            continue;
        size_t turns = (KERNEL_TURNS + launches - 1) / launches;
        if (!device_model_set_rows(m, s->m, b->positions) || !device_model_launch_up_to(m, s, i) ||
            !measure_graph(b, m, s, (int64_t)i, turns, &all))
            return false;
        bool in_l2 = (double)launches * costs[i].bytes < L2_TIMES * (double)m->gpu->l2_bytes;
        row r = { .name = arena_format(m->arena, "%s: %s", p->kernels[i].name, purpose_of(s, i)),
                  .launches = launches,
                  .bytes = costs[i].bytes,
                  .seconds = all / (double)launches,
                  .of_step = all / step_seconds,
                  .predicted = costs[i].seconds + costs[i].between[overlaps(m)],
                  .bound = *costs[i].bound ? costs[i].bound : "by bytes",
                  .remark = in_l2 ? "in L2" : "" };
        print_row(b, &r);
        sum.seconds += all;
        sum.launches += launches;
    }
    sum.of_step = sum.seconds / step_seconds;
    print_row(b, &sum);
    return true;
}

/* Times a prompt, with overlapping launches if `early` is set. */
static bool bench_prompt_way(const bench *b, device_model *m, const device_prompt *p, bool early)
{
    row r = { .tokens = (double)p->tokens, .remark = "" };
    r.name = arena_format(m->arena, "prompt of %lld%s", (long long)p->tokens,
                          early ? "" : ", no overlap");
    for (size_t i = 0, behind = 0; i < p->step_count; i++) {
        const plan_step *s = p->steps[i];
        behind += (size_t)s->m;
        step_cost cost = cost_of_step(s, costs_of(b, m, s, (int64_t)behind), early && overlaps(m));
        r.launches += s->launch_count;
        r.bytes += cost.bytes;
        r.predicted += cost.seconds;
    }
    r.remark = arena_format(m->arena, "%zu steps of up to %lld rows", p->step_count,
                            (long long)p->steps[0]->m);
    m->no_overlap = !early;
    bool timed = measure(b, m, time_prompt, p, PROMPT_BATCHES, &r.seconds);
    m->no_overlap = false;
    if (timed)
        print_row(b, &r);
    return timed;
}

static bool bench_prompt(bench *b, device_model *m, int64_t tokens)
{
    const plan *p = m->plan;
    device_prompt prompt = { 0 };
    if (tokens > p->decoder->max_seq_len) {
        printf("# A prompt of %lld does not fit max_seq_len = %lld.\n", (long long)tokens,
               (long long)p->decoder->max_seq_len);
        return true;
    }
    bool timed = device_prompt_make(m, tokens, &prompt);
    const char *wrong = timed ? device_prompt_judge(m, &prompt) : NULL;
    if (wrong)
        print_failure(b, wrong);
    timed = timed && gpu_wait(m->gpu) && bench_prompt_way(b, m, &prompt, true) &&
            (!overlaps(m) || bench_prompt_way(b, m, &prompt, false));
    device_prompt_free(m, &prompt);
    return timed;
}

static bool repeat_step(bench *b, device_model *m, const plan_step *s, const char *label,
                        bool *differs)
{
    repeats r;
    size_t turns = b->options->quick ? 2 : (size_t)b->options->repeat;
    if (!device_model_repeat(m, s, b->positions, turns, &r))
        return false;
    const char *name =
        arena_format(b->arena, "%s%sstep of %lld%s%s", label ? label : "", label ? ", " : "",
                     (long long)s->m, m->no_overlap_of ? ", no overlap of " : "",
                     m->no_overlap      ? ", no overlap"
                     : m->no_overlap_of ? m->no_overlap_of
                                        : "");
    if (r.differing)
        printf("# %s: %s: %zu of %zu runs differ, first in %s\n", b->name, name, r.differing,
               r.turns, r.where);
    *differs = r.differing;
    fflush(stdout);
    return true;
}

/* Returns true if an earlier kernel of the plan has the same family. */
static bool named_before(const plan *p, size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (p->kernels[i].family == p->kernels[number].family)
            return true;
    return false;
}

/* Runs steps of few rows many times, if --repeat asks for it and a token can run again. A step
 * whose results differ runs once more for each family, whose launches then do not overlap. Returns
 * false if a call failed. */
static bool repeat_steps(bench *b, device_model *m, const char *label)
{
    const plan *p = m->plan;
    bool ran = true;
    if (!b->options->repeat || !device_model_runs_again(m))
        return true;
    for (size_t i = 0; i < p->step_count && !decoder_is_prompt(p->steps[i].m) && ran; i++) {
        const plan_step *s = &p->steps[i];
        bool differs = false, differs_again;
        ran = repeat_step(b, m, s, label, &differs);
        if (!ran || !differs)
            continue;
        print_failure(b, arena_format(b->arena, "%s%srepeated runs of the step of %lld differ",
                                      label ? label : "", label ? ": " : "", (long long)s->m));
        m->no_overlap = true;
        ran = repeat_step(b, m, s, label, &differs_again);
        m->no_overlap = false;
        for (size_t k = 0; k < p->kernel_count && ran; k++) {
            m->no_overlap_of = p->kernels[k].family->name;
            if (m->overlap[k] && launches_of(s, k) && !named_before(p, k))
                ran = repeat_step(b, m, s, label, &differs_again);
        }
        m->no_overlap_of = NULL;
    }
    return ran;
}

/* Times a variant, or prints a remark if its kernels cannot be made. Returns false if a call
 * failed. */
static bool bench_variant(bench *b, device_model *usual, const variant *v)
{
    device_model m = { 0 };
    if (v->wrong) {
        printf("# %s: %s\n", v->name, cell_text(b->arena, v->wrong));
        return true;
    }
    const char *wrong = device_model_make_variant(usual, &v->set, &m)
                            ? device_model_judge_variant(&m, usual, b->positions)
                            : b->gpu.error;
    if (wrong)
        print_failure(b, arena_format(b->arena, "%s: %s", v->name, wrong));
    bool timed = gpu_wait(&b->gpu) && repeat_steps(b, &m, v->name) &&
                 (wrong || bench_few(b, &m, v->name, v->early));
    device_model_free(&m);
    return timed;
}

/* Sets the number of tokens before a step: the value of --positions, or less to leave room for all
 * repetitions, twice. Returns a message if max_seq_len is too short, else NULL. */
static const char *choose_position(bench *b, const plan *p)
{
    int64_t most = 0, room = p->decoder->max_seq_len;
    for (size_t i = 0; i < p->step_count; i++) {
        int64_t turns = b->options->quick ? 1 : (int64_t)step_turns(&p->steps[i]);
        most = turns * p->steps[i].m > most ? turns * p->steps[i].m : most;
    }
    if (room < 2 * most)
        return arena_format(b->arena, "max_seq_len = %lld is too short; at least %lld are needed",
                            (long long)room, (long long)(2 * most));
    room -= 2 * most;
    b->positions = b->options->positions < room ? b->options->positions : room;
    return NULL;
}

static bool has_all(const device_model *m)
{
    for (size_t i = 0; i < m->plan->kernel_count; i++)
        if (!device_model_has(m, i))
            return false;
    return true;
}

/* Prints the rows of a loaded model. Returns false if a call failed. */
static bool bench_rows(bench *b, device_model *m, const variants *all)
{
    const options *o = b->options;
    const plan *p = m->plan;
    const char *wrong = device_model_judge(m, b->positions);
    if (wrong)
        print_failure(b, wrong);
    bool ran = gpu_wait(&b->gpu) && repeat_steps(b, m, NULL);
    for (size_t i = 0; i < p->step_count && ran; i++)
        ran = bench_step(b, m, &p->steps[i], NULL, false);
    for (size_t i = 0; i < o->prompts.count && ran; i++)
        ran = bench_prompt(b, m, o->prompts.values[i]);
    wrong = ran && o->prompts.count ? device_model_judge(m, b->positions) : NULL;
    if (wrong)
        print_failure(b, arena_format(b->arena, "after prompts: %s", wrong));
    ran = ran && gpu_wait(&b->gpu);
    for (size_t i = 1; i < all->count && ran; i++)
        ran = bench_variant(b, m, &all->items[i]);
    m->without = o->without; /* after the variants, because it leaves a wrong state in delta nets */
    if (o->without && ran && !has_all(m))
        ran = bench_few(b, m, arena_format(b->arena, "without %s", o->without), false);
    m->without = NULL;
    for (size_t i = 0; i < p->step_count && o->kernels && ran; i++)
        ran = bench_kernels(b, m, &p->steps[i]);
    return ran;
}

/* Loads and times a model. Returns false if a call failed; the process may not be able to use the
 * GPU any more. */
static bool bench_model(bench *b, const char *path)
{
    variants all = { 0 };
    device_model m = { 0 };
    b->name = model_name(b->arena, path);
    b->judged_right = true;
    const char *wrong = make_variants(b->arena, path, b->model.target, &b->options->variants, &all);
    if (!wrong)
        wrong = choose_position(b, all.items[0].set.plan);
    if (wrong) {
        print_failure(b, wrong);
        return true;
    }
    bool ran = device_model_make(b->arena, &b->gpu, &all.items[0].set, b->model.target, &m);
    if (ran) {
        print_head(b, "");
        ran = bench_rows(b, &m, &all);
    }
    if (!ran && b->judged_right)
        print_failure(b, b->gpu.error);
    b->passed += b->judged_right;
    device_model_free(&m);
    return ran;
}

static int bench_all(bench *b)
{
    const options *o = b->options;
    if (!measure_device(&b->gpu, o->quick ? &quick_effort : &thorough_effort, &b->model))
        return FAILED;
    if (!o->from)
        print_device(&b->gpu, &b->model);
    b->all_right = !o->from;
    for (int i = (int)o->from; i < o->spec_count; i++) {
        arena_reset(b->arena);
        if (bench_model(b, o->specs[i]))
            continue;
        printf("passed %zu\n", b->passed);
        restart(o->argv, (size_t)i + 1);
    }
    printf("passed %zu\n", b->passed);
    return b->all_right ? 0 : FAILED;
}

/* Offers the kernels of all usual steps, and the kernels of the variants' steps of few rows. */
static void offer_kernels(compiling *c, const target *t, void *context)
{
    const options *o = context;
    arena *a = arena_new();
    for (int i = 0; i < o->spec_count; i++) {
        variants all = { 0 };
        arena_reset(a);
        make_variants(a, o->specs[i], t, &o->variants, &all);
        for (size_t v = 0; v < all.count; v++) {
            const kernel_set *set = &all.items[v].set;
            int64_t rows = v ? DECODER_FEW_ROWS : PROBLEM_MOST_ROWS;
            for (size_t k = 0; !all.items[v].wrong && k < set->plan->kernel_count; k++)
                if (plan_uses(set->plan, k, rows))
                    compile_kernel(c, kernel_named(set, set->plan->kernels[k].name));
        }
    }
    arena_free(a);
}

/* Parses "FAMILY=N,N". Returns false if the text is malformed. */
static bool parse_warps(arena *a, const char *text, variant_options *v)
{
    const char *equal = strchr(text, '=');
    v->family = equal ? arena_copy(a, text, (size_t)(equal - text)) : NULL;
    return equal > text && number_list_parse(equal + 1, &v->warps);
}

static bool parse(arena *a, int argc, char **argv, options *o)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--quick") == 0)
            o->quick = true;
        else if (strcmp(option, "--next") == 0)
            o->variants.next = true;
        else if (strcmp(option, "--early") == 0)
            o->variants.early = true;
        else if (strcmp(option, "--kernels") == 0)
            o->kernels = true;
        else if (++i == argc)
            return false;
        else if (strcmp(option, "--jobs") == 0)
            o->jobs = (unsigned)strtoul(argv[i], NULL, 10);
        else if (strcmp(option, "--from") == 0)
            o->from = strtoull(argv[i], NULL, 10);
        else if (strcmp(option, "--without") == 0)
            o->without = argv[i];
        else if (strcmp(option, "--prompts") == 0 && strcmp(argv[i], "none") == 0)
            o->prompts.count = 0;
        else if (!(strcmp(option, "--positions") == 0 &&
                   spec_parse_number(argv[i], &o->positions) && o->positions >= 0) &&
                 !(strcmp(option, "--repeat") == 0 && spec_parse_number(argv[i], &o->repeat)) &&
                 !(strcmp(option, "--prompts") == 0 && number_list_parse(argv[i], &o->prompts)) &&
                 !(strcmp(option, "--rows") == 0 &&
                   number_list_parse(argv[i], &o->variants.rows)) &&
                 !(strcmp(option, "--warps") == 0 && parse_warps(a, argv[i], &o->variants)))
            return false;
    }
    o->specs = argv + i;
    o->spec_count = argc - i;
    return o->spec_count > 0;
}

int main(int argc, char **argv)
{
    arena *a = arena_new();
    unsigned cores = os_cpu_count();
    options o = { .positions = USUAL_POSITIONS,
                  .prompts = { { 512, 2048 }, 2 },
                  .jobs = cores < MOST_JOBS ? cores : MOST_JOBS,
                  .argv = argv };
    int status = SKIPPED;
    if (!parse(a, argc, argv, &o)) {
        fprintf(
            stderr,
            "usage: bench_step [--quick] [--positions N] [--prompts N,N|none]\n"
            "                  [--rows N,N] [--next] [--warps FAMILY=N,N [--early]] [--repeat N]\n"
            "                  [--without FAMILY] [--kernels] [--jobs N] SPEC...\n");
        arena_free(a);
        return USAGE;
    }
    bench b = { .options = &o, .arena = arena_new() };
    if (!o.from)
        compile_in_parallel(o.jobs, offer_kernels, &o);
    if (gpu_open(a, &b.gpu)) {
        status = bench_all(&b);
        gpu_close(&b.gpu);
    } else {
        fprintf(stderr, "bench_step: %s\n", b.gpu.error);
    }
    arena_free(b.arena);
    arena_free(a);
    return status;
}
