/* Streams and events. Work is done when it is submitted, so that a stream is no more than an order
 * and, while it is captured, a place in a graph. */
#ifndef PTXGEN_LIBCUDA_STREAM_H
#define PTXGEN_LIBCUDA_STREAM_H

#include "libcuda/event.h"
#include "libcuda/graph.h"

enum { GREATEST_PRIORITY = -5, STREAM_ATTRIBUTES = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN + 1 };

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
    event_state state;
    struct capture *capture; /* that it was recorded in, while that goes on */
    node_list at;
};

/* The nearest priority that there is. */
int stream_priority(int wish);

CUstream stream_new(CUcontext c, unsigned flags, int priority);

/* What a stream handle stands for in a context, also the three that need no object. */
CUresult stream_find(CUcontext c, CUstream named, CUstream *stream);

#endif
