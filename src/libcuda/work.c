#include "libcuda/work.h"

#include "libcuda/copy.h"
#include "libcuda/event.h"
#include "libcuda/launch.h"
#include "libcuda/module.h"
#include "libcuda/value.h"

CUresult work_check(const work *w)
{
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return (w->cooperative ? launch_check_cooperative : launch_check)(&w->as.launch);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_check(&w->as.copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set_check(&w->as.set);
    case CU_GRAPH_NODE_TYPE_HOST:
        return w->as.host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return handle_is(w->as.event, EVENT_HANDLE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return values_check(&w->as.values);
    default:
        return CUDA_SUCCESS;
    }
}

typedef struct run {
    CUcontext context;
    const work *work;
} run;

static CUresult run_on_device(void *context)
{
    const run *r = context;
    const work *w = r->work;
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return launch_run(r->context, &w->as.launch);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_run(&w->as.copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set_run(&w->as.set);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return values_run(&w->as.values);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        event_stamp(w->as.event);
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

bool work_is_possible(const work *w)
{
    if (w->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || w->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        return handle_is(w->as.event, EVENT_HANDLE);
    CUfunction f = w->type == CU_GRAPH_NODE_TYPE_KERNEL ? launch_function(&w->as.launch) : NULL;
    return !f || (handle_is(f, FUNCTION_HANDLE) && (!w->function || f->id == w->function));
}

CUresult work_run(CUcontext c, const work *w)
{
    if (!work_is_possible(w))
        return CUDA_ERROR_INVALID_HANDLE;
    if (w->type != CU_GRAPH_NODE_TYPE_HOST)
        return driver_try(run_on_device, &(run){ c, w });
    w->as.host.fn(w->as.host.userData); /* which may leave by other ways than a return */
    return CUDA_SUCCESS;
}

bool work_keep(arena *a, const work *w, work *kept)
{
    *kept = *w;
    if (w->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        return values_keep(a, &w->as.values, &kept->as.values);
    if (w->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return true;
    kept->function = launch_function(&w->as.launch)->id;
    return launch_keep(a, &w->as.launch, &kept->as.launch);
}
