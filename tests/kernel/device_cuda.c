/* The CUDA driver API, found at run time, declared here as far as it is used: a machine without it
 * builds and skips these tests. */
#include "kernel/device.h"

#include <string.h>

#include "base/os.h"

typedef int cu_result; /* 0: success */
typedef int cu_device;
typedef uint64_t cu_pointer;
typedef void *cu_handle; /* of a context, module, function or stream */

enum {
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED = 8,
    CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    MAX_ALLOCATIONS = 64,
    LOG_BYTES = 8192,
    UNWRITTEN = 0xff,
};

/* The driver's entry points, filled in by name. */
typedef struct driver {
    cu_result (*init)(unsigned);
    cu_result (*device_get)(cu_device *, int);
    cu_result (*device_attribute)(int *, int, cu_device);
    cu_result (*context_retain)(cu_handle *, cu_device);
    cu_result (*context_release)(cu_device);
    cu_result (*context_set)(cu_handle);
    cu_result (*synchronize)(void);
    cu_result (*alloc)(cu_pointer *, size_t);
    cu_result (*free)(cu_pointer);
    cu_result (*set)(cu_pointer, unsigned char, size_t);
    cu_result (*to_device)(cu_pointer, const void *, size_t);
    cu_result (*to_host)(void *, cu_pointer, size_t);
    cu_result (*load)(cu_handle *, const void *, unsigned, int *, void **);
    cu_result (*unload)(cu_handle);
    cu_result (*function)(cu_handle *, cu_handle, const char *);
    cu_result (*function_set)(cu_handle, int, int);
    cu_result (*launch)(cu_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, cu_handle, void **, void **);
    cu_result (*error_string)(cu_result, const char **);
} driver;

typedef struct gpu {
    driver driver;
    arena *arena;
    cu_device device;
    cu_handle module;
    cu_pointer allocations[MAX_ALLOCATIONS];
    size_t allocation_count;
} gpu;

static bool failed(gpu *g, cu_result result, const char *what, const char **error)
{
    const char *text = NULL;
    if (result == 0)
        return false;
    g->driver.error_string(result, &text);
    *error = arena_format(g->arena, "%s: %s (%d)", what, text ? text : "unknown error", result);
    return true;
}

static bool alloc(void *state, size_t size, uint64_t *address, const char **error)
{
    gpu *g = state;
    if (g->allocation_count == MAX_ALLOCATIONS) {
        *error = "more allocations than the tests foresee";
        return false;
    }
    if (failed(g, g->driver.alloc(address, size), "cuMemAlloc", error))
        return false;
    g->allocations[g->allocation_count++] = *address;
    return !failed(g, g->driver.set(*address, UNWRITTEN, size), "cuMemsetD8", error);
}

static bool copy_in(void *state, const void *bytes, size_t size, bool read_only, uint64_t *address,
                    const char **error)
{
    gpu *g = state;
    (void)read_only;
    return alloc(state, size, address, error) &&
           !failed(g, g->driver.to_device(*address, bytes, size), "cuMemcpyHtoD", error);
}

static bool copy_out(void *state, uint64_t address, void *bytes, size_t blocks, size_t block_bytes,
                     uint8_t *written, const char **error)
{
    gpu *g = state;
    if (failed(g, g->driver.to_host(bytes, address, blocks * block_bytes), "cuMemcpyDtoH", error))
        return false;
    const uint8_t *block = bytes;
    for (size_t i = 0; i < blocks; i++, block += block_bytes) {
        written[i] = 0;
        for (size_t j = 0; j < block_bytes; j++)
            written[i] |= block[j] != UNWRITTEN;
    }
    return true;
}

static bool load(void *state, const char *ptx, size_t length, const char **error)
{
    gpu *g = state;
    char log[LOG_BYTES] = "";
    int options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    cu_result result =
        g->driver.load(&g->module, arena_copy(g->arena, ptx, length), 2, options, values);
    return !failed(g, result, arena_format(g->arena, "cuModuleLoadDataEx: %s", log), error);
}

static bool launch(void *state, const device_launch *l, const char **error)
{
    gpu *g = state;
    cu_handle function;
    void *params[16];
    memcpy(params, l->params, l->param_count * sizeof *params);
    return !failed(g, g->driver.function(&function, g->module, l->entry), "cuModuleGetFunction",
                   error) &&
           !failed(g,
                   g->driver.function_set(function, CU_FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED,
                                          (int)l->dynamic_shared),
                   "cuFuncSetAttribute", error) &&
           !failed(g,
                   g->driver.launch(function, l->grid[0], l->grid[1], l->grid[2], l->block, 1, 1,
                                    (unsigned)l->dynamic_shared, NULL, params, NULL),
                   "cuLaunchKernel", error) &&
           !failed(g, g->driver.synchronize(), "cuCtxSynchronize", error);
}

static void reset(void *state)
{
    gpu *g = state;
    for (size_t i = 0; i < g->allocation_count; i++)
        g->driver.free(g->allocations[i]);
    g->allocation_count = 0;
    if (g->module)
        g->driver.unload(g->module);
    g->module = NULL;
    arena_reset(g->arena);
}

static void close_gpu(void *state)
{
    gpu *g = state;
    reset(g);
    g->driver.context_release(g->device);
    arena_free(g->arena);
}

static bool find_entries(void *library, driver *d, const char **why)
{
    const struct {
        const char *name;
        void *entry;
    } entries[] = {
        { "cuInit", &d->init },
        { "cuDeviceGet", &d->device_get },
        { "cuDeviceGetAttribute", &d->device_attribute },
        { "cuDevicePrimaryCtxRetain", &d->context_retain },
        { "cuDevicePrimaryCtxRelease_v2", &d->context_release },
        { "cuCtxSetCurrent", &d->context_set },
        { "cuCtxSynchronize", &d->synchronize },
        { "cuMemAlloc_v2", &d->alloc },
        { "cuMemFree_v2", &d->free },
        { "cuMemsetD8_v2", &d->set },
        { "cuMemcpyHtoD_v2", &d->to_device },
        { "cuMemcpyDtoH_v2", &d->to_host },
        { "cuModuleLoadDataEx", &d->load },
        { "cuModuleUnload", &d->unload },
        { "cuModuleGetFunction", &d->function },
        { "cuFuncSetAttribute", &d->function_set },
        { "cuLaunchKernel", &d->launch },
        { "cuGetErrorString", &d->error_string },
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = os_library_symbol(library, entries[i].name);
        if (!symbol) {
            *why = entries[i].name;
            return false;
        }
        memcpy(entries[i].entry, &symbol, sizeof symbol);
    }
    return true;
}

static bool open_first_device(gpu *g, device *d)
{
    const driver *api = &g->driver;
    cu_handle context;
    int major, minor, count;
    if (api->init(0) || api->device_get(&g->device, 0) ||
        api->context_retain(&context, g->device) || api->context_set(context) ||
        api->device_attribute(&major, CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, g->device) ||
        api->device_attribute(&minor, CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, g->device) ||
        api->device_attribute(&count, CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, g->device))
        return false;
    d->sm = (unsigned)(10 * major + minor);
    d->sm_count = (unsigned)count;
    return true;
}

bool device_open_cuda(arena *a, device *d, const char **why)
{
    void *library = os_open_library("libcuda.so.1");
    *why = "there is no libcuda.so.1";
    if (!library)
        return false;
    gpu *g = arena_zalloc(a, sizeof *g);
    if (!find_entries(library, &g->driver, why))
        return false;
    *d = (device){
        .name = "GPU",
        .state = g,
        .alloc = alloc,
        .copy_in = copy_in,
        .copy_out = copy_out,
        .load = load,
        .launch = launch,
        .reset = reset,
        .close = close_gpu,
    };
    *why = "there is no GPU that can be opened";
    if (!open_first_device(g, d))
        return false;
    g->arena = arena_new();
    return true;
}
