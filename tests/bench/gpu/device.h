/* What the benchmarks for a GPU share: the device as the cost model sees it, the kernels of a spec
 * for it, and how much work goes into a time. */
#ifndef PTXGEN_TESTS_DEVICE_H
#define PTXGEN_TESTS_DEVICE_H

#include "bench/gpu/timing.h"
#include "cost/cost.h"

extern const effort thorough_effort, quick_effort;

/* Its number of SMs, clock and copy; the newest target that it runs. False, and said on standard
 * error, where there is none or the copy fails. */
bool measure_device(gpu *g, const effort *e, cost_gpu *measured);

/* The kernels of a spec for one target. False, and said, where it has errors. */
bool make_kernels(arena *a, const char *path, const target *t, kernel_set *set);

/* Prints remarks: the device, whether it is an emulator, and the speed of its copy. c may be NULL.
 */
void print_device(const gpu *g, const cost_gpu *c);

/* Runs the program anew in place of this process, with --from N: after a kernel's wrong access
 * every call of the process fails. Returns only if that is not possible. */
void restart(char **argv, size_t from);

/* A text as it fits into a table: in one line, without the sign between columns. */
const char *cell_text(arena *a, const char *text);

#endif
