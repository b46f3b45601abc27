/* A GPU through the CUDA driver API, as far as timing needs it. The API is found at run time and
 * declared here: no CUDA header, and a machine without a driver builds all the same.
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
typedef struct gpu_entries gpu_entries;

typedef struct gpu {
    arena *arena;
    const gpu_entries *entries;
    const char *error;
    int device;
    void *start, *end; /* events */
    void *module, *function;

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

bool gpu_alloc(gpu *g, size_t size, gpu_address *address);
void gpu_free(gpu *g, gpu_address address);
bool gpu_fill(gpu *g, gpu_address to, unsigned char byte, size_t size);
bool gpu_copy_in(gpu *g, gpu_address to, const void *from, size_t size);
bool gpu_copy_out(gpu *g, void *to, gpu_address from, size_t size);
bool gpu_copy(gpu *g, gpu_address to, gpu_address from, size_t size);

/* The kernel that gpu_launch launches from then on. text ends with NUL. */
bool gpu_load(gpu *g, const char *text, const char *entry, size_t dynamic_shared);
void gpu_unload(gpu *g);

/* Asynchronous, as the copies of gpu_copy. */
typedef struct gpu_grid {
    unsigned blocks[3], threads;
    size_t dynamic_shared;
} gpu_grid;
bool gpu_launch(gpu *g, const gpu_grid *grid, void **params);

/* The time on the device between the two, in seconds. gpu_stop waits. */
bool gpu_start(gpu *g);
bool gpu_stop(gpu *g, double *seconds);

#endif
