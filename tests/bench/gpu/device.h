/* What the benchmarks for a GPU share: the device as the cost model sees it, the kernels of a spec
 * for it, and how much work goes into a time. */
#ifndef PTXGEN_TESTS_DEVICE_H
#define PTXGEN_TESTS_DEVICE_H

#include "bench/gpu/timing.h"
#include "cost/cost.h"

extern const effort thorough_effort, brief_effort, quick_effort;

/* Its number of SMs and clock, what reads reach, by its copy; the newest target that it runs.
 * False, and said on standard error, where there is none or the copy fails. */
bool measure_device(gpu *g, const effort *e, cost_gpu *measured);

/* Returns the bytes that a copy on it reads and writes in a second. */
double device_copy(const cost_gpu *measured);

struct spec;

/* Reads a spec for some targets, "sm_80,sm_90", or for its own (NULL), and makes its kernels.
 * Return false, and print why on standard error, if it has errors. */
bool read_spec(arena *a, const char *path, const char *for_targets, struct spec *s);
bool generate_set(arena *a, const struct spec *s, kernel_set *set);

/* Returns the file of that name in the program's folder; NULL, with a message in g->error, if it
 * cannot be read. */
const char *read_beside(gpu *g, const char *name);

/* Prints remarks: the device, whether it is an emulator, and the speed of its copy. c may be NULL.
 */
void print_device(const gpu *g, const cost_gpu *c);

/* Compiles kernels in several processes, so that the driver has them in its cache on disk and loads
 * them in milliseconds. Call it before gpu_open: a process that has opened the GPU cannot fork
 * others that use it. Does nothing if jobs is below 2. Reports no errors: the next load of the
 * kernel does.
 *
 * offer calls compile_kernel for each kernel, in the same order in each process. */
typedef struct compiling compiling;
typedef void compile_offer(compiling *c, const target *t, void *context);
void compile_in_parallel(unsigned jobs, compile_offer *offer, void *context);
void compile_kernel(compiling *c, const kernel *k);

/* Runs the program anew in place of this process, with --from N: after a kernel's wrong access
 * every call of the process fails. Returns only if that is not possible. */
void restart(char **argv, size_t from);

/* A text as it fits into a table: in one line, without the sign between columns. */
const char *cell_text(arena *a, const char *text);

/* Returns "llama_3.1_8b" for "models/llama_3.1_8b.ini". */
const char *model_name(arena *a, const char *path);

#endif
