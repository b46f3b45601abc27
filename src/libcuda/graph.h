/* Graphs, which are nodes of work with dependencies, and stream capture, which adds the work of
 * streams to a graph. A capture begins in one stream. Other streams join it when they wait for an
 * event that was recorded in it. */
#pragma once

#include "libcuda/work.h"

/* A node. Nodes, lists and parameters are allocated in the graph's arena. */
struct CUgraphNode_st {
    CUgraphNode next;
    CUgraph graph;
    work work;
    node_list dependencies;
    node_list early;         /* the dependencies with a programmatic edge to this node */
    CUgraphNode self;        /* this node; the items of a one-element list */
    bool marked;             /* scratch of graph traversals */
    CUgraphNode follower;    /* for graph_order: first node whose only edge is programmatic from
                             here */
    CUgraphNode copied_from; /* in a clone: the original; never dereferenced */
    CUgraphNode copy;        /* scratch of graph_copy */
};

struct CUgraph_st {
    handle handle;
    CUgraphNode first, last;
    size_t count;
    bool captured; /* a capture is adding nodes; streams refer to them */
    bool inner;    /* a child graph, owned and freed by its node */
};

/* Create a graph, a node or a deep copy; NULL if memory runs out. graph_add needs checked work and
 * takes ownership of a graph in it. graph_copy needs graph_is_valid. */
CUgraph graph_new(void);
CUgraphNode graph_add(CUgraph g, const CUgraphNode *dependencies, size_t count, const work *w);
CUgraph graph_copy(CUgraph g);

void graph_free(CUgraph g);
void graph_remove(CUgraphNode node); /* removes the node and its edges */
bool is_node(CUgraphNode node);      /* true for a node of a live graph */

/* Counts the nodes, with each child graph replaced by its nodes. */
size_t graph_work_count(CUgraph g);

bool graph_is_valid(CUgraph g); /* all functions and events it uses exist */

bool node_list_has(node_list list, CUgraphNode node);

/* Adds nodes that are not in the list, in new memory. Returns false if memory runs out. */
bool node_list_join(CUgraph g, node_list *list, const CUgraphNode *nodes, size_t count);

void node_list_drop(node_list *list, CUgraphNode node);

/* Marks these nodes and all their direct and indirect dependencies; unmarks all others. */
void graph_mark_needed(CUgraph g, node_list nodes);

/* Writes all nodes to order in topological order, otherwise in order of addition. A node that may
 * overlap with its predecessor follows it directly. Returns false if the graph has a cycle. */
bool graph_order(CUgraph g, CUgraphNode *order);

/* Finds the stream for new work, like stream_find. Refuses the legacy stream while a blocking
 * stream of the context is being captured, because the legacy stream would wait for it. */
CUresult stream_ready(CUcontext c, CUstream named, CUstream *stream);

/* Checks work, then runs it or, during capture, adds it to the graph. */
CUresult stream_submit(CUcontext c, CUstream named, const work *w);

CUresult stream_record(CUcontext c, CUstream named, CUevent e);

void stream_destroy(CUstream s); /* invalidates the capture it is part of */

CUresult capture_begin(CUcontext context, CUstream named, CUstreamCaptureMode mode);

/* Ends a capture and returns its graph. Fails if it is invalid or a stream was not joined. */
CUresult capture_end(CUcontext context, CUstream named, CUgraph *graph);
CUstreamCaptureStatus capture_status(CUstream s);

/* Returns a capture's state; zeros unless active. All pointers but status may be NULL. */
CUresult capture_describe(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                          const CUgraphNode **dependencies, const CUgraphEdgeData **edges,
                          size_t *count);

/* Adds these nodes to the dependencies of the stream's next node, or replaces them. */
CUresult capture_depend(CUstream s, const CUgraphNode *nodes, size_t count, bool replace);

/* Adds work to the graph after the captured stream's last nodes. */
CUresult capture_add(CUstream s, const work *w);

/* Makes a stream wait for an event, where either or both are in a capture. */
CUresult capture_wait(CUstream s, CUevent e);

/* Refuses a call that an active capture forbids, and invalidates the capture: calls that wait
 * for a captured stream or that the capture's mode treats as unsafe. */
typedef enum refused_call { UNSAFE_CALL, WAITING_CALL } refused_call;
CUresult capture_refuses(CUcontext c, refused_call call);
