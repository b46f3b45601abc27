/* Contexts, and what they own besides modules and memory: streams and events.
 *
 * Work is done when it is submitted, so that a stream is no more than an order and, while it is
 * captured, a place in a graph. An event is the time at which it was recorded, or such a place. */
#ifndef PTXGEN_LIBCUDA_CONTEXT_H
#define PTXGEN_LIBCUDA_CONTEXT_H

#include "libcuda/driver.h"

enum {
    CONTEXT_LIMITS = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1,
    STREAM_ATTRIBUTES = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN + 1,
    GREATEST_PRIORITY = -5,
};

struct CUctx_st {
    handle handle;
    CUresult failure; /* of the first kernel that failed: every later call returns it */
    unsigned flags;
    uint64_t id;
    unsigned attached; /* calls of cuCtxAttach that cuCtxDetach has not taken back */
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    size_t limits[CONTEXT_LIMITS]; /* by CU_LIMIT_…: only the stack's is ever reached */
    unsigned retained;             /* of the primary context: 0 otherwise */
    bool primary;
    CUstream null_stream;   /* NULL and CU_STREAM_LEGACY */
    CUstream thread_stream; /* CU_STREAM_PER_THREAD, of all threads */
};

/* Nodes of a graph. */
typedef struct node_list {
    CUgraphNode *items;
    size_t count;
} node_list;

struct CUstream_st {
    handle handle;
    unsigned flags;
    uint64_t id;
    int priority;
    CUstreamAttrValue attributes[STREAM_ATTRIBUTES]; /* by id: hints, which are kept */
    struct capture *capture;                         /* that it takes part in, or NULL */
    node_list tail; /* of the capture: what the next node depends on, */
    bool joined;    /* and that an event is part of it: a programmatic launch comes after all */
};

struct CUevent_st {
    handle handle;
    unsigned flags;
    bool recorded, captured; /* captured: last recorded in a capture, so that it has no time */
    uint64_t nanoseconds;    /* by the host's clock */
    struct capture *capture; /* that it was recorded in, while that goes on */
    node_list at;
};

/* Returns the calling thread's context, or NULL if it has none or that was destroyed. */
CUcontext context_current(void);

/* Returns the nearest priority that there is. */
int stream_priority(int wish);

CUstream stream_new(CUcontext c, unsigned flags, int priority);

/* Finds the stream that a handle names in a context, also by the three that need no object. */
CUresult stream_find(CUcontext c, CUstream named, CUstream *stream);

/* Records an event now. */
void event_stamp(CUevent e);

#endif
