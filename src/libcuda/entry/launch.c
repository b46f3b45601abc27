/* Launches of kernels, and occupancy. */
#include "libcuda/launch.h"

#include "libcuda/graph.h"
#include "libcuda/entry/entry.h"

/* Launch attributes that have an effect. Others, e.g. cache hints and priorities, are ignored. */
typedef struct attributes {
    bool clusters, programmatic, cooperative;
    CUevent event; /* recorded after the launch, the latest time that a device allows */
} attributes;

static CUresult launch_kernel(CUcontext c, CUstream stream, const attributes *a,
                              const CUDA_KERNEL_NODE_PARAMS *l)
{
    bool dependent = a->programmatic || a->event;
    if (a->clusters)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (dependent && driver.target->sm < LEAST_DEPENDENT_SM) {
        say("programmatic dependent launches need sm_%d or newer; the device is %s",
            LEAST_DEPENDENT_SM, driver.target->name);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (a->event && !handle_is(a->event, EVENT_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->event && !(a->event->flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    if (dependent)
        driver.overlaps = true;
    work w = { .type = CU_GRAPH_NODE_TYPE_KERNEL,
               .programmatic = a->programmatic && !a->cooperative,
               .cooperative = a->cooperative,
               .as.launch = *l };
    CUresult r = stream_submit(c, stream, &w);
    return r || !a->event ? r : stream_record(c, stream, a->event);
}

static CUresult launch_with_attributes(CUcontext c, const CUlaunchConfig *config, CUfunction f,
                                       void **params, void **extra)
{
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    attributes all = { 0 };
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *v = &config->attrs[i].value;
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            all.clusters = v->clusterDim.x * v->clusterDim.y * v->clusterDim.z > 1;
        else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            all.programmatic = v->programmaticStreamSerializationAllowed;
        else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            all.cooperative = v->cooperative;
        else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            all.event = v->programmaticEvent.event;
    }
    return launch_kernel(c, config->hStream, &all,
                         &(CUDA_KERNEL_NODE_PARAMS){
                             .func = f,
                             .gridDimX = config->gridDimX,
                             .gridDimY = config->gridDimY,
                             .gridDimZ = config->gridDimZ,
                             .blockDimX = config->blockDimX,
                             .blockDimY = config->blockDimY,
                             .blockDimZ = config->blockDimZ,
                             .sharedMemBytes = config->sharedMemBytes,
                             .kernelParams = params,
                             .extra = extra,
                         });
}

static CUresult count_blocks(int *blocks, CUfunction f, int threads, size_t dynamic)
{
    if (!blocks || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = (unsigned)threads > function_threads(f) || dynamic > f->dynamic_shared
                  ? 0
                  : (int)function_blocks(f, (unsigned)threads, dynamic);
    return CUDA_SUCCESS;
}

/* Finds the block size with the most resident threads per SM, and blocks per device. */
static CUresult find_block_size(int *grid, int *block, CUfunction f, CUoccupancyB2DSize dynamic_of,
                                size_t dynamic, int limit)
{
    unsigned most_resident = 0;
    if (!grid || !block || limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned most = function_threads(f);
    if (limit && (unsigned)limit < most)
        most = (unsigned)limit;
    for (unsigned threads = most; threads; threads = (threads - 1) / WARP_THREADS * WARP_THREADS) {
        size_t shared = dynamic_of ? dynamic_of((int)threads) : dynamic;
        unsigned blocks = function_blocks(f, threads, shared);
        if (blocks * threads > most_resident) {
            most_resident = blocks * threads;
            *block = (int)threads;
            *grid = (int)(blocks * SM_COUNT);
        }
    }
    return check_value(most_resident);
}

static CUresult available_shared(size_t *bytes, CUfunction f, int blocks, int threads)
{
    enum { STEP = 128 };
    if (!bytes || blocks <= 0 || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t most = driver.target->shared_block - f->info.shared_bytes;
    while (most && function_blocks(f, (unsigned)threads, most) < (unsigned)blocks)
        most -= most < STEP ? most : STEP;
    *bytes = most;
    return CUDA_SUCCESS;
}

#include "libcuda/entry/launch.def"
