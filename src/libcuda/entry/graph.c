#include "libcuda/graph.h"
#include "libcuda/launch.h"

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    CUresult r = enter();
    if (!r && (!graph || flags))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && !(*graph = graph_new()))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    return leave(r);
}

CUresult cuGraphDestroy(CUgraph g)
{
    CUresult r = enter();
    if (!r && !handle_is(g, GRAPH_HANDLE))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        graph_free(g);
    return leave(r);
}

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

static bool is_kernel(CUgraphNode node)
{
    return node->work.type == CU_GRAPH_NODE_TYPE_KERNEL;
}

/* Of an edge between two nodes. */
static CUresult check_edge(const CUgraphEdgeData *edge, CUgraphNode from, CUgraphNode to)
{
    bool early = edge->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    if (edge->to_port || edge->type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
        edge->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER ||
        early != (edge->from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT) ||
        (early && (!is_kernel(from) || !is_kernel(to))))
        return CUDA_ERROR_INVALID_VALUE;
    return edge->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER ||
                   (early && device_target()->sm < LEAST_DEPENDENT_SM)
               ? CUDA_ERROR_NOT_SUPPORTED
               : CUDA_SUCCESS;
}

/* edges may be NULL. */
static CUresult add_dependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                 const CUgraphEdgeData *edges, size_t count)
{
    CUresult r = CUDA_SUCCESS;
    if (!handle_is(g, GRAPH_HANDLE) || (count && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!is_node(from[i]) || !is_node(to[i]) || from[i]->graph != g || to[i]->graph != g ||
            from[i] == to[i] || node_list_has(to[i]->dependencies, from[i]))
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !r && edges && i < count; i++)
        r = check_edge(&edges[i], from[i], to[i]);
    for (size_t i = 0; !r && i < count; i++) {
        bool early = edges && edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        if (!node_list_join(g, &to[i]->dependencies, from + i, 1) ||
            (early && !graph_make_early(to[i], from[i])))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return r;
}

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count)
{
    CUresult r = enter();
    return leave(r ? r : add_dependencies(g, from, to, NULL, count));
}

CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    CUresult r = enter();
    return leave(r ? r : add_dependencies(g, from, to, edges, count));
}

/* Fills in as many as there is room for, as all such queries do: *count goes in as the room and
 * comes out as what was given, or, where nodes is NULL, as how many there are. */
static void give(CUgraphNode *nodes, size_t *count, size_t *given, CUgraphNode node)
{
    if (nodes && *given < *count)
        nodes[*given] = node;
    ++*given;
}

static void end_giving(CUgraphNode *nodes, size_t *count, size_t given)
{
    for (size_t i = given; nodes && i < *count; i++)
        nodes[i] = NULL;
    if (!nodes || given < *count)
        *count = given;
}

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *count)
{
    size_t given = 0;
    CUresult r = enter();
    if (!r && (!handle_is(g, GRAPH_HANDLE) || !count))
        r = CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode n = r ? NULL : g->first; n; n = n->next)
        give(nodes, count, &given, n);
    if (!r)
        end_giving(nodes, count, given);
    return leave(r);
}

static CUresult get_dependencies(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                 size_t *count)
{
    static const CUgraphEdgeData programmatic = {
        .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
        .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
    };
    size_t given = 0;
    CUresult r = enter();
    if (!r && (!is_node(node) || !count))
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !r && i < node->dependencies.count; i++) {
        CUgraphNode d = node->dependencies.items[i];
        if (edges && i < *count)
            edges[i] = node_list_has(node->early, d) ? programmatic : (CUgraphEdgeData){ 0 };
        give(nodes, count, &given, d);
    }
    if (!r)
        end_giving(nodes, count, given);
    return leave(r);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return get_dependencies(node, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                       size_t *count)
{
    return get_dependencies(node, nodes, nodes ? edges : NULL, count);
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

static CUresult check_kernel_node(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    return params && is_node(node) && node->work.type == CU_GRAPH_NODE_TYPE_KERNEL
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult r = enter();
    r = r ? r : check_kernel_node(node, params);
    if (!r)
        *params = node->work.as.launch;
    return leave(r);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check_kernel_node(node, params);
    r = r ? r : launch_check(params);
    if (!r && !launch_keep(node->graph->arena, params, &node->work.as.launch))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    return leave(r);
}
