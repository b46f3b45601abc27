#include "bench/gpu/figures.h"

#include <stdio.h>

enum { FAILED = 1, SKIPPED = 77, RUNS = 7 };

void figure_print(figures *f, const char *name, double value, const char *unit)
{
    printf("%s %.4g %s\n", name, value, unit);
    fflush(stdout);
    f->passed++;
}

void figure_check(figures *f, const char *name, bool done)
{
    if (done)
        return;
    printf("FAILED %s: %s\n", name, cell_text(f->gpu.arena, f->gpu.error));
    fflush(stdout);
    f->failed++;
}

bool figure_fail(figures *f, const char *reason)
{
    f->gpu.error = reason;
    return false;
}

bool figure_record(figures *f, const char *entry, const gpu_grid *grid, void **params,
                   unsigned launches)
{
    bool done = gpu_select(&f->gpu, entry, grid->dynamic_shared) && gpu_begin_graph(&f->gpu);
    for (unsigned i = 0; i < launches && done; i++)
        done = gpu_launch(&f->gpu, grid, params);
    return done && gpu_end_graph(&f->gpu);
}

bool figure_time(figures *f, double *seconds)
{
    *seconds = 1e9;
    for (int i = 0; i < (f->quick ? 1 : RUNS); i++) {
        double one;
        if (!gpu_replay(&f->gpu) || !gpu_start(&f->gpu) || !gpu_replay(&f->gpu) ||
            !gpu_stop(&f->gpu, &one))
            return false;
        *seconds = one < *seconds ? one : *seconds;
    }
    return true;
}

int figures_main(figures *f, const char *program, void (*measure)(figures *f, void *context),
                 void *context)
{
    arena *a = arena_new();
    int status = SKIPPED;
    if (gpu_open(a, &f->gpu) && f->gpu.sm < f->least_sm) {
        fprintf(stderr, "%s: %s is older than sm_%u\n", program, f->gpu.name, f->least_sm);
        gpu_close(&f->gpu);
    } else if (!f->gpu.error) {
        print_device(&f->gpu, NULL);
        measure(f, context);
        printf("passed %zu\n", f->passed);
        status = f->failed ? FAILED : 0;
        gpu_close(&f->gpu);
    } else {
        fprintf(stderr, "%s: %s\n", program, f->gpu.error);
    }
    arena_free(a);
    return status;
}
