/* Times the steps of decoders on a GPU: bench_step [--quick] [--no-overlap] [--positions N] SPEC...
 *
 * Of each spec's [decoder] every step, behind N tokens (4096, or as many as there is room for): the
 * median time of the step as a replayed graph, what it reads and writes a second beside what a copy
 * on this device does (the bound by bytes), and the time beside that of the cost model, given this
 * device's number of SMs, clock and copy; and the tokens of a second that this would be. Then the
 * same of a launch of each of its kernels: all
 * that a step has are in a graph of their own, each with the tensors of its layer.
 *
 * Launches overlap with those ahead of them where device, driver and kernels can; of such a step
 * the time is also told that it takes without. With --no-overlap none overlaps.
 *
 * Weights and caches are made up (device_model.h). Logits, token and position of a step are checked
 * in the same run. A model that fails has the error in its row, and the program runs anew from the
 * next model on (--from N).
 *
 * Exit status: 0 all right; 1 a wrong result or an error; 77 there is no GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/device.h"
#include "bench/gpu/device_model.h"
#include "cost/plan_cost.h"

enum {
    FAILED = 1,
    USAGE = 2,
    SKIPPED = 77,
    USUAL_POSITIONS = 4096,
    MOST_TURNS = 32, /* of one kernel in a graph */
    STEP_TURNS = 8,  /* of a step, which leaves the next position: there must be room for them */
    L2_TIMES = 3,
};

typedef struct bench {
    gpu gpu;
    cost_gpu model;
    const effort *effort;
    bool quick, no_overlap;
    int64_t positions;
    arena *arena; /* for one model */
    size_t from;  /* the first model; one ahead of it has failed if it is not 0 */
    char **argv;
} bench;

typedef struct times {
    double seconds, bytes, predicted; /* measured; read and written; seconds by the model */
    size_t launches;
} times;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool record(device_model *m, const plan_step *s, int64_t only, size_t turns)
{
    bool launched = gpu_begin_graph(m->gpu);
    for (size_t i = 0; i < turns && launched; i++)
        launched = device_model_launch(m, s, only);
    return launched && gpu_end_graph(m->gpu);
}

/* The device is still busy with the graph when the clock starts. Positions advance in both. */
static bool replay(device_model *m, const plan_step *s, int64_t position, double *seconds)
{
    return device_model_set_rows(m, s->m, position) && gpu_replay(m->gpu) && gpu_start(m->gpu) &&
           gpu_replay(m->gpu) && gpu_stop(m->gpu, seconds);
}

/* The median time of a step's launches of one kernel, or of all. */
static bool measure(const bench *b, device_model *m, const plan_step *s, int64_t only, size_t turns,
                    double *median)
{
    double *seconds = arena_alloc(m->arena, b->effort->batches * sizeof *seconds);
    turns = b->quick ? 1 : turns;
    if (!record(m, s, only, turns))
        return false;
    for (unsigned i = 0; i < b->effort->batches; i++)
        if (!replay(m, s, b->positions, &seconds[i]))
            return false;
    qsort(seconds, b->effort->batches, sizeof *seconds, by_size);
    *median = seconds[b->effort->batches / 2] / (double)turns;
    return true;
}

/* Of one launch, or of a whole step. */
static void print_times(const bench *b, const times *t, double of_step)
{
    bool is_long = t->seconds >= 1e-3;
    double unit = is_long ? 1e3 : 1e6, speed = t->bytes / t->seconds;
    printf(" %zu | %.1f | %.*f %s | %.0f %% | %.0f | %.0f %% | %.*f %s | %.2f |", t->launches,
           t->bytes / 1e6, is_long ? 3 : 1, t->seconds * unit, is_long ? "ms" : "us", 100 * of_step,
           speed / 1e9, 100 * speed / b->model.bandwidth, is_long ? 3 : 1, t->predicted * unit,
           is_long ? "ms" : "us", t->seconds / t->predicted);
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

/* Their sum is what the step would take if one launch cost the next nothing. */
static bool bench_kernels(const bench *b, device_model *m, const plan_step *s,
                          const launch_cost *costs, double step_seconds)
{
    const plan *p = m->plan;
    double sum = 0, all;
    for (size_t i = 0; i < p->kernel_count; i++) {
        times t = { 0, costs[i].bytes, costs[i].seconds, launches_of(s, i) };
        double launches = (double)t.launches;
        if (!t.launches)
            continue;
        size_t turns = (MOST_TURNS + t.launches - 1) / t.launches;
        if (!measure(b, m, s, (int64_t)i, turns, &all))
            return false;
        t.seconds = all / launches;
        sum += all;
        printf("| %s: %s |", p->kernels[i].name, cell_text(m->arena, purpose_of(s, i)));
        print_times(b, &t, all / step_seconds);
        printf(" %s | %s |\n", *costs[i].bound ? costs[i].bound : "by bytes",
               launches * t.bytes < L2_TIMES * (double)m->gpu->l2_bytes ? "in L2" : "");
        fflush(stdout);
    }
    printf("| sum of the kernels | | | %.3f ms | %.0f %% | | | | | | |\n", sum * 1e3,
           100 * sum / step_seconds);
    fflush(stdout);
    return true;
}

static bool overlaps(const bench *b, const device_model *m)
{
    bool any = false;
    for (size_t i = 0; i < m->plan->kernel_count; i++)
        any = any || m->overlap[i];
    return any && !b->no_overlap;
}

/* Of a step, of which the other times are known: its row of the table. */
static bool bench_whole(const bench *b, device_model *m, const plan_step *s, times *t,
                        bool no_overlap, bool no_next)
{
    m->no_overlap = no_overlap;
    m->no_next = no_next;
    bool ran = measure(b, m, s, EVERY_KERNEL, STEP_TURNS, &t->seconds);
    m->no_overlap = b->no_overlap;
    m->no_next = false;
    if (!ran)
        return false;
    bool usual = no_overlap == b->no_overlap && !no_next;
    printf(usual ? "| **step of %lld** |" : "| step of %lld%s%s |", (long long)s->m,
           no_overlap ? ", no overlap" : "",
           no_next ? ", nothing fetched for the next launch" : "");
    print_times(b, t, 1);
    printf(" | %.0f tokens/s |\n", (double)s->m / t->seconds);
    fflush(stdout);
    return true;
}

/* Of kernels that fetch nothing for the next one. */
static launch_cost *costs_without_next(const bench *b, device_model *m, const plan_step *s)
{
    plan p = *m->plan;
    p.kernels = arena_alloc(m->arena, p.kernel_count * sizeof *p.kernels);
    for (size_t i = 0; i < p.kernel_count; i++) {
        p.kernels[i] = m->plan->kernels[i];
        p.kernels[i].next = 0;
    }
    launch_cost *costs = arena_zalloc(m->arena, p.kernel_count * sizeof *costs);
    cost_of_launches(m->arena, &p, s, b->positions + s->m, &b->model, costs);
    return costs;
}

static bool bench_step(const bench *b, device_model *m, const plan_step *s)
{
    const plan *p = m->plan;
    times t = { .launches = s->launch_count };
    launch_cost *costs = arena_zalloc(m->arena, p->kernel_count * sizeof *costs);
    cost_of_launches(m->arena, p, s, b->positions + s->m, &b->model, costs);
    bool overlapped = overlaps(b, m);
    step_cost predicted = cost_of_step(s, costs, overlapped);
    t.bytes = predicted.bytes;
    t.predicted = predicted.seconds;
    times late = t, alone = t, late_alone = t;
    late.predicted = cost_of_step(s, costs, false).seconds;
    launch_cost *of_alone = costs_without_next(b, m, s);
    alone.predicted = cost_of_step(s, of_alone, overlapped).seconds;
    late_alone.predicted = cost_of_step(s, of_alone, false).seconds;
    return bench_whole(b, m, s, &t, b->no_overlap, false) &&
           bench_whole(b, m, s, &alone, b->no_overlap, true) &&
           (!overlapped || (bench_whole(b, m, s, &late, true, false) &&
                            bench_whole(b, m, s, &late_alone, true, true))) &&
           bench_kernels(b, m, s, costs, t.seconds);
}

/* As far behind as asked for, with room for what is fed twice. */
static bool choose_position(bench *b, const plan *p, int64_t wanted)
{
    int64_t turns = b->quick ? 1 : STEP_TURNS;
    int64_t room = p->decoder->max_seq_len - 2 * turns * p->rows;
    b->positions = wanted < room ? wanted : room;
    return b->positions >= 0;
}

/* "llama_3.1_8b" of "models/llama_3.1_8b.ini". */
static const char *model_name(arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = arena_strdup(a, slash ? slash + 1 : path), *end = strrchr(name, '.');
    if (end)
        *end = '\0';
    return name;
}

static const char *bench_model(bench *b, const char *path, int64_t wanted)
{
    kernel_set set;
    device_model m = { 0 };
    if (!make_kernels(b->arena, path, b->model.target, &set))
        return "its spec has errors";
    if (!set.plan)
        return "its spec has no [decoder]";
    if (!choose_position(b, set.plan, wanted))
        return "its caches are too short";
    bool ran = device_model_make(b->arena, &b->gpu, &set, b->model.target, &m);
    m.no_overlap = b->no_overlap;
    const char *wrong = ran ? device_model_judge(&m, b->positions) : b->gpu.error;
    if (!wrong) {
        printf(
            "\n%s, behind %lld tokens:\n\n"
            "| step or kernel | launches | MB | time | GB/s | of copy | model | of model | bound "
            "| |\n|---|---|---|---|---|---|---|---|---|---|\n",
            model_name(b->arena, path), (long long)b->positions);
        for (size_t i = 0; i < set.plan->step_count && ran; i++)
            ran = bench_step(b, &m, &set.plan->steps[i]);
        wrong = ran ? NULL : b->gpu.error;
    }
    device_model_free(&m);
    return wrong;
}

static int bench_all(bench *b, char **specs, int count, int64_t positions)
{
    if (!measure_device(&b->gpu, b->effort, &b->model))
        return FAILED;
    if (!b->from) {
        print_device(&b->gpu, &b->model);
        printf("Steps of models, whose weights are made up. In L2: less than three times the L2, "
               "which "
               "has some or all of what is read.\n");
        fflush(stdout);
    }
    bool all_right = !b->from;
    for (int i = (int)b->from; i < count; i++) {
        arena_reset(b->arena);
        const char *wrong = bench_model(b, specs[i], positions);
        if (!wrong)
            continue;
        printf("\n%s FAILED: %s\n", specs[i], wrong);
        restart(b->argv, (size_t)i + 1);
        all_right = false;
    }
    return all_right ? 0 : FAILED;
}

int main(int argc, char **argv)
{
    arena *a = arena_new();
    bench b = { .effort = &thorough_effort, .arena = arena_new(), .argv = argv };
    int64_t positions = USUAL_POSITIONS;
    int i = 1, status = SKIPPED;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            b.quick = true;
        else if (strcmp(argv[i], "--no-overlap") == 0)
            b.no_overlap = true;
        else if (strcmp(argv[i], "--positions") == 0 && i + 1 < argc)
            positions = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
            b.from = strtoull(argv[++i], NULL, 10);
        else
            break;
    }
    if (i >= argc || strncmp(argv[i], "--", 2) == 0) {
        fprintf(stderr, "usage: bench_step [--quick] [--no-overlap] [--positions N] SPEC...\n");
        return USAGE;
    }
    if (b.quick)
        b.effort = &quick_effort;
    if (gpu_open(a, &b.gpu)) {
        status = bench_all(&b, argv + i, argc - i, positions);
        gpu_close(&b.gpu);
    } else {
        fprintf(stderr, "bench_step: %s\n", b.gpu.error);
    }
    arena_free(b.arena);
    arena_free(a);
    return status;
}
