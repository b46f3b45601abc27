/* A GPU through the CUDA driver API, for tests and timing. The driver is looked up at run time, so
 * that machines without a driver can build this.
 *
 * Functions that can fail return false and set `error` to a message. */
#ifndef PTXGEN_TESTS_GPU_H
#define PTXGEN_TESTS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef uint64_t gpu_address;

typedef struct gpu {
    arena *arena;
    const struct driver_api *driver; /* entry points */
    void *launch_kernel_ex;          /* cuLaunchKernelEx, or NULL if the driver is too old */
    const char *error;
    int device;
    struct CUctx_st *context;
    struct CUstream_st *stream; /* ordered with fills and copies from the host */
    struct CUevent_st *start, *end;
    struct CUmod_st *module;
    struct CUfunc_st *function;
    struct CUgraphExec_st *graph;

    char name[256];
    int driver_version; /* 13000 for 13.0 */
    unsigned sm;        /* 90 for sm_90 */
    unsigned sm_count;
    double clock; /* Hz */
    size_t l2_bytes;
} gpu;

/* Opens the first device. The arena holds messages and must outlive g. */
bool gpu_open(arena *a, gpu *g);
void gpu_close(gpu *g);

/* Replaces the context with a new one, in which nothing is allocated or loaded. After some errors
 * every call in the old context fails. After a kernel's access fault, drivers refuse the new
 * context, too, until the process ends. */
bool gpu_renew(gpu *g);

/* Makes a gpu for another thread, which shares the context of an open one. The arena holds its
 * messages. It must not be closed. */
bool gpu_join(arena *a, const gpu *opened, gpu *g);

bool gpu_alloc(gpu *g, size_t size, gpu_address *address);
void gpu_free(gpu *g, gpu_address address);

/* Allocates host memory, and returns the address with which kernels read it. */
bool gpu_alloc_host(gpu *g, size_t size, void **host, gpu_address *address);
void gpu_free_host(gpu *g, void *host);

bool gpu_fill(gpu *g, gpu_address to, unsigned char byte, size_t size);
bool gpu_copy_in(gpu *g, gpu_address to, const void *from, size_t size);
bool gpu_copy_out(gpu *g, void *to, gpu_address from, size_t size);
bool gpu_copy(gpu *g, gpu_address to, gpu_address from, size_t size);

/* Fills memory with repeated copies of its first `stored` bytes. */
bool gpu_copy_in_repeated(gpu *g, gpu_address to, size_t size, const void *from, size_t stored);

/* Loads PTX, which ends with NUL, and unloads the previous module. On failure `error` contains the
 * JIT compiler's log. */
bool gpu_load(gpu *g, const char *text);
void gpu_unload(gpu *g);

/* Selects the kernel for gpu_launch and allows its dynamic shared memory. By default, static and
 * dynamic shared memory are limited to 48 KiB together. */
bool gpu_select(gpu *g, const char *entry, size_t dynamic_shared);

/* Returns the selected kernel's number of resident blocks per SM, or 0 on failure. */
unsigned gpu_blocks_sm(gpu *g, unsigned threads, size_t dynamic_shared);

/* A kernel that stays loaded until gpu_drop. gpu_use selects it for gpu_launch. */
typedef struct gpu_kernel {
    struct CUmod_st *module;
    struct CUfunc_st *function;
} gpu_kernel;
bool gpu_keep(gpu *g, const char *text, const char *entry, size_t dynamic_shared, gpu_kernel *kept);
void gpu_drop(gpu *g, gpu_kernel *kept);
void gpu_use(gpu *g, const gpu_kernel *kept);

typedef struct gpu_grid {
    unsigned blocks[3], threads;
    size_t dynamic_shared;
    bool early; /* may start before its predecessor ends; the kernel then waits itself */
} gpu_grid;

/* Returns true if device and driver support early launches, also in graphs. */
bool gpu_overlaps(const gpu *g);

/* Launches the selected kernel asynchronously, like gpu_copy. */
bool gpu_launch(gpu *g, const gpu_grid *grid, void **params);

/* Launches between gpu_begin_graph and gpu_end_graph do not run but become a graph, which replaces
 * the previous one. gpu_replay launches the graph with one call. */
bool gpu_begin_graph(gpu *g);
bool gpu_end_graph(gpu *g);
bool gpu_replay(gpu *g);

/* Waits for all launches. Returns false if one failed. */
bool gpu_wait(gpu *g);

/* Measure the device's time between two calls, in seconds. gpu_stop waits. */
bool gpu_start(gpu *g);
bool gpu_stop(gpu *g, double *seconds);

#endif
