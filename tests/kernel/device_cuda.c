/* The GPU as a device of the tests. Without a GPU these tests are skipped. */
#include <string.h>

#include "gpu/gpu.h"
#include "kernel/suite.h"

enum { UNWRITTEN = 0xff };

typedef struct cuda_state {
    gpu gpu;
    arena *arena;       /* owns `loaded` */
    const char *loaded; /* PTX of the loaded module, or NULL */
    bool failed;        /* a call has failed since the last reset */
    arena *launch;      /* owns `allocations` */
    VEC(gpu_address) allocations;
} cuda_state;

static bool report(device *d, bool done)
{
    cuda_state *c = d->state;
    if (!done)
        d->error = c->gpu.error;
    c->failed |= !done;
    return done;
}

static bool alloc(device *d, uint64_t size, bool sparse, uint64_t *address)
{
    cuda_state *c = d->state;
    (void)sparse;
    if (!report(d, gpu_alloc(&c->gpu, size, address)))
        return false;
    *VEC_PUSH(c->launch, &c->allocations) = *address;
    return report(d, gpu_fill(&c->gpu, *address, UNWRITTEN, size));
}

static bool put(device *d, uint64_t address, const void *bytes, uint64_t size)
{
    cuda_state *c = d->state;
    return !bytes || report(d, gpu_copy_in(&c->gpu, address, bytes, size));
}

static bool map(device *d, const device_buffer *content, bool read_only, uint64_t *address)
{
    cuda_state *c = d->state;
    (void)read_only;
    if (!alloc(d, content->readable, false, address))
        return false;
    if (content->stored == content->size)
        return put(d, *address, content->bytes, content->readable);
    return report(d, gpu_copy_in_repeated(&c->gpu, *address, content->readable, content->bytes,
                                          content->stored));
}

static bool read(device *d, uint64_t address, void *bytes, uint64_t count, size_t block_bytes,
                 uint8_t *written)
{
    cuda_state *c = d->state;
    if (!report(d, gpu_copy_out(&c->gpu, bytes, address, count * block_bytes)))
        return false;
    const uint8_t *block = bytes;
    for (uint64_t i = 0; written && i < count; i++, block += block_bytes) {
        written[i] = 0;
        for (size_t j = 0; j < block_bytes; j++)
            written[i] |= block[j] != UNWRITTEN;
    }
    return true;
}

/* Loads a module and keeps it loaded until another replaces it. Consecutive trials of a kernel thus
 * compile it only once. */
static const void *load(device *d, const char *text, size_t length)
{
    cuda_state *c = d->state;
    if (c->loaded && strlen(c->loaded) == length && memcmp(c->loaded, text, length) == 0)
        return c->loaded;
    arena_reset(c->arena);
    const char *copy = arena_copy(c->arena, text, length);
    c->loaded = gpu_load(&c->gpu, copy) ? copy : NULL;
    report(d, c->loaded != NULL);
    return c->loaded;
}

static bool launch_grid(device *d, const device_launch *l)
{
    cuda_state *c = d->state;
    gpu_grid grid = { .blocks = { l->grid[0], l->grid[1], l->grid[2] },
                      .threads = l->block,
                      .dynamic_shared = l->dynamic_shared };
    void *params[MAX_PARAMS];
    memcpy(params, l->params, l->param_count * sizeof *params);
    return report(d, gpu_select(&c->gpu, l->entry, l->dynamic_shared) &&
                         gpu_launch(&c->gpu, &grid, params) && gpu_wait(&c->gpu));
}

static void reset(device *d)
{
    cuda_state *c = d->state;
    for (size_t i = 0; i < c->allocations.count; i++)
        gpu_free(&c->gpu, c->allocations.items[i]);
    memset(&c->allocations, 0, sizeof c->allocations);
    arena_reset(c->launch);
    if (c->failed) {
        c->loaded = NULL;
        c->failed = !gpu_renew(&c->gpu);
    }
}

static void close_gpu(device *d)
{
    cuda_state *c = d->state;
    reset(d);
    gpu_close(&c->gpu);
    arena_free(c->arena);
    arena_free(c->launch);
}

bool suite_gpu(arena *a, device *d)
{
    cuda_state *c = arena_zalloc(a, sizeof *c);
    *d = (device){ .name = "GPU", .arena = a };
    if (!gpu_open(a, &c->gpu)) {
        d->error = c->gpu.error;
        return false;
    }
    c->arena = arena_new();
    c->launch = arena_new();
    *d = (device){
        .name = "GPU",
        .arena = a,
        .state = c,
        .sm = c->gpu.sm,
        .sm_count = c->gpu.sm_count,
        .alloc = alloc,
        .map = map,
        .put = put,
        .read = read,
        .load = load,
        .launch = launch_grid,
        .reset = reset,
        .close = close_gpu,
    };
    return true;
}
