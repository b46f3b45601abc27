/* Times kernels on a GPU: bench_gpu [--quick] [--peers FOLDER] SPEC [FAMILY]... or, to print the
 * GPU's name alone, bench_gpu --device
 *
 * Every kernel of the spec, or those of some families, for the GPU that is there: the median time
 * of a launch with its inputs outside the L2, what it reads and writes a second beside what a copy
 * on this device does, and the time beside that of the cost model, given this device's number of
 * SMs, clock and copy; of products on tensor cores, with 256 rows, also the operations a second.
 * Outputs are checked in the same run. FOLDER has what nvcc makes of the
 * kernels of peers/; each then has a row behind those that it is a peer of. A kernel that fails has
 * the error in its row, and the program runs anew from the next kernel on (--from N). Each row is
 * written out when it is known.
 *
 * Exit status: 0 all right; 1 a wrong result or an error; 77 there is no GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "bench/gpu/device.h"
#include "bench/gpu/timing.h"

enum { FAILED = 1, USAGE = 2, SKIPPED = 77 };

static bool is_asked_for(const char *name, char **asked, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(asked[i], name) == 0)
            return true;
    return count == 0;
}

static void print_head(const gpu *g, const cost_gpu *c)
{
    print_device(g, c);
    printf("in L2: all copies of the buffers together are less than three times the L2, which has "
           "some or all of what is read.\n");
    printf("\n| kernel | MB | us | GB/s | of copy | model us | of model | bound | error | |\n"
           "|---|---|---|---|---|---|---|---|---|---|\n");
    fflush(stdout);
}

/* Of products of prompts what counts is not the bytes. */
static bool has_flops(const instance *in)
{
    return in->family->halves && in->family->op == OP_GEMV;
}

static void print_row(arena *a, const kernel *k, const char *by, const timing *t, const cost_gpu *c,
                      bool right)
{
    cost_work work = cost_work_of_rows(a, k->instance, t->rows);
    cost_figures f;
    double speed = work.bytes / t->seconds;
    printf("| %s%s | %.1f | %.1f | %.0f | %.0f %% |", by, k->instance->name, work.bytes / 1e6,
           t->seconds * 1e6, speed / 1e9, 100 * speed / c->bandwidth);
    if (cost_find(k->instance, c->target, &f)) {
        cost_prediction p = cost_predict(&f, k->instance, &work, c);
        printf(" %.1f | %.2f | %s |", p.total * 1e6, t->seconds / p.total,
               cost_bound_names[p.bound]);
    } else {
        printf(" | | |");
    }
    const char *remark = !t->written ? "NOT WRITTEN" : !right ? "WRONG" : t->in_l2 ? "in L2" : "";
    printf(" %.2f | %s", t->worst, remark);
    if (right && has_flops(k->instance))
        printf("%s%.0f TFLOPS", *remark ? ", " : "",
               2 * (double)(t->rows * k->instance->shape.k * k->instance->shape.n) / t->seconds /
                   1e12);
    printf(" |\n");
    fflush(stdout);
}

static void print_failure(arena *a, const kernel *k, const char *by, const char *error)
{
    printf("| %s%s | | | | | | | | | FAILED: %s |\n", by, k->instance->name, cell_text(a, error));
    fflush(stdout);
}

typedef struct options {
    bool quick, device;       /* device: only its name */
    const char *peers, *spec; /* peers: their folder; NULL: none */
    char **families;          /* asked for; all where there are none */
    int family_count;
    size_t from; /* the first kernel; one ahead of it has failed if it is not 0 */
    char **argv;
} options;

typedef struct gpu_run {
    gpu gpu;
    cost_gpu model;
    const effort *effort;
    const char *peers; /* NULL: none, or the device does not take them */
    arena *scratch;
    bool all_right;
    bool failed; /* a call: the process may be of no more use */
} gpu_run;

/* False where the device does not take the PTX. */
static bool bench(gpu_run *s, const kernel *k, const peer *by)
{
    timing t = { 0 };
    const char *prefix = by ? "nvcc: " : "";
    bool right = false;
    if (time_kernel(s->scratch, &s->gpu, k, by, s->effort, &t)) {
        right = t.written && t.worst <= 1;
        print_row(s->scratch, k, prefix, &t, &s->model, right);
    } else {
        fprintf(stderr, "bench_gpu: %s%s: %s\n", prefix, k->instance->name, s->gpu.error);
        print_failure(s->scratch, k, prefix, s->gpu.error);
        s->failed = t.loaded; /* what a driver does not take leaves it as it was */
    }
    s->all_right &= right;
    return t.loaded;
}

/* All peers come from one nvcc: a driver that is too old for one is so for the others. */
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
        fprintf(stderr, "bench_gpu: %s: %s\n", path, error);
        s->all_right = false;
    }
    fprintf(stderr, "bench_gpu: the other kernels of nvcc are left out\n");
    s->peers = NULL;
}

/* Whether each family that is asked for has a kernel: a misspelt one would pass for tested. */
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

static int bench_all(arena *a, gpu_run *s, const options *o)
{
    kernel_set set;
    if (!measure_device(&s->gpu, s->effort, &s->model) ||
        !make_kernels(a, o->spec, s->model.target, &set) || !has_families(&set, o))
        return FAILED;
    if (!o->from)
        print_head(&s->gpu, &s->model);
    s->all_right = !o->from;
    for (size_t i = o->from; i < set.kernel_count; i++) {
        const kernel *k = &set.kernels[i];
        if (!is_asked_for(k->instance->family->name, o->families, o->family_count))
            continue;
        arena_reset(s->scratch);
        bench(s, k, NULL);
        if (s->peers && !s->failed)
            bench_peer(s, k);
        if (s->failed)
            restart(o->argv, i + 1);
    }
    return s->all_right ? 0 : FAILED;
}

static bool parse(int argc, char **argv, options *o)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            o->quick = true;
        else if (strcmp(argv[i], "--device") == 0)
            o->device = true;
        else if (strcmp(argv[i], "--peers") == 0 && i + 1 < argc)
            o->peers = argv[++i];
        else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
            o->from = strtoull(argv[++i], NULL, 10);
        else
            return false;
    }
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
        fprintf(stderr, "usage: bench_gpu [--quick] [--peers FOLDER] SPEC [FAMILY]...\n"
                        "       bench_gpu --device\n");
        return USAGE;
    }
    arena *a = arena_new();
    gpu_run s = { .effort = &thorough_effort, .peers = o.peers, .scratch = arena_new() };
    int status = SKIPPED;
    if (o.quick)
        s.effort = &quick_effort;
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
