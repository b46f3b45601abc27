/* Executable graphs: the work of a graph in an order that respects its dependencies, copied when it
 * is instantiated. A launch does it all before it returns. */
#include <stdio.h>

#include "libcuda/capture.h"
#include "libcuda/launch.h"
#include "libcuda/module.h"
#include "libcuda/queue.h"
#include "libcuda/submit.h"

typedef struct step {
    CUgraphNode node; /* that it was made from; a name, and never followed */
    work work;        /* programmatic: its only edge is, and comes from the step ahead */
    bool disabled;
} step;

struct CUgraphExec_st {
    handle handle;
    arena *arena;
    step *steps;
    size_t count;
    cuuint64_t flags;
    bool overlaps; /* some step is programmatic */
};

/* Adds the steps of a graph behind *count others, for which there is room: CUDA_ERROR_INVALID_VALUE
 * where nodes depend on each other in a circle. Those of a graph inside of it stand together. */
static CUresult append_steps(CUgraph g, arena *a, step *steps, size_t *count)
{
    CUgraphNode *order = arena_try_alloc(a, (g->count + 1) * sizeof *order);
    if (!order)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!graph_order(g, order))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; !r && i < g->count; i++) {
        CUgraphNode n = order[i];
        if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
            r = append_steps(n->work.as.graph, a, steps, count);
            continue;
        }
        step *s = &steps[(*count)++];
        *s = (step){ .node = n };
        if (!work_keep(a, &n->work, &s->work))
            return CUDA_ERROR_OUT_OF_MEMORY;
        s->work.programmatic = i && !n->work.cooperative && n->dependencies.count == 1 &&
                               node_list_has(n->early, order[i - 1]);
    }
    return r;
}

/* The steps of a graph, in an arena of their own; *count, 0 ahead, becomes their number. */
static CUresult take_steps(CUgraph g, arena *a, step **steps, size_t *count)
{
    *steps = arena_try_alloc(a, (graph_work_count(g) + 1) * sizeof **steps);
    if (!*steps)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!graph_is_possible(g))
        return CUDA_ERROR_INVALID_HANDLE;
    return append_steps(g, a, *steps, count);
}

static bool has_overlap(const step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (steps[i].work.programmatic)
            return true;
    return false;
}

/* The flags are about memory nodes, uploads, priorities and launches by kernels, none of which
 * there are. */
static CUresult instantiate(CUgraphExec *exec, CUgraph g, cuuint64_t flags)
{
    enum { KNOWN_FLAGS = 15 };
    size_t count = 0;
    step *steps;
    if (!exec || flags & ~(cuuint64_t)KNOWN_FLAGS || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    arena *a = driver_arena();
    CUresult r = a ? take_steps(g, a, &steps, &count) : CUDA_ERROR_OUT_OF_MEMORY;
    CUgraphExec e = r ? NULL : handle_new(EXEC_HANDLE, sizeof *e, NULL);
    if (!e) {
        arena_free(a);
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->arena = a;
    e->steps = steps;
    e->count = count;
    e->flags = flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    e->overlaps = has_overlap(steps, count);
    *exec = e;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph g, unsigned long long flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : instantiate(exec, g, flags));
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph g,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && !params)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    bool known = exec && handle_is(g, GRAPH_HANDLE);
    r = instantiate(exec, g, params->flags);
    params->hErrNode_out = NULL;
    params->result_out = !r ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                         : known && r != CUDA_ERROR_OUT_OF_MEMORY
                             ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                             : CUDA_GRAPH_INSTANTIATE_ERROR;
    return leave(r);
}

/* Of versions 1 and 2: what is wrong with a graph goes into a log. */
static CUresult instantiate_with_log(CUgraphExec *exec, CUgraph g, CUgraphNode *wrong, char *log,
                                     size_t size)
{
    bool known = exec && handle_is(g, GRAPH_HANDLE);
    CUresult r = instantiate(exec, g, 0);
    if (wrong)
        *wrong = NULL;
    if (log && size)
        snprintf(log, size, "%s",
                 known && r == CUDA_ERROR_INVALID_VALUE ? "nodes depend on each other in a circle"
                                                        : "");
    return r;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph g, CUgraphNode *wrong, char *log,
                               size_t size)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : instantiate_with_log(exec, g, wrong, log, size));
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph g, CUgraphNode *wrong, char *log,
                            size_t size)
{
    return cuGraphInstantiate_v2(exec, g, wrong, log, size);
}

CUresult cuGraphExecGetFlags(CUgraphExec e, cuuint64_t *flags)
{
    CUresult r = enter();
    if (!r && (!flags || !handle_is(e, EXEC_HANDLE)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *flags = e->flags;
    return leave(r);
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

/* A launch that is captured is a node with a graph that has the same steps in the same order. */
static CUresult capture_launch(CUgraphExec e, CUstream s)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .as.graph = graph_new() };
    CUgraph g = w.as.graph;
    CUresult r = g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    CUgraphNode node = NULL;
    for (size_t i = 0; !r && i < e->count; i++) {
        CUgraphNode ahead = node;
        if (e->steps[i].disabled)
            continue;
        if (!work_is_possible(&e->steps[i].work))
            r = CUDA_ERROR_INVALID_HANDLE;
        else if (!(node = graph_add(g, &ahead, ahead != NULL, &e->steps[i].work)) ||
                 (e->steps[i].work.programmatic && ahead && !graph_make_early(node, ahead)))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    r = r ? r : capture_add(s, &w);
    if (r && g)
        graph_free(g);
    return r;
}

CUresult cuGraphUpload(CUgraphExec e, CUstream stream)
{
    CUcontext c;
    CUstream s;
    CUresult r = enter_context(&c);
    if (!r && !handle_is(e, EXEC_HANDLE))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : stream_ready(c, stream, &s);
    return leave(!r && s->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : r);
}

/* A launch may overlap with the step ahead; anything else is done when all steps ahead are. */
static CUresult run_step(CUcontext c, CUgraphExec e, const work *w)
{
    if (!work_is_possible(w))
        return CUDA_ERROR_INVALID_HANDLE;
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL && (e->overlaps || w->cooperative))
        return queue_launch(c, e, w);
    CUresult r = queue_finish();
    return r ? r : c->failure ? c->failure : work_run(c, w);
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream stream)
{
    CUcontext c;
    CUstream s;
    CUresult r = enter_context(&c);
    if (!r && !handle_is(e, EXEC_HANDLE))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : stream_ready(c, stream, &s);
    if (!r && s->capture)
        return leave(capture_launch(e, s));
    for (size_t i = 0; !r && i < e->count; i++)
        r = e->steps[i].disabled ? CUDA_SUCCESS : run_step(c, e, &e->steps[i].work);
    r = r ? r : queue_finish();
    return leave(r ? r : c->failure);
}

/* The step that was made from a node; NULL for none. */
static step *find_step(CUgraphExec e, CUgraphNode node)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->steps[i].node == node)
            return &e->steps[i];
    return NULL;
}

/* Launches of one function are replaced in their place, so that this needs no memory. */
static CUresult set_launch(CUgraphExec e, work *to, const work *w)
{
    CUfunction f = launch_function(&w->as.launch);
    if (f->id == to->function) {
        launch_replace(&to->as.launch, &w->as.launch);
        return CUDA_SUCCESS;
    }
    work kept;
    if (!work_keep(e->arena, w, &kept))
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->function = kept.function;
    to->as = kept.as;
    return CUDA_SUCCESS;
}

static CUresult set(CUgraphExec e, CUgraphNode node, const work *w)
{
    if (!handle_is(e, EXEC_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = work_check(w);
    step *s = r ? NULL : find_step(e, node);
    if (!s || s->work.type != w->type)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL)
        return set_launch(e, &s->work, w);
    work kept;
    if (!work_keep(e->arena, w, &kept))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->work.as = kept.as;
    return CUDA_SUCCESS;
}

static CUresult enter_and_set(CUgraphExec e, CUgraphNode node, const work *w)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : set(e, node, w));
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(e, node,
                         &(work){ .type = CU_GRAPH_NODE_TYPE_KERNEL, .as.launch = *params });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec e, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS newer = launch_of_v1(params);
    return cuGraphExecKernelNodeSetParams_v2(e, node, &newer);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec e, CUgraphNode node,
                                        const CUDA_MEMCPY3D *params, CUcontext context)
{
    (void)context; /* all have one device */
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(e, node, &(work){ .type = CU_GRAPH_NODE_TYPE_MEMCPY, .as.copy = *params });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec e, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    (void)context;
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(e, node, &(work){ .type = CU_GRAPH_NODE_TYPE_MEMSET, .as.set = *params });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec e, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(e, node, &(work){ .type = CU_GRAPH_NODE_TYPE_HOST, .as.host = *params });
}

static CUresult set_event(CUgraphExec e, CUgraphNode node, CUgraphNodeType type, CUevent event)
{
    return enter_and_set(e, node, &(work){ .type = type, .as.event = event });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec e, CUgraphNode node, CUevent event)
{
    return set_event(e, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec e, CUgraphNode node, CUevent event)
{
    return set_event(e, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec e, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(e, node,
                         &(work){ .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .as.values = *params });
}

/* The step of a node that does something which can be left out. */
static CUresult find_optional(CUgraphExec e, CUgraphNode node, step **s)
{
    if (!handle_is(e, EXEC_HANDLE) || !(*s = find_step(e, node)))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeType type = (*s)->work.type;
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                   type == CU_GRAPH_NODE_TYPE_MEMSET
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec e, CUgraphNode node, unsigned enabled)
{
    step *s;
    CUresult r = enter();
    r = r ? r : find_optional(e, node, &s);
    if (!r)
        s->disabled = !enabled;
    return leave(r);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec e, CUgraphNode node, unsigned *enabled)
{
    step *s;
    CUresult r = enter();
    r = r ? r : enabled ? find_optional(e, node, &s) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *enabled = !s->disabled;
    return leave(r);
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
    size_t count = 0;
    step *steps;
    if (!info || !handle_is(e, EXEC_HANDLE) || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    arena *a = driver_arena();
    CUresult r = a ? take_steps(g, a, &steps, &count) : CUDA_ERROR_OUT_OF_MEMORY;
    *info = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_ERROR };
    if (r != CUDA_ERROR_OUT_OF_MEMORY)
        info->result = r ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
                         : compare(e, steps, count, &info->errorNode);
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

CUresult cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *wrong,
                           CUgraphExecUpdateResult *result)
{
    CUgraphExecUpdateResultInfo info = { 0 };
    CUresult r = cuGraphExecUpdate_v2(e, g, &info);
    if (wrong)
        *wrong = info.errorNode;
    if (result)
        *result = info.result;
    return r;
}

PER_THREAD_ALIAS(cuGraphInstantiateWithParams, _ptsz);
PER_THREAD_ALIAS(cuGraphUpload, _ptsz);
PER_THREAD_ALIAS(cuGraphLaunch, _ptsz);
