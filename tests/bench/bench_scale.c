/* Measures a spec of 5,000 kernels: time and memory to generate them, and to compile their header
 * with each value of --embed.
 *
 *   bench_scale PTXGEN
 *
 * Prints the elapsed time, the processor time and the peak resident size of each program it runs.
 */
#define _DEFAULT_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "base/os_process.h"
#include "base/strbuf.h"

enum { INSTANCES = 5000, FAMILIES = 5, MEGABYTE_IN_KILOBYTES = 1024 };

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* Runs a program and prints its times and peak memory. Returns false if it failed. */
static bool measure(const char *label, const char *const *argv)
{
    fflush(stdout);
    uint64_t start = os_nanoseconds();
    pid_t child = fork();
    if (child == 0) {
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0) {
        printf("%-28s failed\n", label);
        return false;
    }
    printf("%-28s %7.2f s, %6.2f s of CPU time, %5ld MB\n", label,
           (double)(os_nanoseconds() - start) * 1e-9,
           seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss / MEGABYTE_IN_KILOBYTES);
    return true;
}

static const char *large_spec(arena *a)
{
    static const char *const families[FAMILIES] = { "f32_gemv", "q4k_gemv", "mwv_q4k_gemv",
                                                    "mwv_dp4a_q4k_gemv", "mwv_q6k_gemv" };
    strbuf text = strbuf_new(a);
    strbuf_put(&text, "[ptxgen]\nprefix = large\ntargets = sm_80\n");
    for (int i = 0; i < FAMILIES; i++)
        strbuf_format(&text, "[%s]\nk = 256..%d:256\nn = 512\n", families[i],
                      INSTANCES / FAMILIES * 256);
    return text.text;
}

static bool write_text(arena *a, const char *path, const char *text)
{
    const char *error;
    if (os_write_file(a, path, text, strlen(text), &error))
        return true;
    fprintf(stderr, "bench_scale: %s: %s\n", path, error);
    return false;
}

/* Returns true if the compiler supports #embed. */
static bool has_embed(arena *a, const char *compiler, const char *folder)
{
    const char *probe = arena_format(a, "%s/probe.c", folder), *error;
    char *output;
    int status;
    return write_text(a, probe, "#ifndef __has_embed\n#error\n#endif\n") &&
           os_run(a, (const char *const[]){ compiler, "-std=c2x", "-fsyntax-only", probe, NULL },
                  &output, &status, &error) &&
           status == 0;
}

static bool compile(arena *a, const char *compiler, const char *way, const char *folder)
{
    const char *path = os_find_program(a, compiler);
    if (!path || (strcmp(way, "c23") == 0 && !has_embed(a, path, folder)))
        return true;
    const char *source = arena_format(a, "%s/user.c", folder);
    const char *object = arena_format(a, "%s/user.o", folder);
    const char *include = arena_format(a, "-I%s/%s", folder, way);
    return write_text(a, source,
                      "#define LARGE_KERNELS_IMPLEMENTATION\n#include \"large_kernels.h\"\n") &&
           measure(arena_format(a, "%s -O2, embed = %s", compiler, way),
                   (const char *const[]){ path, "-std=c2x", "-O2", include, "-c", source, "-o",
                                          object, NULL });
}

int main(int argc, char **argv)
{
    static const char *const ways[] = { "string", "incbin", "c23" };
    static const char *const compilers[] = { "gcc", "clang", "gcc-15", "clang-19" };
    if (argc != 2) {
        fprintf(stderr, "usage: bench_scale PTXGEN\n");
        return 2;
    }
    arena *a = arena_new();
    const char *folder, *error;
    if (!os_temporary_directory(a, &folder, &error)) {
        fprintf(stderr, "bench_scale: %s\n", error);
        return 3;
    }
    const char *spec = arena_format(a, "%s/large.ini", folder);
    bool ok = write_text(a, spec, large_spec(a));
    printf("%d kernels of %d families\n", INSTANCES, FAMILIES);
    for (size_t w = 0; ok && w < sizeof ways / sizeof *ways; w++) {
        const char *out = arena_format(a, "%s/%s", folder, ways[w]);
        const char *const generate[] = { argv[1], "-q",      "--spec", spec, "--out",
                                         out,     "--embed", ways[w],  NULL };
        ok = measure(arena_format(a, "generate, embed = %s", ways[w]), generate);
        if (ok && w == 0)
            ok = measure("again, nothing changed", generate);
        for (size_t c = 0; ok && c < sizeof compilers / sizeof *compilers; c++)
            ok = compile(a, compilers[c], ways[w], folder);
        os_remove_directory(a, out);
    }
    os_remove_directory(a, folder);
    arena_free(a);
    return !ok;
}
