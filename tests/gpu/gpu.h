/* A GPU through the CUDA driver API, as far as tests and timing need it. The API is found at run
 * time: a machine without a driver builds all the same.
 *
 * Functions that can fail return false and keep a sentence in error.
 */
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
    void *launch_kernel_ex;          /* an entry point; NULL: the driver is too old for it */
    const char *error;
    int device;
    struct CUctx_st *context;
    struct CUstream_st *stream; /* waits for fills and copies from the host, and they for it */
    struct CUevent_st *start, *end;
    struct CUmod_st *module;
    struct CUfunc_st *function;
    struct CUgraphExec_st *graph;

    char name[256];
    int driver_version; /* 13000 is 13.0 */
    unsigned sm;        /* 90 for sm_90 */
    unsigned sm_count;
    double clock; /* Hz */
    size_t l2_bytes;
} gpu;

/* The first device. The arena holds messages, and must outlive it. */
bool gpu_open(arena *a, gpu *g);
void gpu_close(gpu *g);

/* Makes a new context, in which nothing is allocated or loaded. After some errors every call in the
 * old one fails; after a kernel's wrong access drivers refuse the new one, too, for as long as the
 * process runs. */
bool gpu_renew(gpu *g);

/* Makes a GPU for another thread, with the context of one that is open for as long. The arena holds
 * its messages. It is not closed. */
bool gpu_join(arena *a, const gpu *opened, gpu *g);

bool gpu_alloc(gpu *g, size_t size, gpu_address *address);
void gpu_free(gpu *g, gpu_address address);
bool gpu_fill(gpu *g, gpu_address to, unsigned char byte, size_t size);
bool gpu_copy_in(gpu *g, gpu_address to, const void *from, size_t size);
bool gpu_copy_out(gpu *g, void *to, gpu_address from, size_t size);
bool gpu_copy(gpu *g, gpu_address to, gpu_address from, size_t size);

/* Fills memory with what there is of its content, again and again. */
bool gpu_copy_in_repeated(gpu *g, gpu_address to, size_t size, const void *from, size_t stored);

/* PTX, which ends with NUL, in place of what was loaded; an error has the JIT compiler's log. */
bool gpu_load(gpu *g, const char *text);
void gpu_unload(gpu *g);

/* The kernel that gpu_launch launches from then on, allowed as much dynamic shared memory: unasked,
 * static and dynamic shared memory may have 48 KiB together. */
bool gpu_select(gpu *g, const char *entry, size_t dynamic_shared);

/* Returns how many blocks of the selected kernel an SM has room for; 0 if the driver cannot say. */
unsigned gpu_blocks_sm(gpu *g, unsigned threads, size_t dynamic_shared);

/* A kernel that stays loaded beside others, until gpu_drop. After gpu_use it is what gpu_launch
 * launches. */
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
    bool early; /* may start before the launch ahead has finished, for which it waits itself */
} gpu_grid;

/* Whether the device and its driver have such launches, in graphs as well. */
bool gpu_overlaps(const gpu *g);

/* Asynchronous, as the copies of gpu_copy. */
bool gpu_launch(gpu *g, const gpu_grid *grid, void **params);

/* Launches between the two do not run but become a graph, in place of an earlier one; gpu_replay
 * launches all of it at once, without the host's time for each. */
bool gpu_begin_graph(gpu *g);
bool gpu_end_graph(gpu *g);
bool gpu_replay(gpu *g);

/* For all that was launched, and whether it failed. */
bool gpu_wait(gpu *g);

/* The time on the device between the two, in seconds. gpu_stop waits. */
bool gpu_start(gpu *g);
bool gpu_stop(gpu *g, double *seconds);

#endif
