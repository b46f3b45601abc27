#include "gpu/gpu.h"

#include "libcuda/api.h"

/* All drivers since CUDA 11.4 have these functions; libcuda/api.h declares them. */
#define DRIVER_FUNCTIONS(F)                        \
    F(cuInit)                                      \
    F(cuDriverGetVersion)                          \
    F(cuGetErrorString)                            \
    F(cuDeviceGet)                                 \
    F(cuDeviceGetName)                             \
    F(cuDeviceGetAttribute)                        \
    F(cuDevicePrimaryCtxRetain)                    \
    F(cuDevicePrimaryCtxRelease_v2)                \
    F(cuCtxSetCurrent)                             \
    F(cuCtxSynchronize)                            \
    F(cuMemAlloc_v2)                               \
    F(cuMemFree_v2)                                \
    F(cuMemHostAlloc)                              \
    F(cuMemHostGetDevicePointer_v2)                \
    F(cuMemFreeHost)                               \
    F(cuMemsetD8_v2)                               \
    F(cuMemcpyHtoD_v2)                             \
    F(cuMemcpyDtoH_v2)                             \
    F(cuMemcpyDtoDAsync_v2)                        \
    F(cuModuleLoadDataEx)                          \
    F(cuModuleUnload)                              \
    F(cuModuleGetFunction)                         \
    F(cuFuncSetAttribute)                          \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    F(cuLaunchKernel)                              \
    F(cuStreamCreate)                              \
    F(cuStreamDestroy_v2)                          \
    F(cuStreamBeginCapture_v2)                     \
    F(cuStreamEndCapture)                          \
    F(cuGraphInstantiateWithFlags)                 \
    F(cuGraphLaunch)                               \
    F(cuGraphDestroy)                              \
    F(cuGraphExecDestroy)                          \
    F(cuEventCreate)                               \
    F(cuEventDestroy_v2)                           \
    F(cuEventRecord)                               \
    F(cuEventSynchronize)                          \
    F(cuEventElapsedTime)
#include "consumer/decode/loader.h"

enum { LOG_BYTES = 8192 };

static bool done(gpu *g, CUresult result, const char *what)
{
    const char *text = NULL;
    if (result == CUDA_SUCCESS)
        return true;
    g->driver->cuGetErrorString(result, &text);
    g->error = arena_format(g->arena, "%s: %s (%u)", what, text ? text : "unknown error", result);
    return false;
}

#define CALL(g, function, ...) done(g, (g)->driver->function(__VA_ARGS__), #function)

static int attribute(gpu *g, CUdevice_attribute which)
{
    int value = 0;
    g->driver->cuDeviceGetAttribute(&value, which, g->device);
    return value;
}

static bool open_context(gpu *g)
{
    return CALL(g, cuDevicePrimaryCtxRetain, &g->context, g->device) &&
           CALL(g, cuCtxSetCurrent, g->context) && CALL(g, cuStreamCreate, &g->stream, 0) &&
           CALL(g, cuEventCreate, &g->start, 0) && CALL(g, cuEventCreate, &g->end, 0);
}

bool gpu_open(arena *a, gpu *g)
{
    driver_api *driver = arena_zalloc(a, sizeof *driver);
    *g = (gpu){ .arena = a, .driver = driver };
    const char *missing = driver_open(driver);
    if (missing) {
        g->error = arena_format(a, "%s is missing", missing);
        return false;
    }
    if (!CALL(g, cuInit, 0) || !CALL(g, cuDeviceGet, &g->device, 0) || !open_context(g))
        return false;
    driver->cuDeviceGetName(g->name, sizeof g->name, g->device);
    driver->cuDriverGetVersion(&g->driver_version);
    g->launch_kernel_ex = dlsym(driver->library, "cuLaunchKernelEx"); /* since CUDA 11.8 */
    g->sm = (unsigned)(10 * attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                       attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    g->sm_count = (unsigned)attribute(g, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    g->clock = 1e3 * attribute(g, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    g->l2_bytes = (size_t)attribute(g, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    return true;
}

void gpu_close(gpu *g)
{
    gpu_unload(g);
    g->driver->cuEventDestroy_v2(g->start);
    g->driver->cuEventDestroy_v2(g->end);
    g->driver->cuStreamDestroy_v2(g->stream);
    g->driver->cuDevicePrimaryCtxRelease_v2(g->device);
    g->start = g->end = NULL;
    g->stream = NULL;
}

bool gpu_renew(gpu *g)
{
    gpu_close(g); /* the only reference: this destroys the context */
    return open_context(g) && gpu_wait(g);
}

bool gpu_join(arena *a, const gpu *opened, gpu *g)
{
    *g = (gpu){ .arena = a,
                .driver = opened->driver,
                .launch_kernel_ex = opened->launch_kernel_ex,
                .device = opened->device,
                .context = opened->context,
                .stream = opened->stream };
    return CALL(g, cuCtxSetCurrent, g->context);
}

bool gpu_alloc(gpu *g, size_t size, gpu_address *address)
{
    CUdeviceptr at;
    if (!CALL(g, cuMemAlloc_v2, &at, size))
        return false;
    *address = at;
    return true;
}

void gpu_free(gpu *g, gpu_address address)
{
    g->driver->cuMemFree_v2(address);
}

bool gpu_alloc_host(gpu *g, size_t size, void **host, gpu_address *address)
{
    CUdeviceptr at = 0;
    bool mapped = CALL(g, cuMemHostAlloc, host, size, CU_MEMHOSTALLOC_DEVICEMAP) &&
                  CALL(g, cuMemHostGetDevicePointer_v2, &at, *host, 0);
    *address = at;
    return mapped;
}

void gpu_free_host(gpu *g, void *host)
{
    g->driver->cuMemFreeHost(host);
}

bool gpu_fill(gpu *g, gpu_address to, unsigned char byte, size_t size)
{
    return CALL(g, cuMemsetD8_v2, to, byte, size);
}

bool gpu_copy_in(gpu *g, gpu_address to, const void *from, size_t size)
{
    return CALL(g, cuMemcpyHtoD_v2, to, from, size);
}

bool gpu_copy_out(gpu *g, void *to, gpu_address from, size_t size)
{
    return CALL(g, cuMemcpyDtoH_v2, to, from, size);
}

bool gpu_copy(gpu *g, gpu_address to, gpu_address from, size_t size)
{
    return CALL(g, cuMemcpyDtoDAsync_v2, to, from, size, g->stream);
}

bool gpu_copy_in_repeated(gpu *g, gpu_address to, size_t size, const void *from, size_t stored)
{
    if (!gpu_copy_in(g, to, from, stored < size ? stored : size))
        return false;
    for (size_t at = stored; at < size; at *= 2)
        if (!gpu_copy(g, to + at, to, at < size - at ? at : size - at))
            return false;
    return true;
}

static bool load_module(gpu *g, const char *text, CUmodule *module)
{
    char log[LOG_BYTES] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    if (CALL(g, cuModuleLoadDataEx, module, text, 2, options, values))
        return true;
    g->error = arena_format(g->arena, "%s: %s", g->error, log);
    return false;
}

static bool find_function(gpu *g, CUmodule module, const char *entry, size_t dynamic_shared,
                          CUfunction *function)
{
    return CALL(g, cuModuleGetFunction, function, module, entry) &&
           (!dynamic_shared ||
            CALL(g, cuFuncSetAttribute, *function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                 (int)dynamic_shared));
}

bool gpu_load(gpu *g, const char *text)
{
    gpu_unload(g);
    return load_module(g, text, &g->module);
}

static void drop_graph(gpu *g)
{
    if (g->graph)
        g->driver->cuGraphExecDestroy(g->graph);
    g->graph = NULL;
}

void gpu_unload(gpu *g)
{
    drop_graph(g);
    if (g->module)
        g->driver->cuModuleUnload(g->module);
    g->module = NULL;
}

bool gpu_select(gpu *g, const char *entry, size_t dynamic_shared)
{
    return find_function(g, g->module, entry, dynamic_shared, &g->function);
}

unsigned gpu_blocks_sm(gpu *g, unsigned threads, size_t dynamic_shared)
{
    int blocks = 0;
    return CALL(g, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, g->function, (int)threads,
                dynamic_shared)
               ? (unsigned)blocks
               : 0;
}

bool gpu_keep(gpu *g, const char *text, const char *entry, size_t dynamic_shared, gpu_kernel *kept)
{
    return load_module(g, text, &kept->module) &&
           find_function(g, kept->module, entry, dynamic_shared, &kept->function);
}

void gpu_drop(gpu *g, gpu_kernel *kept)
{
    drop_graph(g);
    if (kept->module)
        g->driver->cuModuleUnload(kept->module);
    *kept = (gpu_kernel){ 0 };
}

void gpu_use(gpu *g, const gpu_kernel *kept)
{
    g->function = kept->function;
}

bool gpu_overlaps(const gpu *g)
{
    enum { FIRST_SM = 90, FIRST_DRIVER = 12030 };
    return g->sm >= FIRST_SM && g->driver_version >= FIRST_DRIVER && g->launch_kernel_ex;
}

static bool launch_early(gpu *g, const gpu_grid *grid, void **params)
{
    enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
    const int allowed = 1;
    CUlaunchAttribute attribute = { .id = (CUlaunchAttributeID)PROGRAMMATIC_STREAM_SERIALIZATION };
    memcpy(&attribute.value, &allowed, sizeof allowed);
    CUlaunchConfig config = { .gridDimX = grid->blocks[0],
                              .gridDimY = grid->blocks[1],
                              .gridDimZ = grid->blocks[2],
                              .blockDimX = grid->threads,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .sharedMemBytes = (unsigned)grid->dynamic_shared,
                              .hStream = g->stream,
                              .attrs = &attribute,
                              .numAttrs = 1 };
    __typeof__(cuLaunchKernelEx) *launch;
    memcpy(&launch, &g->launch_kernel_ex, sizeof launch);
    return done(g, launch(&config, g->function, params, NULL), "cuLaunchKernelEx");
}

bool gpu_launch(gpu *g, const gpu_grid *grid, void **params)
{
    if (grid->early)
        return launch_early(g, grid, params);
    return CALL(g, cuLaunchKernel, g->function, grid->blocks[0], grid->blocks[1], grid->blocks[2],
                grid->threads, 1, 1, (unsigned)grid->dynamic_shared, g->stream, params, NULL);
}

bool gpu_begin_graph(gpu *g)
{
    drop_graph(g);
    return CALL(g, cuStreamBeginCapture_v2, g->stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

bool gpu_end_graph(gpu *g)
{
    CUgraph graph;
    if (!CALL(g, cuStreamEndCapture, g->stream, &graph))
        return false;
    bool made = CALL(g, cuGraphInstantiateWithFlags, &g->graph, graph, 0);
    g->driver->cuGraphDestroy(graph);
    return made;
}

bool gpu_replay(gpu *g)
{
    return CALL(g, cuGraphLaunch, g->graph, g->stream);
}

bool gpu_wait(gpu *g)
{
    return done(g, g->driver->cuCtxSynchronize(), "cuCtxSynchronize");
}

bool gpu_start(gpu *g)
{
    return CALL(g, cuEventRecord, g->start, g->stream);
}

bool gpu_stop(gpu *g, double *seconds)
{
    float milliseconds;
    if (!CALL(g, cuEventRecord, g->end, g->stream) || !CALL(g, cuEventSynchronize, g->end) ||
        !CALL(g, cuEventElapsedTime, &milliseconds, g->start, g->end))
        return false;
    *seconds = (double)milliseconds / 1e3;
    return true;
}
