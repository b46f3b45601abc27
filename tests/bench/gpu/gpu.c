#include "bench/gpu/gpu.h"

#include <string.h>

#include "base/os.h"

typedef int cu_result; /* 0: success */
typedef void *cu_handle;

enum {
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_FUNC_MAX_DYNAMIC_SHARED = 8,
    CU_ATTRIBUTE_CLOCK_RATE = 13, /* kHz */
    CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    DEFAULT_SHARED = 48 * 1024,
    LOG_BYTES = 8192,
};

struct gpu_entries {
    cu_result (*init)(unsigned);
    cu_result (*driver_version)(int *);
    cu_result (*device_get)(int *, int);
    cu_result (*device_name)(char *, int, int);
    cu_result (*device_attribute)(int *, int, int);
    cu_result (*context_retain)(cu_handle *, int);
    cu_result (*context_release)(int);
    cu_result (*context_set)(cu_handle);
    cu_result (*alloc)(gpu_address *, size_t);
    cu_result (*free)(gpu_address);
    cu_result (*set)(gpu_address, unsigned char, size_t);
    cu_result (*to_device)(gpu_address, const void *, size_t);
    cu_result (*to_host)(void *, gpu_address, size_t);
    cu_result (*copy)(gpu_address, gpu_address, size_t, cu_handle);
    cu_result (*load)(cu_handle *, const void *, unsigned, int *, void **);
    cu_result (*unload)(cu_handle);
    cu_result (*function)(cu_handle *, cu_handle, const char *);
    cu_result (*function_set)(cu_handle, int, int);
    cu_result (*launch)(cu_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, cu_handle, void **, void **);
    cu_result (*event_create)(cu_handle *, unsigned);
    cu_result (*event_destroy)(cu_handle);
    cu_result (*event_record)(cu_handle, cu_handle);
    cu_result (*event_wait)(cu_handle);
    cu_result (*event_elapsed)(float *, cu_handle, cu_handle); /* milliseconds */
    cu_result (*error_string)(cu_result, const char **);
};

static const char *find_entries(void *library, gpu_entries *e)
{
    const struct {
        const char *name;
        void *entry;
    } entries[] = {
        { "cuInit", &e->init },
        { "cuDriverGetVersion", &e->driver_version },
        { "cuDeviceGet", &e->device_get },
        { "cuDeviceGetName", &e->device_name },
        { "cuDeviceGetAttribute", &e->device_attribute },
        { "cuDevicePrimaryCtxRetain", &e->context_retain },
        { "cuDevicePrimaryCtxRelease_v2", &e->context_release },
        { "cuCtxSetCurrent", &e->context_set },
        { "cuMemAlloc_v2", &e->alloc },
        { "cuMemFree_v2", &e->free },
        { "cuMemsetD8_v2", &e->set },
        { "cuMemcpyHtoD_v2", &e->to_device },
        { "cuMemcpyDtoH_v2", &e->to_host },
        { "cuMemcpyDtoDAsync_v2", &e->copy },
        { "cuModuleLoadDataEx", &e->load },
        { "cuModuleUnload", &e->unload },
        { "cuModuleGetFunction", &e->function },
        { "cuFuncSetAttribute", &e->function_set },
        { "cuLaunchKernel", &e->launch },
        { "cuEventCreate", &e->event_create },
        { "cuEventDestroy_v2", &e->event_destroy },
        { "cuEventRecord", &e->event_record },
        { "cuEventSynchronize", &e->event_wait },
        { "cuEventElapsedTime", &e->event_elapsed },
        { "cuGetErrorString", &e->error_string },
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = os_library_symbol(library, entries[i].name);
        if (!symbol)
            return entries[i].name;
        memcpy(entries[i].entry, &symbol, sizeof symbol);
    }
    return NULL;
}

static bool done(gpu *g, cu_result result, const char *what)
{
    const char *text = NULL;
    if (result == 0)
        return true;
    g->entries->error_string(result, &text);
    g->error = arena_format(g->arena, "%s: %s (%d)", what, text ? text : "unknown error", result);
    return false;
}

static int attribute(gpu *g, int which)
{
    int value = 0;
    g->entries->device_attribute(&value, which, g->device);
    return value;
}

bool gpu_open(arena *a, gpu *g)
{
    *g = (gpu){ .arena = a, .error = "there is no libcuda.so.1" };
    void *library = os_open_library("libcuda.so.1");
    gpu_entries *e = arena_zalloc(a, sizeof *e);
    if (!library)
        return false;
    const char *missing = find_entries(library, e);
    if (missing) {
        g->error = arena_format(a, "libcuda.so.1 has no %s", missing);
        return false;
    }
    g->entries = e;
    cu_handle context;
    if (!done(g, e->init(0), "cuInit") || !done(g, e->device_get(&g->device, 0), "cuDeviceGet") ||
        !done(g, e->context_retain(&context, g->device), "cuDevicePrimaryCtxRetain") ||
        !done(g, e->context_set(context), "cuCtxSetCurrent") ||
        !done(g, e->event_create(&g->start, 0), "cuEventCreate") ||
        !done(g, e->event_create(&g->end, 0), "cuEventCreate"))
        return false;
    e->device_name(g->name, sizeof g->name, g->device);
    e->driver_version(&g->driver_version);
    g->sm = (unsigned)(10 * attribute(g, CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                       attribute(g, CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    g->sm_count = (unsigned)attribute(g, CU_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    g->clock = 1e3 * attribute(g, CU_ATTRIBUTE_CLOCK_RATE);
    g->l2_bytes = (size_t)attribute(g, CU_ATTRIBUTE_L2_CACHE_SIZE);
    return true;
}

void gpu_close(gpu *g)
{
    gpu_unload(g);
    g->entries->event_destroy(g->start);
    g->entries->event_destroy(g->end);
    g->entries->context_release(g->device);
}

bool gpu_alloc(gpu *g, size_t size, gpu_address *address)
{
    return done(g, g->entries->alloc(address, size), "cuMemAlloc");
}

void gpu_free(gpu *g, gpu_address address)
{
    g->entries->free(address);
}

bool gpu_fill(gpu *g, gpu_address to, unsigned char byte, size_t size)
{
    return done(g, g->entries->set(to, byte, size), "cuMemsetD8");
}

bool gpu_copy_in(gpu *g, gpu_address to, const void *from, size_t size)
{
    return done(g, g->entries->to_device(to, from, size), "cuMemcpyHtoD");
}

bool gpu_copy_out(gpu *g, void *to, gpu_address from, size_t size)
{
    return done(g, g->entries->to_host(to, from, size), "cuMemcpyDtoH");
}

bool gpu_copy(gpu *g, gpu_address to, gpu_address from, size_t size)
{
    return done(g, g->entries->copy(to, from, size, NULL), "cuMemcpyDtoDAsync");
}

bool gpu_load(gpu *g, const char *text, const char *entry, size_t dynamic_shared)
{
    const gpu_entries *e = g->entries;
    char log[LOG_BYTES] = "";
    int options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    gpu_unload(g);
    return done(g, e->load(&g->module, text, 2, options, values),
                arena_format(g->arena, "cuModuleLoadDataEx: %s", log)) &&
           done(g, e->function(&g->function, g->module, entry), "cuModuleGetFunction") &&
           (dynamic_shared <= DEFAULT_SHARED ||
            done(g, e->function_set(g->function, CU_FUNC_MAX_DYNAMIC_SHARED, (int)dynamic_shared),
                 "cuFuncSetAttribute"));
}

void gpu_unload(gpu *g)
{
    if (g->module)
        g->entries->unload(g->module);
    g->module = NULL;
}

bool gpu_launch(gpu *g, const gpu_grid *grid, void **params)
{
    return done(g,
                g->entries->launch(g->function, grid->blocks[0], grid->blocks[1], grid->blocks[2],
                                   grid->threads, 1, 1, (unsigned)grid->dynamic_shared, NULL,
                                   params, NULL),
                "cuLaunchKernel");
}

bool gpu_start(gpu *g)
{
    return done(g, g->entries->event_record(g->start, NULL), "cuEventRecord");
}

bool gpu_stop(gpu *g, double *seconds)
{
    const gpu_entries *e = g->entries;
    float milliseconds;
    if (!done(g, e->event_record(g->end, NULL), "cuEventRecord") ||
        !done(g, e->event_wait(g->end), "cuEventSynchronize") ||
        !done(g, e->event_elapsed(&milliseconds, g->start, g->end), "cuEventElapsedTime"))
        return false;
    *seconds = (double)milliseconds / 1e3;
    return true;
}
