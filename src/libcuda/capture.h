/* Work for streams, and stream capture, which puts it into a graph. A capture starts in one stream,
 * and others join it by waiting for an event that was recorded in it. */
#ifndef PTXGEN_LIBCUDA_CAPTURE_H
#define PTXGEN_LIBCUDA_CAPTURE_H

#include "libcuda/graph.h"

/* Finds a stream that will get work, as stream_find does. The legacy stream would wait for the
 * others, which is refused while one of them is captured. */
CUresult stream_ready(CUcontext c, CUstream named, CUstream *stream);

/* Checks work and does it or, if the stream is captured, puts it into the graph. */
CUresult stream_submit(CUcontext c, CUstream named, const work *w);

CUresult stream_record(CUcontext c, CUstream named, CUevent e);

/* Frees a stream, and ends the capture that it takes part in. */
void stream_destroy(CUstream s);

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
