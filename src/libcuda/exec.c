/* Executable graphs: the work of a graph in an order that respects its dependencies, copied when it
 * is instantiated. A launch does it all before it returns. */
#include "libcuda/stream.h"

typedef struct step {
    CUgraphNode node; /* that it was made from; a name, and never followed */
    work work;
} step;

struct CUgraphExec_st {
    handle handle;
    arena *arena;
    step *steps;
    size_t count;
};

static CUresult instantiate(CUgraphExec *exec, CUgraph g)
{
    if (!exec || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    arena *a = arena_new();
    CUgraphNode *order = arena_alloc(a, (g->count + 1) * sizeof *order);
    CUgraphExec e = graph_order(g, order) ? handle_new(EXEC_HANDLE, sizeof *e, NULL) : NULL;
    if (!e) {
        arena_free(a);
        return CUDA_ERROR_INVALID_VALUE;
    }
    e->arena = a;
    e->count = g->count;
    e->steps = arena_alloc(a, (e->count + 1) * sizeof *e->steps);
    for (size_t i = 0; i < e->count; i++)
        e->steps[i] = (step){ order[i], work_keep(a, &order[i]->work) };
    *exec = e;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph g, unsigned long long flags)
{
    (void)flags; /* about memory nodes, uploads and launches by kernels, none of which there are */
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : instantiate(exec, g));
}

CUresult cuGraphExecDestroy(CUgraphExec e)
{
    CUresult r = enter();
    if (!r && !handle_is(e, EXEC_HANDLE))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        arena_free(e->arena);
        handle_free(e);
    }
    return leave(r);
}

static CUresult ready(CUcontext c, CUgraphExec e, CUstream stream)
{
    CUstream s;
    if (!handle_is(e, EXEC_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = stream_ready(c, stream, &s);
    return r ? r : s->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec e, CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : ready(c, e, stream));
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : ready(c, e, stream);
    for (size_t i = 0; !r && i < e->count; i++)
        r = work_run(c, &e->steps[i].work);
    return leave(r);
}

static void replace(CUgraphExec e, work *kept, const work *w)
{
    CUDA_KERNEL_NODE_PARAMS *launch = &kept->as.launch;
    if (w->type != CU_GRAPH_NODE_TYPE_KERNEL)
        *kept = *w;
    else if (launch->func == w->as.launch.func)
        launch_replace(launch, &w->as.launch);
    else
        *launch = launch_keep(e->arena, &w->as.launch);
}

static CUresult set_params(CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!params || !handle_is(e, EXEC_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = launch_check(params);
    for (size_t i = 0; !r && i < e->count; i++)
        if (e->steps[i].node == node && e->steps[i].work.type == CU_GRAPH_NODE_TYPE_KERNEL) {
            work w = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .as.launch = *params };
            replace(e, &e->steps[i].work, &w);
            return CUDA_SUCCESS;
        }
    return r ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : set_params(e, node, params));
}

/* Why a graph cannot take the place of the one that was instantiated, and at which node. */
static CUgraphExecUpdateResult compare(CUgraphExec e, CUgraph g, CUgraphNode *order,
                                       CUgraphNode *wrong)
{
    if (e->count != g->count || !graph_order(g, order))
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < e->count; i++)
        if (e->steps[i].work.type != order[i]->work.type) {
            *wrong = order[i];
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    if (!info || !handle_is(e, EXEC_HANDLE) || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    arena *a = arena_new();
    CUgraphNode *order = arena_alloc(a, (g->count + 1) * sizeof *order);
    *info = (CUgraphExecUpdateResultInfo){ 0 };
    info->result = compare(e, g, order, &info->errorNode);
    bool fits = info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS;
    for (size_t i = 0; fits && i < e->count; i++)
        replace(e, &e->steps[i].work, &order[i]->work);
    arena_free(a);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : update(e, g, info));
}

PER_THREAD_ALIAS(cuGraphUpload, _ptsz);
PER_THREAD_ALIAS(cuGraphLaunch, _ptsz);
