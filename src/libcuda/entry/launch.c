#include "libcuda/submit.h"

static CUresult submit(CUstream stream, const CUDA_KERNEL_NODE_PARAMS *l)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .as.launch = *l };
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : stream_submit(c, stream, &w));
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **params, void **extra)
{
    return submit(stream, &(CUDA_KERNEL_NODE_PARAMS){
                              .func = f,
                              .gridDimX = grid_x,
                              .gridDimY = grid_y,
                              .gridDimZ = grid_z,
                              .blockDimX = block_x,
                              .blockDimY = block_y,
                              .blockDimZ = block_z,
                              .sharedMemBytes = shared,
                              .kernelParams = params,
                              .extra = extra,
                          });
}

/* Launch attributes are about order and caches, but for clusters, which the emulator has not. */
static bool wants_clusters(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
            a->value.clusterDim.x * a->value.clusterDim.y * a->value.clusterDim.z > 1)
            return true;
    }
    return false;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    if (wants_clusters(config))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuLaunchKernel(f, config->gridDimX, config->gridDimY, config->gridDimZ,
                          config->blockDimX, config->blockDimY, config->blockDimZ,
                          config->sharedMemBytes, config->hStream, params, extra);
}

PER_THREAD_ALIAS(cuLaunchKernel, _ptsz);
PER_THREAD_ALIAS(cuLaunchKernelEx, _ptsz);
