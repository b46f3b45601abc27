#include "libcuda/submit.h"

/* What the attributes of a launch ask for. The others are about caches, priorities and the like. */
typedef struct attributes {
    bool clusters;
    bool programmatic, cooperative;
    CUevent event; /* recorded behind the launch, which is when a device may do it at the latest */
} attributes;

static attributes read_attributes(const CUlaunchConfig *config)
{
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
    return all;
}

static CUresult check_attributes(const attributes *a)
{
    bool dependent = a->programmatic || a->event;
    if (a->clusters)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (dependent && device_target()->sm < LEAST_DEPENDENT_SM) {
        say("programmatic dependent launches exist from sm_%d on, and the device is %s",
            LEAST_DEPENDENT_SM, device_target()->name);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (a->event && !handle_is(a->event, EVENT_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->event && !(a->event->state.flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    if (dependent)
        driver_overlap();
    return CUDA_SUCCESS;
}

static CUresult submit(CUstream stream, const CUDA_KERNEL_NODE_PARAMS *l, const attributes *a)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_KERNEL,
               .programmatic = a->programmatic && !a->cooperative,
               .cooperative = a->cooperative,
               .as.launch = *l };
    CUcontext c;
    CUresult r = enter_context_to_add(&c);
    r = r ? r : check_attributes(a);
    r = r ? r : stream_submit(c, stream, &w);
    return leave(r || !a->event ? r : stream_record(c, stream, a->event));
}

static CUresult launch(CUfunction f, const unsigned grid[3], const unsigned block[3],
                       unsigned shared, CUstream stream, void **params, void **extra,
                       const attributes *a)
{
    return submit(stream,
                  &(CUDA_KERNEL_NODE_PARAMS){
                      .func = f,
                      .gridDimX = grid[0],
                      .gridDimY = grid[1],
                      .gridDimZ = grid[2],
                      .blockDimX = block[0],
                      .blockDimY = block[1],
                      .blockDimZ = block[2],
                      .sharedMemBytes = shared,
                      .kernelParams = params,
                      .extra = extra,
                  },
                  a);
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **params, void **extra)
{
    return launch(f, (unsigned[]){ grid_x, grid_y, grid_z },
                  (unsigned[]){ block_x, block_y, block_z }, shared, stream, params, extra,
                  &(attributes){ 0 });
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared, CUstream stream, void **params)
{
    return launch(f, (unsigned[]){ grid_x, grid_y, grid_z },
                  (unsigned[]){ block_x, block_y, block_z }, shared, stream, params, NULL,
                  &(attributes){ .cooperative = true });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    attributes all = read_attributes(config);
    return submit(config->hStream,
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
                  },
                  &all);
}

PER_THREAD_ALIAS(cuLaunchCooperativeKernel, _ptsz);
PER_THREAD_ALIAS(cuLaunchKernel, _ptsz);
PER_THREAD_ALIAS(cuLaunchKernelEx, _ptsz);
