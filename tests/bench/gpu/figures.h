/* Shared code of programs that print figures of a GPU, one per line: "name value unit". */
#ifndef PTXGEN_TESTS_FIGURES_H
#define PTXGEN_TESTS_FIGURES_H

#include "bench/gpu/device.h"

typedef struct figures {
    gpu gpu;
    bool quick;        /* fewer and smaller launches; times mean nothing */
    unsigned least_sm; /* oldest architecture that is measured, e.g. 90; an older GPU is skipped */
    size_t passed, failed;
} figures;

/* Prints a figure. */
void figure_print(figures *f, const char *name, double value, const char *unit);

/* Prints "FAILED name: reason" unless done is true. The reason is the GPU's last error. */
void figure_check(figures *f, const char *name, bool done);

/* Sets the GPU's last error to the reason. Returns false. */
bool figure_fail(figures *f, const char *reason);

/* Records a graph of launches of one kernel of the loaded module. */
bool figure_record(figures *f, const char *entry, const gpu_grid *grid, void **params,
                   unsigned launches);

/* Measures the shortest time of seven replays of the graph. Each follows a replay that is not
 * timed. */
bool figure_time(figures *f, double *seconds);

/* Opens the GPU, prints its line, calls measure and prints "passed N". Returns the exit status. */
int figures_main(figures *f, const char *program, void (*measure)(figures *f, void *context),
                 void *context);

#endif
