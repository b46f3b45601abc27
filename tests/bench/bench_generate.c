/* Times generation:
 * - the kernels of a model, in memory
 * - a large spec, to disk
 * - the same spec again, with nothing changed
 * - nvcc on a kernel of similar size, if nvcc is installed
 *
 *   bench_generate KERNELS_INI NAIVE_GEMV_CU
 *
 * Figures are medians of several runs, except the first run to disk and the file system's time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_process.h"
#include "emit/emit.h"
#include "kernel/generate.h"
#include "input/spec.h"

enum { RUNS = 51, LARGE_INSTANCES = 1000 };

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double median(double *times, size_t count)
{
    qsort(times, count, sizeof *times, ascending);
    return times[count / 2];
}

static double seconds_since(uint64_t start)
{
    return (double)(os_nanoseconds() - start) * 1e-9;
}

static void parse_or_exit(arena *a, const char *name, const char *text, spec *out)
{
    diags d = diags_new(a);
    if (spec_parse(a, name, text, strlen(text), families_and_pipelines(a), NULL, NULL, out, &d))
        return;
    strbuf message = strbuf_new(a);
    diags_render(&d, &message, false);
    fputs(message.text, stderr);
    exit(1);
}

/* Returns the seconds to build, verify and print one kernel: the average over all instances and
 * targets of a spec. */
static double time_in_memory(const spec *s, size_t *kernels)
{
    double times[RUNS];
    *kernels = s->instance_count * s->target_count;
    arena *results = arena_new(), *scratch = arena_new();
    /* The first run is not counted: memory that is fresh from the system is slow. */
    for (int run = -1; run < RUNS; run++) {
        arena_reset(results);
        uint64_t start = os_nanoseconds();
        for (size_t i = 0; i < s->instance_count; i++)
            for (size_t t = 0; t < s->target_count; t++) {
                kernel k;
                const char *error;
                if (!generate_ptx(results, scratch, &s->instances[i], s->targets[t], &k, &error)) {
                    fprintf(stderr, "%s: %s\n", s->instances[i].name, error);
                    exit(1);
                }
            }
        if (run >= 0)
            times[run] = seconds_since(start) / (double)*kernels;
    }
    arena_free(results);
    arena_free(scratch);
    return median(times, RUNS);
}

/* Returns the seconds from a spec's text to files in a folder. Sets *changed to the number of files
 * written. */
static double time_to_disk(const char *text, const char *folder, size_t *changed)
{
    arena *a = arena_new();
    uint64_t start = os_nanoseconds();
    spec s;
    parse_or_exit(a, "large.ini", text, &s);
    diags d = diags_new(a);
    kernel_set set;
    output_files files = { 0 };
    bool right = generate_kernels(a, &s, &set, &d);
    if (right) {
        described_set described = describe_set(a, &set);
        emit_files(a, &described, folder, &files);
        right = emit_tree(a, files.items, files.count, &d);
        *changed = 0;
        for (size_t i = 0; i < files.count; i++)
            *changed += files.items[i].changed;
    }
    double time = seconds_since(start);
    if (!right) {
        strbuf message = strbuf_new(a);
        diags_render(&d, &message, false);
        fputs(message.text, stderr);
        exit(1);
    }
    arena_free(a);
    return time;
}

/* Returns the seconds that the file system needs to create `count` files of a kernel's size. */
static double time_plain_files(arena *a, const char *folder, size_t count)
{
    static char bytes[10000];
    uint64_t start = os_nanoseconds();
    for (size_t i = 0; i < count; i++) {
        FILE *file = fopen(arena_format(a, "%s/plain_%zu", folder, i), "wb");
        if (!file || fwrite(bytes, 1, sizeof bytes, file) != sizeof bytes || fclose(file) != 0) {
            fprintf(stderr, "bench_generate: cannot write into %s\n", folder);
            exit(3);
        }
    }
    return seconds_since(start);
}

/* Returns a spec of LARGE_INSTANCES shapes, spread over four GEMV families. */
static const char *large_spec(arena *a)
{
    return arena_format(a,
                        "[ptxgen]\ntargets = sm_80\n"
                        "[f32_gemv]\nk = 256..%d:256\nn = 512\n"
                        "[q4k_gemv]\nk = 256..%d:256\nn = 512\n"
                        "[mwv_q4k_gemv]\nk = 256..%d:256\nn = 512\n"
                        "[mwv_dp4a_q4k_gemv]\nk = 256..%d:256\nn = 512\n",
                        LARGE_INSTANCES / 4 * 256, LARGE_INSTANCES / 4 * 256,
                        LARGE_INSTANCES / 4 * 256, LARGE_INSTANCES / 4 * 256);
}

/* Returns the seconds of one `nvcc -ptx` run, or 0 if nvcc is missing or fails. */
static double time_nvcc(arena *a, const char *source, const char *folder)
{
    enum { NVCC_RUNS = 3 };
    const char *nvcc = os_find_program(a, "nvcc");
    if (!nvcc)
        nvcc = os_find_program(a, "/usr/local/cuda/bin/nvcc");
    if (!nvcc)
        return 0;
    const char *made = arena_format(a, "%s/naive_gemv.ptx", folder);
    const char *argv[] = { nvcc, "-ptx", "-arch=sm_80", source, "-o", made, NULL };
    double times[NVCC_RUNS];
    for (int run = 0; run < NVCC_RUNS; run++) {
        char *output;
        const char *error;
        int status;
        uint64_t start = os_nanoseconds();
        if (!os_run(a, argv, &output, &status, &error) || status != 0)
            return 0;
        times[run] = seconds_since(start);
    }
    return median(times, NVCC_RUNS);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_generate KERNELS_INI NAIVE_GEMV_CU\n");
        return 2;
    }
    arena *a = arena_new();
    char *text;
    size_t size;
    const char *error, *folder;
    if (!os_read_file(a, argv[1], &text, &size, &error) ||
        !os_temporary_directory(a, &folder, &error)) {
        fprintf(stderr, "bench_generate: %s\n", error);
        return 3;
    }
    spec starter;
    parse_or_exit(a, argv[1], text, &starter);
    size_t kernels, changed;
    double in_memory = time_in_memory(&starter, &kernels);
    printf("in memory    %8.1f us per kernel (build, verify, print; %zu kernels)\n",
           in_memory * 1e6, kernels);

    const char *large = large_spec(a);
    double first = time_to_disk(large, folder, &changed);
    printf("to disk      %8.3f s for %d instances (%zu files written)\n", first, LARGE_INSTANCES,
           changed);
    double plain = time_plain_files(a, folder, changed);
    printf("             %8.3f s for the same number of plain files; generation takes %.1f x\n",
           plain, first / plain);
    double again[RUNS];
    for (int run = 0; run < RUNS; run++)
        again[run] = time_to_disk(large, folder, &changed);
    printf("again        %8.3f s with nothing changed (%zu files written)\n", median(again, RUNS),
           changed);

    double nvcc = time_nvcc(a, argv[2], folder);
    if (nvcc > 0)
        printf("nvcc -ptx    %8.3f s for one kernel, %.0f x the time of ours\n", nvcc,
               nvcc / in_memory);
    else
        printf("nvcc -ptx    not found\n");
    os_remove_directory(a, folder);
    arena_free(a);
    return 0;
}
