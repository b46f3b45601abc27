/* Executable graphs: a graph's work in topological order, copied at instantiation. A launch
 * completes all work before it returns. */
#include <stdio.h>

#include "libcuda/graph.h"
#include "libcuda/entry/entry.h"
#include "libcuda/launch.h"

typedef struct step {
    CUgraphNode node; /* node it was made from; never dereferenced */
    work work;        /* programmatic if its only edge is programmatic and from the preceding
                         step */
    bool disabled;
} step;

typedef struct step_list {
    step *items;
    size_t count;
    bool overlaps; /* a step is programmatic */
} step_list;

struct CUgraphExec_st {
    handle handle;
    step_list steps;
    cuuint64_t flags;
};

/* Appends a graph's steps, a child graph's together. CUDA_ERROR_INVALID_VALUE: it has a cycle. */
static CUresult append_steps(CUgraph g, arena *a, step_list *steps)
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
            r = append_steps(n->work.as.graph, a, steps);
            continue;
        }
        step *s = &steps->items[steps->count++];
        *s = (step){ .node = n };
        if (!work_keep(a, &n->work, &s->work))
            return CUDA_ERROR_OUT_OF_MEMORY;
        s->work.programmatic = i && !n->work.cooperative && n->dependencies.count == 1 &&
                               node_list_has(n->early, order[i - 1]);
        steps->overlaps |= s->work.programmatic;
    }
    return r;
}

static CUresult build_steps(CUgraph g, arena *a, step_list *steps)
{
    *steps = (step_list){ .items = arena_try_alloc(a, (graph_work_count(g) + 1) * sizeof(step)) };
    if (!steps->items)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return graph_is_valid(g) ? append_steps(g, a, steps) : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph g, cuuint64_t flags)
{
    enum { KNOWN_FLAGS = 15 };
    if (!exec || flags & ~(cuuint64_t)KNOWN_FLAGS || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec e = handle_new_with_arena(EXEC_HANDLE, sizeof *e, NULL);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = build_steps(g, e->handle.arena, &e->steps);
    if (r) {
        handle_free(e);
        return r;
    }
    e->flags = flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    *exec = e;
    return CUDA_SUCCESS;
}

static CUresult instantiate_with_params(CUgraphExec *exec, CUgraph g,
                                        CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    bool known = exec && handle_is(g, GRAPH_HANDLE);
    CUresult r = instantiate(exec, g, params->flags);
    params->hErrNode_out = NULL;
    params->result_out = !r ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                         : known && r != CUDA_ERROR_OUT_OF_MEMORY
                             ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                             : CUDA_GRAPH_INSTANTIATE_ERROR;
    return r;
}

/* Instantiates a graph like versions 1 and 2 of the call: errors are written to a log. */
static CUresult instantiate_with_log(CUgraphExec *exec, CUgraph g, CUgraphNode *wrong, char *log,
                                     size_t size)
{
    bool known = exec && handle_is(g, GRAPH_HANDLE);
    CUresult r = instantiate(exec, g, 0);
    GIVE(wrong, NULL);
    if (log && size)
        snprintf(log, size, "%s",
                 known && r == CUDA_ERROR_INVALID_VALUE ? "the graph has a cycle" : "");
    return r;
}

/* Captures a graph launch as a child graph node with the same steps in the same order. */
static CUresult capture_launch(CUgraphExec e, CUstream stream)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .as.graph = graph_new() };
    CUgraph g = w.as.graph;
    CUresult r = check_made(g);
    CUgraphNode node = NULL;
    for (size_t i = 0; !r && i < e->steps.count; i++) {
        const step *s = &e->steps.items[i];
        CUgraphNode before = node;
        if (s->disabled)
            continue;
        if (!work_is_valid(&s->work))
            r = CUDA_ERROR_INVALID_HANDLE;
        else if (!(node = graph_add(g, &before, before != NULL, &s->work)) ||
                 (s->work.programmatic && before && !node_list_join(g, &node->early, &before, 1)))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    r = r ? r : capture_add(stream, &w);
    if (r && g)
        graph_free(g);
    return r;
}

/* Launches a graph. Only a programmatic launch may overlap the preceding step. */
static CUresult launch_graph(CUcontext c, CUgraphExec e, CUstream s)
{
    CUresult r = CUDA_SUCCESS;
    if (s->capture)
        return capture_launch(e, s);
    for (size_t i = 0; !r && i < e->steps.count; i++)
        if (!e->steps.items[i].disabled)
            r = work_run(c, e, e->steps.overlaps, &e->steps.items[i].work);
    r = r ? r : queue_finish();
    return r ? r : c->failure;
}

static step *find_step(CUgraphExec e, CUgraphNode node)
{
    for (size_t i = 0; i < e->steps.count; i++)
        if (e->steps.items[i].node == node)
            return &e->steps.items[i];
    return NULL;
}

/* Sets a step's work. A launch of the same function is replaced without an allocation. */
static CUresult set_step(CUgraphExec e, CUgraphNode node, const work *w)
{
    work kept;
    CUresult r = check_value(handle_is(e, EXEC_HANDLE));
    r = r ? r : work_check(w);
    step *s = r ? NULL : find_step(e, node);
    if (!s || s->work.type != w->type)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL &&
        launch_function(&w->as.launch)->id == s->work.function) {
        launch_replace(&s->work.as.launch, &w->as.launch);
        return CUDA_SUCCESS;
    }
    if (!work_keep(e->handle.arena, w, &kept))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->work.function = kept.function;
    s->work.as = kept.as;
    return CUDA_SUCCESS;
}

static CUresult set_any_step(CUgraphExec e, CUgraphNode node, const CUgraphNodeParams *params)
{
    work w;
    CUresult r = work_of_params(params, true, &w);
    return r ? r : set_step(e, node, &w);
}

/* Checks that a node has a step of a type that can be disabled. */
static CUresult check_optional(CUgraphExec e, CUgraphNode node)
{
    const step *s = handle_is(e, EXEC_HANDLE) ? find_step(e, node) : NULL;
    return check_value(s && (s->work.type == CU_GRAPH_NODE_TYPE_KERNEL ||
                             s->work.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                             s->work.type == CU_GRAPH_NODE_TYPE_MEMSET));
}

static CUresult update_exec(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    step_list steps;
    if (!info || !handle_is(e, EXEC_HANDLE) || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    arena *a = driver_arena();
    CUresult r = a ? build_steps(g, a, &steps) : CUDA_ERROR_OUT_OF_MEMORY;
    *info = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_SUCCESS };
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    else if (r || steps.count != e->steps.count)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; !info->result && i < steps.count; i++)
        if (e->steps.items[i].work.type != steps.items[i].work.type) {
            info->errorNode = steps.items[i].node;
            info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        }
    if (info->result) {
        arena_free(a);
        return r == CUDA_ERROR_OUT_OF_MEMORY ? r : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (size_t i = 0; i < steps.count; i++)
        steps.items[i].node = e->steps.items[i].node; /* programs keep using the original nodes */
    arena_free(e->handle.arena);
    e->handle.arena = a;
    e->steps = steps;
    return CUDA_SUCCESS;
}

static CUresult update_with_result(CUgraphExec e, CUgraph g, CUgraphNode *wrong,
                                   CUgraphExecUpdateResult *result)
{
    CUgraphExecUpdateResultInfo info = { 0 };
    CUresult r = cuGraphExecUpdate_v2(e, g, &info);
    GIVE(wrong, info.errorNode);
    GIVE(result, info.result);
    return r;
}

/* Result of rows that set steps of a type, with params as a member of the work. */
#define SET_STEP(type, member, value) \
    THEN(check_value(params), set_step(e, node, WORK(type, member, value)))

#include "libcuda/entry/exec.def"
