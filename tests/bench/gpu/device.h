/* Shared code of the GPU benchmarks: the device as the cost model sees it, the kernels of a spec,
 * and the effort of a measurement. */
#ifndef PTXGEN_TESTS_DEVICE_H
#define PTXGEN_TESTS_DEVICE_H

#include "bench/gpu/timing.h"
#include "cost/cost.h"

extern const effort thorough_effort, brief_effort, quick_effort;

/* Describes the device to the cost model: the newest target that it runs, its number of SMs, its
 * clock, and the bandwidth of reads, derived from a measured copy. Returns false, with a message on
 * stderr, if no target runs on the device or the copy fails. */
bool measure_device(gpu *g, const effort *e, cost_gpu *measured);

/* Returns the bytes per second that a copy on the device reads and writes. */
double device_copy(const cost_gpu *measured);

struct spec;

/* Reads a spec for a list of targets, "sm_80,sm_90", or for the spec's targets if it is NULL.
 * generate_set generates its kernels. Both return false, with a message on stderr, if the spec has
 * errors. */
bool read_spec(arena *a, const char *path, const char *for_targets, struct spec *s);
bool generate_set(arena *a, const struct spec *s, kernel_set *set);

/* Returns the contents of a file in the program's folder, or NULL, with a message in g->error. */
const char *read_beside(gpu *g, const char *name);

/* Prints comment lines: the device, a note if it is an emulator, and the speed of its copy unless c
 * is NULL. */
void print_device(const gpu *g, const cost_gpu *c);

/* Compiles kernels in several processes, so that the driver has them in its cache on disk and loads
 * them in milliseconds. Must be called before gpu_open: a process that has opened the GPU cannot
 * fork others that use it. Does nothing if jobs < 2. Errors are not reported; the next load of the
 * kernel reports them.
 *
 * offer calls compile_kernel for each kernel, in the same order in each process. */
typedef struct compiling compiling;
typedef void compile_offer(compiling *c, const target *t, void *context);
void compile_in_parallel(unsigned jobs, compile_offer *offer, void *context);
void compile_kernel(compiling *c, const kernel *k);

/* Replaces this process by a new run of the program with --from N. This is needed after a kernel's
 * invalid access, which makes every later call of the process fail. Returns only if exec fails. */
void restart(char **argv, size_t from);

/* Returns a text for a table cell: newlines become spaces, and '|' becomes '/'. */
const char *cell_text(arena *a, const char *text);

/* Returns "llama_3.1_8b" for "models/llama_3.1_8b.ini". */
const char *model_name(arena *a, const char *path);

#endif
