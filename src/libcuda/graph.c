#include "libcuda/graph.h"

CUgraph graph_new(void)
{
    CUgraph g = NULL;
    return handle_new_with_arena(GRAPH_HANDLE, sizeof *g, NULL);
}

void graph_free(CUgraph g)
{
    for (CUgraphNode n = g->first; n; n = n->next)
        if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            graph_free(n->work.as.graph);
    handle_free(g);
}

bool node_list_has(node_list list, CUgraphNode node)
{
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i] == node)
            return true;
    return false;
}

bool node_list_join(CUgraph g, node_list *list, const CUgraphNode *nodes, size_t count)
{
    node_list all = {
        arena_try_alloc(g->handle.arena, (list->count + count + 1) * sizeof(CUgraphNode)), 0
    };
    if (!all.items)
        return false;
    for (size_t i = 0; i < list->count; i++)
        all.items[all.count++] = list->items[i];
    for (size_t i = 0; i < count; i++)
        if (!node_list_has(*list, nodes[i]))
            all.items[all.count++] = nodes[i];
    *list = all;
    return true;
}

CUgraphNode graph_add(CUgraph g, const CUgraphNode *dependencies, size_t count, const work *w)
{
    CUgraphNode node = arena_try_alloc(g->handle.arena, sizeof *node);
    if (!node)
        return NULL;
    *node = (struct CUgraphNode_st){ .graph = g, .self = node };
    if (!work_keep(g->handle.arena, w, &node->work) ||
        !node_list_join(g, &node->dependencies, dependencies, count))
        return NULL;
    if (g->last)
        g->last->next = node;
    else
        g->first = node;
    g->last = node;
    g->count++;
    if (w->type == CU_GRAPH_NODE_TYPE_GRAPH)
        w->as.graph->inner = true;
    return node;
}

void node_list_drop(node_list *list, CUgraphNode node)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] != node)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

void graph_remove(CUgraphNode node)
{
    CUgraph g = node->graph;
    CUgraphNode before = NULL;
    for (CUgraphNode n = g->first; n; n = n->next) {
        node_list_drop(&n->dependencies, node);
        node_list_drop(&n->early, node);
        if (n->next == node)
            before = n;
    }
    *(before ? &before->next : &g->first) = node->next;
    if (g->last == node)
        g->last = before;
    g->count--;
    if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
        graph_free(node->work.as.graph);
}

size_t graph_work_count(CUgraph g)
{
    size_t count = 0;
    for (CUgraphNode n = g->first; n; n = n->next)
        count += n->work.type == CU_GRAPH_NODE_TYPE_GRAPH ? graph_work_count(n->work.as.graph) : 1;
    return count;
}

bool graph_is_valid(CUgraph g)
{
    for (CUgraphNode n = g->first; n; n = n->next)
        if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH ? !graph_is_valid(n->work.as.graph)
                                                     : !work_is_valid(&n->work))
            return false;
    return true;
}

static bool copy_list(CUgraph g, const node_list *from, node_list *to)
{
    bool copied = node_list_join(g, to, from->items, from->count);
    for (size_t i = 0; i < to->count; i++)
        to->items[i] = to->items[i]->copy;
    return copied;
}

CUgraph graph_copy(CUgraph g)
{
    CUgraph copy = graph_new();
    bool right = copy;
    for (CUgraphNode n = g->first; right && n; n = n->next) {
        work w = n->work;
        bool inner = w.type == CU_GRAPH_NODE_TYPE_GRAPH;
        right = !inner || (w.as.graph = graph_copy(w.as.graph));
        n->copy = right ? graph_add(copy, NULL, 0, &w) : NULL;
        if (n->copy)
            n->copy->copied_from = n;
        else if (inner && right)
            graph_free(w.as.graph);
        right = n->copy;
    }
    for (CUgraphNode n = g->first; right && n; n = n->next)
        right = copy_list(copy, &n->dependencies, &n->copy->dependencies) &&
                copy_list(copy, &n->early, &n->copy->early);
    if (right || !copy)
        return copy;
    graph_free(copy);
    return NULL;
}

void graph_mark_needed(CUgraph g, node_list nodes)
{
    for (CUgraphNode n = g->first; n; n = n->next)
        n->marked = false;
    for (size_t i = 0; i < nodes.count; i++)
        nodes.items[i]->marked = true;
    for (bool found = true; found;) {
        found = false;
        for (CUgraphNode n = g->first; n; n = n->next)
            for (size_t i = 0; n->marked && i < n->dependencies.count; i++)
                if (!n->dependencies.items[i]->marked)
                    n->dependencies.items[i]->marked = found = true;
    }
}

static bool all_marked(node_list nodes)
{
    for (size_t i = 0; i < nodes.count; i++)
        if (!nodes.items[i]->marked)
            return false;
    return true;
}

bool graph_order(CUgraph g, CUgraphNode *order)
{
    size_t count = 0;
    for (CUgraphNode n = g->first; n; n = n->next) {
        n->marked = false;
        n->follower = NULL;
    }
    for (CUgraphNode n = g->first; n; n = n->next)
        if (n->dependencies.count == 1 && n->early.count == 1 && !n->early.items[0]->follower)
            n->early.items[0]->follower = n;
    for (bool found = true; found;) {
        found = false;
        for (CUgraphNode n = g->first; n; n = n->next)
            for (CUgraphNode m = n; m && !m->marked && all_marked(m->dependencies);
                 m = m->follower) {
                m->marked = found = true;
                order[count++] = m;
            }
    }
    return count == g->count;
}

bool is_node(CUgraphNode node)
{
    for (CUgraph g = NULL; (g = handle_next(GRAPH_HANDLE, g));)
        for (CUgraphNode n = g->first; n; n = n->next)
            if (n == node)
                return true;
    return false;
}
