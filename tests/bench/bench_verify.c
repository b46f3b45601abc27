/* Times --verify: each GEMV on one full-size matrix on one core, and 200 instances on two threads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/os_process.h"
#include "check/verify_set.h"
#include "kernel/generate.h"
#include "check/verify.h"
#include "input/spec.h"

enum { INSTANCES = 200, JOBS = 2 };

static void stop(arena *a, const diags *d)
{
    strbuf message = strbuf_new(a);
    diags_render(d, &message, false);
    fputs(message.text, stderr);
    exit(1);
}

static kernel_set generate(arena *a, const char *text)
{
    spec s;
    kernel_set set = { 0 };
    diags d = diags_new(a);
    if (!spec_parse(a, "bench.ini", text, strlen(text), families, NULL, NULL, &s, &d) ||
        !generate_kernels(a, &s, &set, &d))
        stop(a, &d);
    return set;
}

/* Returns a spec with a section for every family that multiplies a matrix by vectors. */
static const char *full_size_spec(arena *a)
{
    strbuf text = strbuf_new(a);
    for (const family *const *f = families; *f; f++)
        if (family_key(*f, "k") && family_key(*f, "n") && !(*f)->launch.dynamic_shared)
            strbuf_format(&text, "[%s]\nk = 4096\nn = 14336\n%s", (*f)->name,
                          family_key(*f, "m") ? "m = 2\n" : "");
    return text.text;
}

static void time_each(arena *a)
{
    kernel_set set = generate(a, full_size_spec(a));
    double slowest = 0, total = 0;
    const char *name = "none";
    for (size_t i = 0; i < set.kernel_count; i++) {
        clock_t start = clock();
        verify_result r = verify_kernel(a, &set.kernels[i], 1, NULL, false, NULL);
        double time = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (!r.right) {
            fprintf(stderr, "%s\n", r.message);
            exit(1);
        }
        total += time;
        if (time > slowest) {
            slowest = time;
            name = set.kernels[i].instance->name;
        }
    }
    printf("one      %.3f s on one core on average, %.3f s at most (%s), %zu kernels of 4096 x "
           "14336\n",
           total / (double)set.kernel_count, slowest, name, set.kernel_count);
}

static void time_many(arena *a)
{
    kernel_set set = generate(a, "[mwv_q4k_gemv]\nk = 2k..16k:2k\nn = 1024, 4096, 14336, 32768, "
                                 "128256\nnum_warps = 1, 2, 3, 4, 8\n");
    kernel_list edited = { 0 };
    verification v;
    diags d = diags_new(a);
    uint64_t start = os_nanoseconds();
    if (set.kernel_count != INSTANCES || !verify_set(a, &set, &edited, 1, JOBS, NULL, &v, &d))
        stop(a, &d);
    printf("many     %.1f s for %zu kernels on %d threads\n",
           (double)(os_nanoseconds() - start) * 1e-9, v.checked, JOBS);
}

int main(void)
{
    arena *a = arena_new();
    time_each(a);
    time_many(a);
    arena_free(a);
    return 0;
}
