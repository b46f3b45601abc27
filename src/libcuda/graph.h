/* Graphs: nodes of work and what each depends on. */
#ifndef PTXGEN_LIBCUDA_GRAPH_H
#define PTXGEN_LIBCUDA_GRAPH_H

#include "libcuda/work.h"

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
    CUgraphNode copied_from; /* in a clone: a name, never followed */
    CUgraphNode copy;        /* for graph_copy */
};

struct CUgraph_st {
    handle handle;
    CUgraphNode first, last;
    size_t count;
    bool captured; /* it grows: streams name its nodes */
    bool inner;    /* it is a node's own and goes with the node */
};

/* Return NULL if there is no memory. graph_add takes work that was checked, and a graph in it is
 * the node's from then on; graph_copy takes a graph that is possible. */
CUgraph graph_new(void);
CUgraphNode graph_add(CUgraph g, const CUgraphNode *dependencies, size_t count, const work *w);
CUgraph graph_copy(CUgraph g);

void graph_free(CUgraph g);

/* Takes a node out, with all edges to and from it. */
void graph_remove(CUgraphNode node);

bool is_node(CUgraphNode node); /* of some live graph */

/* Counts the nodes, and those of graphs inside instead of these. */
size_t graph_work_count(CUgraph g);

bool graph_is_possible(CUgraph g); /* no function of its work is gone */

bool node_list_has(node_list list, CUgraphNode node);

/* Adds the nodes that a list does not have, in new memory of the graph. False: there is none. */
bool node_list_join(CUgraph g, node_list *list, const CUgraphNode *nodes, size_t count);

void node_list_drop(node_list *list, CUgraphNode node);

/* Marks these nodes and all that they depend on, and no others. */
void graph_mark_needed(CUgraph g, node_list nodes);

/* Lists all nodes, each after those that it depends on, otherwise as they were added; but a node
 * that may overlap with another comes right after it. Returns false if there is a circle. */
bool graph_order(CUgraph g, CUgraphNode *order);

#endif
