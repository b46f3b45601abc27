/* Graphs: nodes of work and what each depends on; and stream capture, which puts the work for
 * streams into one. A capture starts in one stream, and others join it by waiting for an event that
 * was recorded in it. */
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
void graph_remove(CUgraphNode node); /* with all edges to and from it */
bool is_node(CUgraphNode node);      /* of some live graph */

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

/* Finds a stream that will get work, as stream_find does. The legacy stream would wait for the
 * others, which is refused while one of them is captured. */
CUresult stream_ready(CUcontext c, CUstream named, CUstream *stream);

/* Checks work and does it or, if the stream is captured, puts it into the graph. */
CUresult stream_submit(CUcontext c, CUstream named, const work *w);

CUresult stream_record(CUcontext c, CUstream named, CUevent e);

void stream_destroy(CUstream s); /* which ends the capture that it takes part in */

CUresult capture_begin(CUcontext context, CUstream named, CUstreamCaptureMode mode);

/* Ends a capture and gives its graph. A capture that is invalid, or whose streams have not all come
 * together, ends as well and gives an error. */
CUresult capture_end(CUcontext context, CUstream named, CUgraph *graph);
CUstreamCaptureStatus capture_status(CUstream s);

/* Tells the state of a stream's capture: all but the status is zero unless that is active. Only
 * status must not be NULL. */
CUresult capture_describe(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                          const CUgraphNode **dependencies, const CUgraphEdgeData **edges,
                          size_t *count);

/* Has the next node depend on these nodes as well, or on nothing else. */
CUresult capture_depend(CUstream s, const CUgraphNode *nodes, size_t count, bool replace);

/* Puts work after what a captured stream has so far. */
CUresult capture_add(CUstream s, const work *w);

/* Has a stream wait for an event. One of them or both are in a capture. */
CUresult capture_wait(CUstream s, CUevent e);

/* Refuses a call that a capture in this context forbids, and makes that capture invalid: a call
 * that the capture's mode takes for unsafe, or one that waits for a captured stream. */
typedef enum refused_call { UNSAFE_CALL, WAITING_CALL } refused_call;
CUresult capture_refuses(CUcontext c, refused_call call);

#endif
