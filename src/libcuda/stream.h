/* Streams and events. Work is done when it is submitted, so that a stream is no more than an order
 * and, while it is captured, a place in a graph. */
#ifndef PTXGEN_LIBCUDA_STREAM_H
#define PTXGEN_LIBCUDA_STREAM_H

#include "libcuda/graph.h"

enum { GREATEST_PRIORITY = -5 };

struct CUstream_st {
    handle handle;
    unsigned flags;
    uint64_t id;
    int priority;
    struct capture *capture; /* that it takes part in, or NULL */
    node_list tail;          /* of the capture: what the next node depends on */
};

struct CUevent_st {
    handle handle;
    unsigned flags;
    bool recorded;
    uint64_t nanoseconds;
    bool captured;           /* recorded last in a capture, where it stands for no time */
    struct capture *capture; /* that one, while it goes on */
    node_list at;
};

CUstream stream_new(CUcontext c, unsigned flags, int priority);

/* What a stream handle stands for in a context, also the three that need no object. */
CUresult stream_find(CUcontext c, CUstream named, CUstream *stream);

#endif
