/* Executable graphs: the work of a graph in an order that respects its dependencies, copied when it
 * is instantiated. A launch does it all before it returns. */
#include <stdio.h>

#include "libcuda/capture.h"
#include "libcuda/entry/entry.h"
#include "libcuda/launch.h"
#include "libcuda/queue.h"

typedef struct step {
    CUgraphNode node; /* that it was made from: a name, never followed */
    work work;        /* programmatic if its only edge is and comes from the step before */
    bool disabled;
} step;

struct CUgraphExec_st {
    handle handle;
    step *steps;
    size_t count;
    cuuint64_t flags;
    bool overlaps; /* some step is programmatic */
};

/* Appends the steps of a graph to *count others, for which there is room. The steps of a graph
 * inside of it stay together. Fails with CUDA_ERROR_INVALID_VALUE if nodes depend on each other in
 * a circle.
 */
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

/* Makes the steps of a graph in an arena. *count, which is 0 before, becomes their number. */
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

static CUresult instantiate(CUgraphExec *exec, CUgraph g, cuuint64_t flags)
{
    enum { KNOWN_FLAGS = 15 };
    if (!exec || flags & ~(cuuint64_t)KNOWN_FLAGS || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec e = handle_new_with_arena(EXEC_HANDLE, sizeof *e, NULL);
    CUresult r =
        e ? take_steps(g, e->handle.arena, &e->steps, &e->count) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        if (e)
            handle_free(e);
        return r;
    }
    e->flags = flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    e->overlaps = has_overlap(e->steps, e->count);
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

/* Instantiates a graph, as versions 1 and 2 do: what is wrong with it goes into a log. */
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

static CUresult check_exec(CUgraphExec e)
{
    return check_value(handle_is(e, EXEC_HANDLE));
}

/* Captures a launch, as a node with a graph that has the same steps in the same order. */
static CUresult capture_launch(CUgraphExec e, CUstream s)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .as.graph = graph_new() };
    CUgraph g = w.as.graph;
    CUresult r = g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    CUgraphNode node = NULL;
    for (size_t i = 0; !r && i < e->count; i++) {
        CUgraphNode before = node;
        if (e->steps[i].disabled)
            continue;
        if (!work_is_possible(&e->steps[i].work))
            r = CUDA_ERROR_INVALID_HANDLE;
        else if (!(node = graph_add(g, &before, before != NULL, &e->steps[i].work)) ||
                 (e->steps[i].work.programmatic && before && !graph_make_early(node, before)))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    r = r ? r : capture_add(s, &w);
    if (r && g)
        graph_free(g);
    return r;
}

/* Launches a graph. A launch in it may overlap with the step before; anything else is done when all
 * steps before are. */
static CUresult launch_graph(CUcontext c, CUgraphExec e, CUstream s)
{
    CUresult r = CUDA_SUCCESS;
    if (s->capture)
        return capture_launch(e, s);
    for (size_t i = 0; !r && i < e->count; i++)
        if (!e->steps[i].disabled)
            r = work_run(c, e, e->overlaps, &e->steps[i].work);
    r = r ? r : queue_finish();
    return r ? r : c->failure;
}

/* Returns the step that was made from a node, or NULL. */
static step *find_step(CUgraphExec e, CUgraphNode node)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->steps[i].node == node)
            return &e->steps[i];
    return NULL;
}

/* Sets a launch. One of the same function is replaced in its place, so that this needs no memory.
 */
static CUresult set_launch(CUgraphExec e, work *to, const work *w)
{
    CUfunction f = launch_function(&w->as.launch);
    if (f->id == to->function) {
        launch_replace(&to->as.launch, &w->as.launch);
        return CUDA_SUCCESS;
    }
    work kept;
    if (!work_keep(e->handle.arena, w, &kept))
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->function = kept.function;
    to->as = kept.as;
    return CUDA_SUCCESS;
}

static CUresult set_step(CUgraphExec e, CUgraphNode node, const work *w)
{
    work kept;
    CUresult r = check_exec(e);
    r = r ? r : work_check(w);
    step *s = r ? NULL : find_step(e, node);
    if (!s || s->work.type != w->type)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL)
        return set_launch(e, &s->work, w);
    if (!work_keep(e->handle.arena, w, &kept))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->work.as = kept.as;
    return CUDA_SUCCESS;
}

static CUresult set_any_step(CUgraphExec e, CUgraphNode node, const CUgraphNodeParams *params)
{
    work w;
    CUresult r = work_of_params(params, true, &w);
    return r ? r : set_step(e, node, &w);
}

/* Checks that a node has a step that does something which can be left out. */
static CUresult check_optional(CUgraphExec e, CUgraphNode node)
{
    const step *s = handle_is(e, EXEC_HANDLE) ? find_step(e, node) : NULL;
    return check_value(s && (s->work.type == CU_GRAPH_NODE_TYPE_KERNEL ||
                             s->work.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                             s->work.type == CU_GRAPH_NODE_TYPE_MEMSET));
}

/* Returns why steps cannot replace the present ones, and at which node. */
static CUgraphExecUpdateResult compare_steps(CUgraphExec e, const step *steps, size_t count,
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

static CUresult update_exec(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
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
                         : compare_steps(e, steps, count, &info->errorNode);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        arena_free(a);
        return r == CUDA_ERROR_OUT_OF_MEMORY ? r : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (size_t i = 0; i < e->count; i++)
        steps[i].node = e->steps[i].node; /* programs go on to name those */
    arena_free(e->handle.arena);
    e->handle.arena = a;
    e->steps = steps;
    e->overlaps = has_overlap(steps, e->count);
    return CUDA_SUCCESS;
}

/* Updates by the newer version of the call, which tells more. */
static CUresult update_and_tell(CUgraphExec e, CUgraph g, CUgraphNode *wrong,
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

/* The result of rows for steps of a type, whose parameters are a member of the work. */
#define SET_STEP(type, member, value) \
    THEN(check_value(params), set_step(e, node, WORK(type, member, value)))

#include "libcuda/entry/exec.def"
