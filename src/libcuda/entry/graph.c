/* Graphs, the edges between their nodes, and node parameters, of which each node has a copy. */
#include "libcuda/graph.h"

#include "libcuda/entry/entry.h"
#include "libcuda/launch.h"

static CUresult clone_graph(CUgraph *copy, CUgraph g)
{
    if (!copy || !handle_is(g, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!graph_is_valid(g))
        return CUDA_ERROR_INVALID_HANDLE;
    CUgraph made = graph_copy(g);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = made;
    return CUDA_SUCCESS;
}

static CUresult find_in_clone(CUgraphNode *found, CUgraphNode original, CUgraph copy)
{
    if (!found || !is_node(original) || !handle_is(copy, GRAPH_HANDLE))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode n = copy->first;
    while (n && n->copied_from != original)
        n = n->next;
    if (n)
        *found = n;
    return check_value(n);
}

/* Finishes a list. *count: capacity, then the nodes written, or found if nodes is NULL. */
static CUresult end_list(CUgraphNode *nodes, size_t found, size_t *count)
{
    for (size_t i = found; nodes && i < *count; i++)
        nodes[i] = NULL;
    if (!nodes || found < *count)
        *count = found;
    return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph g, bool roots, CUgraphNode *nodes, size_t *count)
{
    size_t found = 0;
    if (!handle_is(g, GRAPH_HANDLE) || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode n = g->first; n; n = n->next) {
        if (roots && n->dependencies.count)
            continue;
        if (nodes && found < *count)
            nodes[found] = n;
        found++;
    }
    return end_list(nodes, found, count);
}

/* Lists the edges of a graph, limited to edges from only_from and to only_to unless these are NULL.
 * The arrays may be NULL; edges is filled only together with from or to. */
static CUresult list_edges(CUgraph g, CUgraphNode only_from, CUgraphNode only_to, CUgraphNode *from,
                           CUgraphNode *to, CUgraphEdgeData *edges, size_t *count)
{
    static const CUgraphEdgeData plain, programmatic = {
        .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
        .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
    };
    size_t found = 0;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode n = g->first; n; n = n->next)
        for (size_t i = 0; i < n->dependencies.count; i++) {
            CUgraphNode before = n->dependencies.items[i];
            if ((only_from && before != only_from) || (only_to && n != only_to))
                continue;
            bool room = found < *count;
            if (from && room)
                from[found] = before;
            if (to && room)
                to[found] = n;
            if (edges && room && (from || to))
                edges[found] = node_list_has(n->early, before) ? programmatic : plain;
            found++;
        }
    return end_list(from ? from : to, found, count);
}

/* Checks the data of an edge from a node to a node of type `to`. */
static CUresult check_edge(const CUgraphEdgeData *edge, CUgraphNode from, CUgraphNodeType to)
{
    bool early = edge->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    bool kernels = from->work.type == CU_GRAPH_NODE_TYPE_KERNEL && to == CU_GRAPH_NODE_TYPE_KERNEL;
    if (edge->to_port || edge->type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
        edge->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER ||
        early != (edge->from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT) || (early && !kernels))
        return CUDA_ERROR_INVALID_VALUE;
    return edge->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER ||
                   (early && driver.target->sm < LEAST_DEPENDENT_SM)
               ? CUDA_ERROR_NOT_SUPPORTED
               : CUDA_SUCCESS;
}

/* Checks pairs of nodes of a graph that must be connected by an edge, or must not. */
static CUresult check_ends(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t count,
                           bool connected)
{
    if (!handle_is(g, GRAPH_HANDLE) || (count && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!is_node(from[i]) || !is_node(to[i]) || from[i]->graph != g || to[i]->graph != g ||
            from[i] == to[i] || node_list_has(to[i]->dependencies, from[i]) != connected)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Adds edges. Their data may be NULL. */
static CUresult add_dependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                 const CUgraphEdgeData *edges, size_t count)
{
    CUresult r = check_ends(g, from, to, count, false);
    for (size_t i = 0; !r && edges && i < count; i++)
        r = check_edge(&edges[i], from[i], to[i]->work.type);
    for (size_t i = 0; !r && i < count; i++) {
        bool early = edges && edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        if (!node_list_join(g, &to[i]->dependencies, from + i, 1) ||
            (early && !node_list_join(g, &to[i]->early, from + i, 1)))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return r;
}

static CUresult remove_dependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t count)
{
    CUresult r = check_ends(g, from, to, count, true);
    for (size_t i = 0; !r && i < count; i++) {
        node_list_drop(&to[i]->dependencies, from[i]);
        node_list_drop(&to[i]->early, from[i]);
    }
    return r;
}

static CUresult add_node(CUgraphNode *node, CUgraph g, const CUgraphNode *from, size_t count,
                         const work *w)
{
    if (!node || !handle_is(g, GRAPH_HANDLE) || (count && !from))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!is_node(from[i]) || from[i]->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
    CUresult r = work_check(w);
    CUgraphNode added = r ? NULL : graph_add(g, from, count, w);
    if (added)
        *node = added;
    return r || added ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Adds a child graph node with a copy of a graph. */
static CUresult add_graph_node(CUgraphNode *node, CUgraph g, const CUgraphNode *from, size_t count,
                               CUgraph inner)
{
    if (!handle_is(inner, GRAPH_HANDLE) || inner == g)
        return CUDA_ERROR_INVALID_VALUE;
    if (!graph_is_valid(inner))
        return CUDA_ERROR_INVALID_HANDLE;
    work w = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .as.graph = graph_copy(inner) };
    CUresult r = w.as.graph ? add_node(node, g, from, count, &w) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r && w.as.graph)
        graph_free(w.as.graph);
    return r;
}

/* Adds a node of any type. The edge data may be NULL. */
static CUresult add_any_node(CUgraphNode *node, CUgraph g, const CUgraphNode *from,
                             const CUgraphEdgeData *edges, size_t count,
                             const CUgraphNodeParams *params)
{
    work w;
    CUresult r = check_value(params && (from || !count || !edges));
    for (size_t i = 0; !r && edges && i < count; i++)
        r = is_node(from[i]) ? check_edge(&edges[i], from[i], params->type)
                             : CUDA_ERROR_INVALID_VALUE;
    r = r ? r : work_of_params(params, false, &w);
    if (!r && w.type == CU_GRAPH_NODE_TYPE_GRAPH)
        r = add_graph_node(node, g, from, count, w.as.graph);
    else if (!r)
        r = add_node(node, g, from, count, &w);
    for (size_t i = 0; !r && edges && i < count; i++)
        if (edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
            !node_list_join(g, &(*node)->early, from + i, 1))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    return r;
}

/* Checks the type of a node, and that params is not NULL. */
static CUresult check_node(CUgraphNode node, CUgraphNodeType type, const void *params)
{
    return check_value(params && is_node(node) && node->work.type == type);
}

static CUresult set_node(CUgraphNode node, const work *w)
{
    work kept;
    CUresult r = check_node(node, w->type, w);
    r = r ? r : work_check(w);
    if (!r && !work_keep(node->graph->handle.arena, w, &kept))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r) {
        node->work.function = kept.function;
        node->work.as = kept.as;
    }
    return r;
}

static CUresult set_any_node(CUgraphNode node, const CUgraphNodeParams *params)
{
    work w;
    CUresult r = work_of_params(params, true, &w);
    return r ? r : set_node(node, &w);
}

/* Sets whether a launch is cooperative: all its blocks must be resident at once. */
static CUresult set_cooperative(CUgraphNode node, bool cooperative)
{
    work w = node->work;
    w.cooperative = cooperative;
    CUresult r = work_is_valid(&w) ? work_check(&w) : CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        node->work.cooperative = cooperative;
    return r;
}

/* Returns a launch attribute. The priority is stored but has no effect. */
static CUresult get_node_attribute(CUgraphNode node, CUkernelNodeAttrID which,
                                   CUkernelNodeAttrValue *value)
{
    if (which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        value->cooperative = node->work.cooperative;
    else if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = node->work.priority;
    else
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult set_node_attribute(CUgraphNode node, CUkernelNodeAttrID which,
                                   const CUkernelNodeAttrValue *value)
{
    if (which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        return set_cooperative(node, value->cooperative);
    if (which != CU_LAUNCH_ATTRIBUTE_PRIORITY)
        return CUDA_ERROR_NOT_SUPPORTED;
    node->work.priority = value->priority;
    return CUDA_SUCCESS;
}

/* Results of rows for nodes of a type, with params as a member of the work. */
#define ADD_NODE(type, member, value) \
    THEN(check_value(params), add_node(node, g, from, count, WORK(type, member, value)))
#define SET_PARAMS(type, member, value) \
    THEN(check_value(params), set_node(node, WORK(type, member, value)))

#include "libcuda/entry/graph.def"
