#include "libcuda/work.h"

CUresult work_check(const work *w)
{
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return launch_check(&w->as.launch);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_check(&w->as.copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set_check(&w->as.set);
    case CU_GRAPH_NODE_TYPE_HOST:
        return w->as.host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_SUCCESS;
    }
}

CUresult work_run(CUcontext c, const work *w)
{
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return launch_run(c, &w->as.launch);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_run(&w->as.copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set_run(&w->as.set);
    case CU_GRAPH_NODE_TYPE_HOST:
        w->as.host.fn(w->as.host.userData);
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

work work_keep(arena *a, const work *w)
{
    work kept = *w;
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL)
        kept.as.launch = launch_keep(a, &w->as.launch);
    return kept;
}
