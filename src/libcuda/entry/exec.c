/* Executable graphs: the work of a graph in an order that respects its dependencies, copied when it
 * is instantiated. A launch does it all before it returns. */
#include "libcuda/launch.h"
#include "libcuda/queue.h"
#include "libcuda/submit.h"

typedef struct step {
    CUgraphNode node; /* that it was made from; a name, and never followed */
    work work;        /* programmatic: its only edge is, and comes from the step ahead */
} step;

struct CUgraphExec_st {
    handle handle;
    arena *arena;
    step *steps;
    size_t count;
    bool overlaps; /* some step is programmatic */
};

/* The steps of a graph, in an arena of their own: CUDA_ERROR_INVALID_VALUE where nodes depend on
 * each other in a circle. */
static CUresult take_steps(CUgraph g, arena *a, step **steps)
{
    CUgraphNode *order = arena_try_alloc(a, (g->count + 1) * sizeof *order);
    *steps = arena_try_alloc(a, (g->count + 1) * sizeof **steps);
    if (!order || !*steps)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!graph_order(g, order))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->count; i++) {
        (*steps)[i].node = order[i];
        if (!work_keep(a, &order[i]->work, &(*steps)[i].work))
            return CUDA_ERROR_OUT_OF_MEMORY;
        (*steps)[i].work.programmatic =
            i && order[i]->dependencies.count == 1 && node_list_has(order[i]->early, order[i - 1]);
    }
    return CUDA_SUCCESS;
}

static bool has_overlap(const step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (steps[i].work.programmatic)
            return true;
    return false;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph g)
{
    step *steps;
    if (!exec || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    arena *a = driver_arena();
    CUresult r = a ? take_steps(g, a, &steps) : CUDA_ERROR_OUT_OF_MEMORY;
    CUgraphExec e = r ? NULL : handle_new(EXEC_HANDLE, sizeof *e, NULL);
    if (!e) {
        arena_free(a);
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->arena = a;
    e->steps = steps;
    e->count = g->count;
    e->overlaps = has_overlap(steps, e->count);
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

/* A launch may overlap with the step ahead; anything else is done when all steps ahead are. */
static CUresult run_step(CUcontext c, CUgraphExec e, const work *w)
{
    if (e->overlaps && w->type == CU_GRAPH_NODE_TYPE_KERNEL)
        return queue_launch(c, e, &w->as.launch, w->programmatic);
    CUresult r = queue_finish();
    return r ? r : c->failure ? c->failure : work_run(c, w);
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : ready(c, e, stream);
    for (size_t i = 0; !r && i < e->count; i++)
        r = run_step(c, e, &e->steps[i].work);
    r = r ? r : queue_finish();
    return leave(r ? r : c->failure);
}

static CUresult set_params(CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!params || !handle_is(e, EXEC_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = launch_check(params);
    work *w = NULL;
    for (size_t i = 0; i < e->count && !w; i++)
        if (e->steps[i].node == node && e->steps[i].work.type == CU_GRAPH_NODE_TYPE_KERNEL)
            w = &e->steps[i].work;
    if (r || !w)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (w->as.launch.func == params->func)
        launch_replace(&w->as.launch, params);
    else if (!launch_keep(e->arena, params, &w->as.launch))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : set_params(e, node, params));
}

/* Why steps cannot take the place of those that there are, and at which node. */
static CUgraphExecUpdateResult compare(CUgraphExec e, const step *steps, size_t count,
                                       CUgraphNode *wrong)
{
    if (e->count != count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < count; i++)
        if (e->steps[i].work.type != steps[i].work.type) {
            *wrong = steps[i].node;
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    step *steps;
    if (!info || !handle_is(e, EXEC_HANDLE) || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    arena *a = driver_arena();
    CUresult r = a ? take_steps(g, a, &steps) : CUDA_ERROR_OUT_OF_MEMORY;
    *info = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_ERROR };
    if (r != CUDA_ERROR_OUT_OF_MEMORY)
        info->result = r ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
                         : compare(e, steps, g->count, &info->errorNode);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        arena_free(a);
        return r == CUDA_ERROR_OUT_OF_MEMORY ? r : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (size_t i = 0; i < e->count; i++)
        steps[i].node = e->steps[i].node; /* programs go on to name those */
    arena_free(e->arena);
    e->arena = a;
    e->steps = steps;
    e->overlaps = has_overlap(steps, e->count);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : update(e, g, info));
}

PER_THREAD_ALIAS(cuGraphUpload, _ptsz);
PER_THREAD_ALIAS(cuGraphLaunch, _ptsz);
