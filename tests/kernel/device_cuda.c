/* A GPU as a device of the tests; a machine without one skips these tests. */
#include "gpu/gpu.h"
#include "kernel/device.h"

#include <string.h>

enum { UNWRITTEN = 0xff };

typedef struct cuda_state {
    gpu gpu;
    arena *arena;       /* of what is loaded */
    const char *loaded; /* the PTX; NULL: nothing is */
    bool failed;        /* a call since the last reset */
    arena *launch;      /* of the allocations */
    VEC(gpu_address) allocations;
} cuda_state;

static bool report(cuda_state *c, bool done, const char **error)
{
    if (!done)
        *error = c->gpu.error;
    c->failed |= !done;
    return done;
}

static bool alloc(void *state, size_t size, uint64_t *address, const char **error)
{
    cuda_state *c = state;
    if (!report(c, gpu_alloc(&c->gpu, size, address), error))
        return false;
    *VEC_PUSH(c->launch, &c->allocations) = *address;
    return report(c, gpu_fill(&c->gpu, *address, UNWRITTEN, size), error);
}

static bool copy_in(void *state, const void *bytes, size_t size, bool read_only, uint64_t *address,
                    const char **error)
{
    cuda_state *c = state;
    (void)read_only;
    return alloc(state, size, address, error) &&
           report(c, gpu_copy_in(&c->gpu, *address, bytes, size), error);
}

static bool copy_out(void *state, uint64_t address, void *bytes, size_t blocks, size_t block_bytes,
                     uint8_t *written, const char **error)
{
    cuda_state *c = state;
    if (!report(c, gpu_copy_out(&c->gpu, bytes, address, blocks * block_bytes), error))
        return false;
    const uint8_t *block = bytes;
    for (size_t i = 0; i < blocks; i++, block += block_bytes) {
        written[i] = 0;
        for (size_t j = 0; j < block_bytes; j++)
            written[i] |= block[j] != UNWRITTEN;
    }
    return true;
}

/* Trials of one kernel follow each other, and a driver takes long to compile it: what is loaded
 * stays until something else is. */
static bool load(void *state, const char *ptx, size_t length, const char **error)
{
    cuda_state *c = state;
    if (c->loaded && strlen(c->loaded) == length && memcmp(c->loaded, ptx, length) == 0)
        return true;
    arena_reset(c->arena);
    const char *text = arena_copy(c->arena, ptx, length);
    c->loaded = gpu_load(&c->gpu, text) ? text : NULL;
    return report(c, c->loaded != NULL, error);
}

static bool launch(void *state, const device_launch *l, const char **error)
{
    cuda_state *c = state;
    gpu_grid grid = { .blocks = { l->grid[0], l->grid[1], l->grid[2] },
                      .threads = l->block,
                      .dynamic_shared = l->dynamic_shared };
    void *params[16];
    memcpy(params, l->params, l->param_count * sizeof *params);
    return report(c,
                  gpu_select(&c->gpu, l->entry, l->dynamic_shared) &&
                      gpu_launch(&c->gpu, &grid, params) && gpu_wait(&c->gpu),
                  error);
}

static void reset(void *state)
{
    cuda_state *c = state;
    for (size_t i = 0; i < c->allocations.count; i++)
        gpu_free(&c->gpu, c->allocations.items[i]);
    memset(&c->allocations, 0, sizeof c->allocations);
    arena_reset(c->launch);
    if (c->failed) {
        c->loaded = NULL;
        c->failed = !gpu_renew(&c->gpu);
    }
}

static void close_gpu(void *state)
{
    cuda_state *c = state;
    reset(c);
    gpu_close(&c->gpu);
    arena_free(c->arena);
    arena_free(c->launch);
}

bool device_open_cuda(arena *a, device *d, const char **why)
{
    cuda_state *c = arena_zalloc(a, sizeof *c);
    if (!gpu_open(a, &c->gpu)) {
        *why = c->gpu.error;
        return false;
    }
    c->arena = arena_new();
    c->launch = arena_new();
    *d = (device){
        .name = "GPU",
        .state = c,
        .sm = c->gpu.sm,
        .sm_count = c->gpu.sm_count,
        .alloc = alloc,
        .copy_in = copy_in,
        .copy_out = copy_out,
        .load = load,
        .launch = launch,
        .reset = reset,
        .close = close_gpu,
    };
    return true;
}
