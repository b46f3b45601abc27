/* Graphs: nodes of work and what each depends on. */
#ifndef PTXGEN_LIBCUDA_GRAPH_H
#define PTXGEN_LIBCUDA_GRAPH_H

#include "libcuda/work.h"

typedef struct node_list {
    CUgraphNode *items;
    size_t count;
} node_list;

/* Nodes, lists and parameters live in the graph's arena. */
struct CUgraphNode_st {
    CUgraphNode next;
    CUgraph graph;
    work work;
    node_list dependencies;
    node_list early;      /* those of them that have a programmatic edge to this node */
    CUgraphNode alone;    /* this one: a list of itself needs no memory */
    bool marked;          /* by the function that walks the graph */
    CUgraphNode follower; /* by graph_order: the first that depends on this one alone, and early */
    CUgraphNode copied_from,
        copy; /* of a clone: names, of which the second is only for graph_copy */
};

struct CUgraph_st {
    handle handle;
    arena *arena;
    CUgraphNode first, last;
    size_t count;
    bool captured; /* it grows: streams name its nodes */
    bool inner;    /* a node's own, which goes with that */
};

/* NULL where there is no memory, as from graph_add. */
CUgraph graph_new(void);
void graph_free(CUgraph g);

/* The number of nodes, and of those that are graphs the number of theirs. */
size_t graph_work_count(CUgraph g);

/* Adds work that was checked. A graph in it is the node's from then on. */
CUgraphNode graph_add(CUgraph g, const CUgraphNode *dependencies, size_t count, const work *w);

/* Whether an edge from a node to one of a type may be such a one. */
CUresult graph_check_edge(const CUgraphEdgeData *edge, CUgraphNode from, CUgraphNodeType to);

bool node_list_has(node_list list, CUgraphNode node);

/* Adds those that a list has not, in memory of the graph; what its old items are in stays as it is.
 * False where there is no memory. */
bool node_list_join(CUgraph g, node_list *list, const CUgraphNode *nodes, size_t count);

void node_list_drop(node_list *list, CUgraphNode node);

/* Takes a node out, with all edges to and from it. */
void graph_remove(CUgraphNode node);

/* Whether all its work can be done: no function of it is gone. */
bool graph_is_possible(CUgraph g);

/* A graph of the same work and edges, which is possible; NULL where there is no memory. */
CUgraph graph_copy(CUgraph g);

/* Makes the edge from a kernel's node to another's, which depends on it, a programmatic one. False
 * where there is no memory. */
bool graph_make_early(CUgraphNode node, CUgraphNode dependency);

/* Marks these nodes and all that they depend on, and no others. */
void graph_mark_needed(CUgraph g, node_list nodes);

/* All nodes, each behind those it depends on, otherwise as they were added, but that what may
 * overlap with a node stands next to it. False where nodes depend on each other in a circle. */
bool graph_order(CUgraph g, CUgraphNode *order);

bool is_node(CUgraphNode node);

#endif
