/* Times kernels on a GPU: bench_gpu [OPTION]... SPEC [FAMILY]... Prints only the GPU's name:
 * bench_gpu --device
 *
 *   --brief         fewer and shorter batches: a kernel takes a tenth of a second
 *   --in-l2         one copy of the buffers, so that a small matrix is read from the L2 cache
 *   --rows N        rows of x for kernels with any number of rows (256)
 *   --target NAME   kernels for this target instead of the device's newest: sm_90 on an H100
 *   --jobs N        processes that compile kernels beforehand (one per core, at most 16)
 *   --peers FOLDER  PTX that nvcc compiled from peers/; a peer's row follows its kernel's row
 *   --quick         one launch of each kernel; of large kernels only the smallest of each family
 *
 * Times every kernel of the spec, or of some families, for this GPU. Prints the median time of a
 * launch with its inputs outside the L2, and its GB/s compared with a copy on this device. Compares
 * the time with the cost model's prediction for this device's SMs, clock and copy. Products on
 * tensor cores have TFLOPS, too. Outputs are checked in the same run.
 *
 * Prints a table of plain numbers, each row as soon as it is known. A kernel that fails has FAILED
 * in its row and a line "FAILED NAME: reason". After a failed call the program restarts with the
 * next kernel (--from N). A line "passed N" counts the kernels with right results.
 *
 * Exit status: 0 success; 1 a wrong result or an error; 77 there is no GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_process.h"
#include "bench/gpu/device.h"
#include "bench/gpu/timing.h"
#include "model/plan_cost.h"
#include "input/spec.h"
#include "input/values.h"

enum { FAILED = 1, USAGE = 2, SKIPPED = 77, MOST_JOBS = 16 };

static bool is_selected(const char *name, char **selected, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(selected[i], name) == 0)
            return true;
    return count == 0;
}

static bool runs_on(const kernel *k, const target *t)
{
    return k->target == t || k->newest == t;
}

static void print_head(const gpu *g, const cost_gpu *c, const kernel_set *set, const char *path)
{
    const char *slash = strrchr(path, '/');
    print_device(g, c);
    printf("# in L2: all copies of the buffers together are less than three times the L2, so "
           "some or all reads hit it.\n");
    for (size_t i = 0; i < set->kernel_count; i++)
        if (set->kernels[i].instance->excluded & target_bit(c->target))
            printf("# %s needs another target than %s\n", set->kernels[i].instance->name,
                   c->target->name);
    printf("\nKernels of %s:\n\n"
           "| kernel | rows | blocks | blocks/SM | MB | us | GB/s | of copy %% "
           "| bytes/clock/SM | TFLOPS | model us | of model | bound | error | remark |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
           slash ? slash + 1 : path);
    fflush(stdout);
}

/* Returns the operations of a product on tensor cores, or 0 for kernels that are bound by bytes. */
static double flops_of(const instance *in, int64_t rows)
{
    bool gated = instance_is_gated(in);
    if (!in->family->halves || operation_is_of_experts(in->family->op) ||
        (in->family->op != OP_GEMV && !gated))
        return 0;
    return (gated ? 4.0 : 2.0) * (double)(rows * in->shape.k * in->shape.n);
}

static void print_row(arena *a, const kernel *k, const char *by, const timing *t, const cost_gpu *c,
                      bool right)
{
    cost_work work = cost_work_of_rows(a, k->instance, t->rows);
    cost_figures f;
    double speed = work.bytes / t->seconds, flops = flops_of(k->instance, t->rows);
    printf("| %s%s | %lld | %u | %u | %.1f | %.2f | %.1f | %.1f |", by, k->instance->name,
           (long long)(t->rows ? t->rows : 1), t->blocks, t->blocks_sm, work.bytes / 1e6,
           t->seconds * 1e6, speed / 1e9, 100 * speed / device_copy(c));
    printf(" %.2f |", speed / c->clock / c->sm_count);
    if (flops > 0)
        printf(" %.1f", flops / t->seconds / 1e12);
    printf(" |");
    if (cost_find(k->instance, c->target, &f)) {
        cost_prediction p = cost_predict(&f, k->instance, &work, c);
        double predicted = p.total + cost_launch_gap(k->instance, false);
        printf(" %.2f | %.2f | %s |", predicted * 1e6, t->seconds / predicted,
               cost_bound_names[p.bound]);
    } else {
        printf(" | | |");
    }
    printf(" %.2f | %s |\n", t->wrong.worst, !right ? "FAILED" : t->in_l2 ? "in L2" : "");
    fflush(stdout);
}

static void print_failure(arena *a, const kernel *k, const char *by, const char *reason)
{
    printf("FAILED %s%s: %s\n", by, k->instance->name, cell_text(a, reason));
    fflush(stdout);
}

/* Returns the reason why a result is wrong, or NULL if it is right. */
static const char *mismatch_of(arena *a, const timing *t)
{
    const judgement *j = &t->wrong;
    if (!t->written)
        return "not every element of the outputs was written";
    if (j->worst <= 1)
        return NULL;
    return arena_format(a, "%s%s[%llu]: got %g, expected %g: %.3g times the allowed error",
                        j->field, j->output, (unsigned long long)j->element, j->got, j->expected,
                        j->worst);
}

typedef struct options {
    bool quick, brief, in_l2, device; /* device: print only its name */
    int64_t rows;                     /* for kernels with any number of rows */
    unsigned jobs;
    const target *target;     /* NULL: the device's newest target */
    const char *peers, *spec; /* peers: their folder, or NULL */
    char **families;          /* the families to time; empty: all families */
    int family_count;
    size_t from; /* index of the first kernel; if not 0, an earlier kernel has failed */
    char **argv;
} options;

typedef struct gpu_run {
    gpu gpu;
    cost_gpu model;
    const effort *effort;
    const char *peers; /* NULL: there are no peers, or the device cannot load them */
    arena *scratch;
    int64_t rows; /* for kernels with any number of rows */
    size_t passed;
    bool all_right;
    bool failed; /* a call failed; the process may not be able to use the GPU any more */
} gpu_run;

/* Times a kernel, or its peer, and prints its row. Returns false if the device cannot load the PTX.
 */
static bool bench(gpu_run *s, const kernel *k, const peer *by)
{
    timing t = { .rows = s->rows };
    const char *prefix = by ? "nvcc: " : "", *wrong;
    if (time_kernel(s->scratch, &s->gpu, k, by, s->effort, &t)) {
        wrong = mismatch_of(s->scratch, &t);
        print_row(s->scratch, k, prefix, &t, &s->model, !wrong);
    } else {
        wrong = s->gpu.error;
        fprintf(stderr, "bench_gpu: %s%s: %s\n", prefix, k->instance->name, wrong);
        printf("| %s%s | | | | | | | | | | | | | | FAILED |\n", prefix, k->instance->name);
        s->failed = t.loaded; /* a failed load leaves the context usable */
    }
    if (wrong)
        print_failure(s->scratch, k, prefix, wrong);
    s->passed += !wrong;
    s->all_right &= !wrong;
    return t.loaded;
}

/* Times the peer of a kernel. All peers come from one nvcc, so a driver too old for one is too old
 * for all of them. */
static void bench_peer(gpu_run *s, const kernel *k)
{
    const peer *found = peer_of(k->instance);
    if (!found)
        return;
    peer by = *found;
    const char *path = arena_format(s->scratch, "%s/%s.ptx", s->peers, by.entry), *error;
    char *text;
    size_t size;
    if (os_read_file(s->scratch, path, &text, &size, &error)) {
        by.ptx = text;
        if (bench(s, k, &by))
            return;
    } else {
        printf("FAILED %s: %s\n", path, error);
        s->all_right = false;
    }
    fprintf(stderr, "bench_gpu: the remaining peers are skipped\n");
    s->peers = NULL;
}

/* Returns false if one of the given families has no kernel, so that a misspelt name is an error. */
static bool has_families(const kernel_set *set, const options *o)
{
    for (int f = 0; f < o->family_count; f++) {
        size_t i = 0;
        while (i < set->kernel_count &&
               strcmp(set->kernels[i].instance->family->name, o->families[f]) != 0)
            i++;
        if (i == set->kernel_count) {
            fprintf(stderr, "bench_gpu: %s has no kernel of a family '%s'\n", o->spec,
                    o->families[f]);
            return false;
        }
    }
    return true;
}

/* Returns the number of weights or cache elements that a kernel multiplies, times its rows. */
static double products_of(arena *a, const options *o, const kernel *k)
{
    const instance *in = k->instance;
    int64_t rows = in->rows_mode == ROWS_RUN_TIME ? o->rows : in->shape.m;
    return cost_work_of_rows(a, in, rows).units * (double)(rows ? rows : 1);
}

/* Returns a flag for each kernel of the set: true for kernels of the target and of the given
 * families. With --quick, kernels of more than `many` products are too slow for an emulator. Of
 * these only the smallest of a family is timed, and none with more than `most` products. */
static bool *timed_kernels(arena *a, const options *o, const target *t, const kernel_set *set)
{
    const double many = 1e7, most = 1e8;
    size_t count = set->kernel_count;
    bool *timed = arena_zalloc(a, count * sizeof *timed);
    double *work = arena_zalloc(a, count * sizeof *work);
    for (size_t i = 0; i < count; i++) {
        const kernel *k = &set->kernels[i];
        timed[i] =
            runs_on(k, t) && is_selected(k->instance->family->name, o->families, o->family_count);
        work[i] = o->quick ? products_of(a, o, k) : 0;
    }
    for (size_t i = 0; i < count && o->quick; i++)
        for (size_t j = 0; j < count && timed[i] && work[i] > many; j++)
            if (runs_on(&set->kernels[j], t) &&
                set->kernels[j].instance->family == set->kernels[i].instance->family &&
                (work[i] > most || work[j] < work[i] || (work[j] == work[i] && j < i)))
                timed[i] = false;
    return timed;
}

/* Generates the kernels for the target of --target, or for the device's newest target. Kernels that
 * need another target are generated for sm_90a, which has most features, and are not timed. */
static bool make_timed(arena *a, const options *o, const target *newest, kernel_set *set,
                       bool **timed)
{
    const target *t = o->target ? o->target : newest, *rich = target_find("sm_90a");
    const char *both = t == rich ? t->name : arena_format(a, "%s,%s", t->name, rich->name);
    spec s;
    if (!read_spec(a, o->spec, both, &s) || !generate_set(a, &s, set))
        return false;
    *timed = timed_kernels(a, o, t, set);
    return true;
}

static void offer_kernels(compiling *c, const target *t, void *context)
{
    arena *a = arena_new();
    kernel_set set;
    bool *timed;
    if (make_timed(a, context, t, &set, &timed))
        for (size_t i = 0; i < set.kernel_count; i++)
            if (timed[i])
                compile_kernel(c, &set.kernels[i]);
    arena_free(a);
}

static int bench_all(arena *a, gpu_run *s, const options *o)
{
    kernel_set set;
    bool *timed;
    if (!measure_device(&s->gpu, s->effort, &s->model) ||
        !make_timed(a, o, s->model.target, &set, &timed) || !has_families(&set, o))
        return FAILED;
    if (o->target && o->target->sm > s->gpu.sm) {
        fprintf(stderr, "bench_gpu: %s is newer than the device, sm_%u\n", o->target->name,
                s->gpu.sm);
        return FAILED;
    }
    if (o->target) {
        cost_gpu of_target = cost_gpu_of(o->target);
        s->model.target = o->target;
        s->model.wgmma_fmas = of_target.wgmma_fmas;
    }
    if (!o->from)
        print_head(&s->gpu, &s->model, &set, o->spec);
    s->all_right = !o->from;
    for (size_t i = o->from; i < set.kernel_count; i++) {
        const kernel *k = &set.kernels[i];
        if (!timed[i])
            continue;
        arena_reset(s->scratch);
        bench(s, k, NULL);
        if (s->peers && !s->failed)
            bench_peer(s, k);
        if (s->failed) {
            printf("passed %zu\n", s->passed);
            restart(o->argv, i + 1);
        }
    }
    printf("\npassed %zu\n", s->passed);
    return s->all_right ? 0 : FAILED;
}

static bool parse(int argc, char **argv, options *o)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0)
            o->quick = true;
        else if (strcmp(argv[i], "--brief") == 0)
            o->brief = true;
        else if (strcmp(argv[i], "--in-l2") == 0)
            o->in_l2 = true;
        else if (strcmp(argv[i], "--device") == 0)
            o->device = true;
        else if (strcmp(argv[i], "--peers") == 0 && has_value)
            o->peers = argv[++i];
        else if (strcmp(argv[i], "--rows") == 0 && has_value &&
                 spec_parse_number(argv[i + 1], &o->rows) && o->rows > 0)
            i++;
        else if (strcmp(argv[i], "--jobs") == 0 && has_value)
            o->jobs = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--target") == 0 && has_value && target_find(argv[i + 1]))
            o->target = target_find(argv[++i]);
        else if (strcmp(argv[i], "--from") == 0 && has_value)
            o->from = strtoull(argv[++i], NULL, 10);
        else
            return false;
    }
    if (!o->jobs)
        o->jobs = o->quick ? 1 : os_cpu_count();
    if (o->jobs > MOST_JOBS)
        o->jobs = MOST_JOBS;
    if (!o->rows)
        o->rows = o->quick ? 64 : 256;
    if (i == argc)
        return o->device;
    o->spec = argv[i];
    o->families = argv + i + 1;
    o->family_count = argc - i - 1;
    return !o->device;
}

int main(int argc, char **argv)
{
    options o = { .argv = argv };
    if (!parse(argc, argv, &o)) {
        fprintf(stderr,
                "usage: bench_gpu [--brief] [--in-l2] [--rows N] [--target NAME] [--peers FOLDER]\n"
                "                 [--jobs N] [--quick] SPEC [FAMILY]...\n"
                "       bench_gpu --device\n");
        return USAGE;
    }
    arena *a = arena_new();
    effort e = o.quick ? quick_effort : o.brief ? brief_effort : thorough_effort;
    if (o.in_l2)
        e.most_copies = 1;
    gpu_run s = { .effort = &e, .peers = o.peers, .rows = o.rows, .scratch = arena_new() };
    int status = SKIPPED;
    if (!o.device && !o.from)
        compile_in_parallel(o.jobs, offer_kernels, &o);
    if (gpu_open(a, &s.gpu)) {
        status = o.device ? puts(s.gpu.name) < 0 : bench_all(a, &s, &o);
        gpu_close(&s.gpu);
    } else {
        fprintf(stderr, "bench_gpu: %s\n", s.gpu.error);
    }
    arena_free(s.scratch);
    arena_free(a);
    return status;
}
