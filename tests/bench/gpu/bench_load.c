/* Times the loading of a spec's kernels: bench_load [--quick] [--threads N] SPEC...
 *
 * Loads the module and the function of each kernel that a header of the spec loads on this device:
 * the kernels for the newest target that the device runs. Each figure is measured in its own
 * process, which opens the device before the clock starts. A spec has four figures, in seconds:
 *
 *     load_MODEL_1thread_cold 3.512 s      the driver compiles all kernels
 *     load_MODEL_1thread_cached 0.332 s    the driver has them in its cache on disk
 *     load_MODEL_8threads_cold 0.912 s     several threads load, in one context
 *     load_MODEL_8threads_cached 0.101 s
 *
 * The cache is a new, empty folder for each number of threads, removed afterwards. A header's own
 * functions load one kernel after the other. --quick loads only the first kernels.
 *
 * Exit status: 0 success; 1 an error, in a line "FAILED FIGURE: text"; 77 there is no GPU. */
#define _XOPEN_SOURCE 700

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_process.h"
#include "bench/gpu/device.h"
#include "kernel/generate.h"

enum { FAILED = 1, USAGE = 2, SKIPPED = 77, USUAL_THREADS = 8, QUICK_KERNELS = 8 };

typedef struct options {
    bool quick;
    unsigned threads;
    const char
        *figure; /* the figure that this process measures; "": print the device; NULL: start other
                    processes */
    char **specs;
    int spec_count;
} options;

typedef struct loading {
    const gpu *gpu;
    const kernel **kernels;
    size_t count;
    arena **arenas;      /* memory of each kernel's messages */
    const char **errors; /* an error message for each kernel, or NULL */
} loading;

static void load_one(void *context, size_t i)
{
    loading *l = context;
    gpu g;
    gpu_kernel kept;
    l->arenas[i] = arena_new();
    if (!gpu_join(l->arenas[i], l->gpu, &g) ||
        !gpu_keep(&g, l->kernels[i]->ptx, l->kernels[i]->instance->name, 0, &kept))
        l->errors[i] = g.error;
}

/* Returns the device's bit in the result of kernel_gpus. */
static target_set device_bit(const gpu *g)
{
    target_set bit = 0;
    for (size_t i = 0; i < target_count; i++)
        if (targets[i].sm <= g->sm && !targets[i].specific)
            bit = target_bit(&targets[i]);
    return bit;
}

static int measure(arena *a, const options *o)
{
    gpu g;
    spec s;
    kernel_set set;
    if (!gpu_open(a, &g)) {
        printf("%s\n", g.error);
        return SKIPPED;
    }
    if (!*o->figure) {
        print_device(&g, NULL);
        return 0;
    }
    if (!read_spec(a, o->specs[0], NULL, &s) || !generate_set(a, &s, &set))
        return FAILED;
    loading l = { .gpu = &g,
                  .kernels = arena_alloc(a, set.kernel_count * sizeof *l.kernels),
                  .arenas = arena_zalloc(a, set.kernel_count * sizeof *l.arenas),
                  .errors = arena_zalloc(a, set.kernel_count * sizeof *l.errors) };
    for (size_t i = 0; i < set.kernel_count && !(o->quick && l.count == QUICK_KERNELS); i++)
        if (kernel_gpus(&set, &set.kernels[i]) & device_bit(&g))
            l.kernels[l.count++] = &set.kernels[i];

    uint64_t start = os_nanoseconds();
    os_parallel(o->threads, l.count, load_one, &l);
    double seconds = (double)(os_nanoseconds() - start) / 1e9;

    int status = l.count ? 0 : FAILED;
    if (status)
        printf("the spec has no kernel for this device\n");
    for (size_t i = 0; i < l.count; i++) {
        if (l.errors[i] && !status)
            status = printf("%s: %s\n", l.kernels[i]->instance->name, l.errors[i]) > 0 ? FAILED : 0;
        arena_free(l.arenas[i]);
    }
    if (!status)
        printf("%s %.4f s\n", o->figure, seconds);
    gpu_close(&g);
    return status;
}

/* Runs this program for one figure, or for the line of the device (""). Returns its exit status. */
static int start(arena *a, const options *o, const char *path, unsigned threads, const char *figure)
{
    const char *number = arena_format(a, "%u", threads), *error;
    const char *argv[] = { "/proc/self/exe",
                           "--threads",
                           number,
                           "--figure",
                           figure,
                           o->quick ? "--quick" : path,
                           o->quick ? path : NULL,
                           NULL };
    char *output;
    int status = FAILED;
    bool ran = os_run(a, argv, &output, &status, &error);
    if (status == 0)
        fputs(output, stdout);
    else if (status == SKIPPED)
        fprintf(stderr, "bench_load: %s", output);
    else
        printf("FAILED %s: %s\n", figure, cell_text(a, ran ? output : error));
    fflush(stdout);
    return status;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

/* Measures a spec twice: with an empty cache, then with the cache that the first run filled. */
static int measure_both(arena *a, const options *o, const char *path, unsigned threads,
                        unsigned *passed)
{
    enum { DESCRIPTORS = 16 };
    char *folder = arena_format(a, "%s/bench_load_XXXXXX", os_scratch_parent());
    int status = 0;
    if (!mkdtemp(folder) || setenv("CUDA_CACHE_PATH", folder, 1) < 0) {
        perror(folder);
        return FAILED;
    }
    for (int cached = 0; cached < 2 && status == 0; cached++) {
        status = start(a, o, path, threads,
                       arena_format(a, "load_%s_%uthread%s_%s", model_name(a, path), threads,
                                    threads == 1 ? "" : "s", cached ? "cached" : "cold"));
        *passed += status == 0;
    }
    nftw(folder, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    return status;
}

static int measure_all(arena *a, const options *o)
{
    unsigned passed = 0;
    int worst = start(a, o, o->specs[0], 1, "");
    unsetenv("CUDA_CACHE_DISABLE");
    for (int i = 0; i < o->spec_count && worst != SKIPPED; i++) {
        if (measure_both(a, o, o->specs[i], 1, &passed) ||
            (o->threads > 1 && measure_both(a, o, o->specs[i], o->threads, &passed)))
            worst = FAILED;
    }
    if (worst != SKIPPED)
        printf("passed %u\n", passed);
    return worst;
}

static bool parse(int argc, char **argv, options *o)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            o->quick = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            o->threads = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--figure") == 0 && i + 1 < argc)
            o->figure = argv[++i];
        else
            return false;
    }
    o->specs = argv + i;
    o->spec_count = argc - i;
    return o->threads > 0 && i < argc;
}

int main(int argc, char **argv)
{
    options o = { .threads = USUAL_THREADS };
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: bench_load [--quick] [--threads N] SPEC...\n");
        return USAGE;
    }
    arena *a = arena_new();
    int status = o.figure ? measure(a, &o) : measure_all(a, &o);
    arena_free(a);
    return status;
}
