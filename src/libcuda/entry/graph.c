/* Graphs as a whole, and the edges between their nodes. */
#include "libcuda/graph.h"

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
    if (!r && (!handle_is(g, GRAPH_HANDLE) || g->captured || g->inner))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        graph_free(g);
    return leave(r);
}

static CUresult clone(CUgraph *copy, CUgraph g)
{
    if (!copy || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!graph_is_possible(g))
        return CUDA_ERROR_INVALID_HANDLE;
    CUgraph made = graph_copy(g);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = made;
    return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *copy, CUgraph g)
{
    CUresult r = enter();
    return leave(r ? r : clone(copy, g));
}

CUresult cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode original, CUgraph copy)
{
    CUresult r = enter();
    if (!r && (!found || !is_node(original) || !handle_is(copy, GRAPH_HANDLE)))
        r = CUDA_ERROR_INVALID_VALUE;
    CUgraphNode n = r ? NULL : copy->first;
    while (n && n->copied_from != original)
        n = n->next;
    if (!r && !n)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *found = n;
    return leave(r);
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
        r = graph_check_edge(&edges[i], from[i], to[i]->work.type);
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

static CUresult remove_dependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t count)
{
    if (!handle_is(g, GRAPH_HANDLE) || (count && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!is_node(from[i]) || !is_node(to[i]) || to[i]->graph != g ||
            !node_list_has(to[i]->dependencies, from[i]))
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        node_list_drop(&to[i]->dependencies, from[i]);
        node_list_drop(&to[i]->early, from[i]);
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t count)
{
    CUresult r = enter();
    return leave(r ? r : remove_dependencies(g, from, to, count));
}

/* Two nodes have at most one edge, so that its data need not name it. */
CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edges, size_t count)
{
    (void)edges;
    return cuGraphRemoveDependencies(g, from, to, count);
}

/* Where answers go: as many as there is room for. As in all such queries, *count goes in as the
 * room and comes out as what was given or, where nodes is NULL, as how many there are. */
typedef struct answers {
    CUgraphNode *nodes, *others; /* others: the other ends of edges, or NULL */
    CUgraphEdgeData *edges;      /* or NULL */
    size_t *count, given;
} answers;

static void give(answers *a, CUgraphNode node)
{
    if (a->nodes && a->given < *a->count)
        a->nodes[a->given] = node;
    a->given++;
}

/* The edge between from and to, and the end of it that was asked for. */
static void give_edge(answers *a, CUgraphNode node, CUgraphNode from, CUgraphNode to)
{
    static const CUgraphEdgeData programmatic = {
        .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
        .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
    };
    bool room = a->nodes && a->given < *a->count;
    if (room && a->edges)
        a->edges[a->given] = node_list_has(to->early, from) ? programmatic : (CUgraphEdgeData){ 0 };
    if (room && a->others)
        a->others[a->given] = to;
    give(a, node);
}

static void end_giving(answers *a)
{
    for (size_t i = a->given; a->nodes && i < *a->count; i++)
        a->nodes[i] = NULL;
    if (!a->nodes || a->given < *a->count)
        *a->count = a->given;
}

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *count)
{
    answers a = { .nodes = nodes, .count = count };
    CUresult r = enter();
    if (!r && (!handle_is(g, GRAPH_HANDLE) || !count))
        r = CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode n = r ? NULL : g->first; n; n = n->next)
        give(&a, n);
    if (!r)
        end_giving(&a);
    return leave(r);
}

CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *nodes, size_t *count)
{
    answers a = { .nodes = nodes, .count = count };
    CUresult r = enter();
    if (!r && (!handle_is(g, GRAPH_HANDLE) || !count))
        r = CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode n = r ? NULL : g->first; n; n = n->next)
        if (!n->dependencies.count)
            give(&a, n);
    if (!r)
        end_giving(&a);
    return leave(r);
}

CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                            size_t *count)
{
    answers a = { from, to, edges, count, 0 };
    CUresult r = enter();
    if (!r && (!handle_is(g, GRAPH_HANDLE) || !count || !from != !to))
        r = CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode n = r ? NULL : g->first; n; n = n->next)
        for (size_t i = 0; i < n->dependencies.count; i++)
            give_edge(&a, n->dependencies.items[i], n->dependencies.items[i], n);
    if (!r)
        end_giving(&a);
    return leave(r);
}

CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return cuGraphGetEdges_v2(g, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                       size_t *count)
{
    answers a = { .nodes = nodes, .edges = edges, .count = count };
    CUresult r = enter();
    if (!r && (!is_node(node) || !count))
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !r && i < node->dependencies.count; i++)
        give_edge(&a, node->dependencies.items[i], node->dependencies.items[i], node);
    if (!r)
        end_giving(&a);
    return leave(r);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes,
                                         CUgraphEdgeData *edges, size_t *count)
{
    answers a = { .nodes = nodes, .edges = edges, .count = count };
    CUresult r = enter();
    if (!r && (!is_node(node) || !count))
        r = CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode n = r ? NULL : node->graph->first; n; n = n->next)
        if (node_list_has(n->dependencies, node))
            give_edge(&a, n, node, n);
    if (!r)
        end_giving(&a);
    return leave(r);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}
