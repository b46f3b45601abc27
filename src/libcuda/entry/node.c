/* Nodes of graphs: what each of the kinds does, which it has its own copy of. */
#include "libcuda/graph.h"
#include "libcuda/launch.h"

static CUresult add(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies, size_t count,
                    const work *w)
{
    if (!node || !handle_is(g, GRAPH_HANDLE) || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!is_node(dependencies[i]) || dependencies[i]->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
    CUresult r = work_check(w);
    CUgraphNode added = r ? NULL : graph_add(g, dependencies, count, w);
    if (added)
        *node = added;
    return r || added ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult enter_and_add(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                              size_t count, const work *w)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : add(node, g, dependencies, count, w));
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    work w = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .as.launch = *params };
    return enter_and_add(node, g, dependencies, count, &w);
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS newer = launch_of_v1(params);
    return cuGraphAddKernelNode_v2(node, g, dependencies, count, &newer);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMCPY3D *params, CUcontext context)
{
    (void)context; /* all have one device */
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    work w = { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .as.copy = *params };
    return enter_and_add(node, g, dependencies, count, &w);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
                              CUcontext context)
{
    (void)context;
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    work w = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .as.set = *params };
    return enter_and_add(node, g, dependencies, count, &w);
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    work w = { .type = CU_GRAPH_NODE_TYPE_HOST, .as.host = *params };
    return enter_and_add(node, g, dependencies, count, &w);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                             size_t count)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    return enter_and_add(node, g, dependencies, count, &w);
}

static CUresult add_event(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                          size_t count, CUgraphNodeType type, CUevent e)
{
    return enter_and_add(node, g, dependencies, count, &(work){ .type = type, .as.event = e });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                                   size_t count, CUevent e)
{
    return add_event(node, g, dependencies, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                                 size_t count, CUevent e)
{
    return add_event(node, g, dependencies, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    work w = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .as.values = *params };
    return enter_and_add(node, g, dependencies, count, &w);
}

/* The node has a copy of the graph as it is now. */
static CUresult add_graph(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                          size_t count, CUgraph inner)
{
    if (!handle_is(inner, GRAPH_HANDLE) || inner == g)
        return CUDA_ERROR_INVALID_VALUE;
    if (!graph_is_possible(inner))
        return CUDA_ERROR_INVALID_HANDLE;
    work w = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .as.graph = graph_copy(inner) };
    CUresult r = w.as.graph ? add(node, g, dependencies, count, &w) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r && w.as.graph)
        graph_free(w.as.graph);
    return r;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph g, const CUgraphNode *dependencies,
                                  size_t count, CUgraph inner)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : add_graph(node, g, dependencies, count, inner));
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    CUresult r = enter();
    if (!r && (!type || !is_node(node)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *type = node->work.type;
    return leave(r);
}

/* A node that streams may go on from stays. */
CUresult cuGraphDestroyNode(CUgraphNode node)
{
    CUresult r = enter();
    if (!r && (!is_node(node) || node->graph->captured || node->graph->inner))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        graph_remove(node);
    return leave(r);
}

/* A node of a type, and parameters or a place for them. */
static CUresult check(CUgraphNode node, CUgraphNodeType type, const void *params)
{
    return params && is_node(node) && node->work.type == type ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult r = enter();
    r = r ? r : check(node, CU_GRAPH_NODE_TYPE_KERNEL, params);
    if (!r)
        *params = node->work.as.launch;
    return leave(r);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS newer;
    CUresult r = cuGraphKernelNodeGetParams_v2(node, params ? &newer : NULL);
    if (!r)
        launch_to_v1(&newer, params);
    return r;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *params)
{
    CUresult r = enter();
    r = r ? r : check(node, CU_GRAPH_NODE_TYPE_MEMCPY, params);
    if (!r)
        *params = node->work.as.copy;
    return leave(r);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params)
{
    CUresult r = enter();
    r = r ? r : check(node, CU_GRAPH_NODE_TYPE_MEMSET, params);
    if (!r)
        *params = node->work.as.set;
    return leave(r);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *params)
{
    CUresult r = enter();
    r = r ? r : check(node, CU_GRAPH_NODE_TYPE_HOST, params);
    if (!r)
        *params = node->work.as.host;
    return leave(r);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    CUresult r = enter();
    r = r ? r : check(node, CU_GRAPH_NODE_TYPE_GRAPH, graph);
    if (!r)
        *graph = node->work.as.graph;
    return leave(r);
}

static CUresult get_event(CUgraphNode node, CUgraphNodeType type, CUevent *e)
{
    CUresult r = enter();
    r = r ? r : check(node, type, e);
    if (!r)
        *e = node->work.as.event;
    return leave(r);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *e)
{
    return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *e)
{
    return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    CUresult r = enter();
    r = r ? r : check(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, params);
    if (!r)
        *params = node->work.as.values;
    return leave(r);
}

static CUresult set(CUgraphNode node, const work *w)
{
    work kept;
    CUresult r = check(node, w->type, w);
    r = r ? r : work_check(w);
    if (!r && !work_keep(node->graph->arena, w, &kept))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r) {
        node->work.function = kept.function;
        node->work.as = kept.as;
    }
    return r;
}

static CUresult enter_and_set(CUgraphNode node, const work *w)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : set(node, w));
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(node, &(work){ .type = CU_GRAPH_NODE_TYPE_KERNEL, .as.launch = *params });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS newer = launch_of_v1(params);
    return cuGraphKernelNodeSetParams_v2(node, &newer);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(node, &(work){ .type = CU_GRAPH_NODE_TYPE_MEMCPY, .as.copy = *params });
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(node, &(work){ .type = CU_GRAPH_NODE_TYPE_MEMSET, .as.set = *params });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(node, &(work){ .type = CU_GRAPH_NODE_TYPE_HOST, .as.host = *params });
}

static CUresult set_event(CUgraphNode node, CUgraphNodeType type, CUevent e)
{
    return enter_and_set(node, &(work){ .type = type, .as.event = e });
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent e)
{
    return set_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent e)
{
    return set_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    return enter_and_set(node,
                         &(work){ .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .as.values = *params });
}
