/* Stream capture: work that would have been done becomes nodes of a graph. It starts in one stream,
 * and others join it by waiting for an event that was recorded in it. */
#ifndef PTXGEN_LIBCUDA_CAPTURE_H
#define PTXGEN_LIBCUDA_CAPTURE_H

#include "libcuda/stream.h"

CUresult capture_begin(CUcontext context, CUstream named, CUstreamCaptureMode mode);

/* Its graph. One that is invalid, or whose streams have not all come together, gives an error and
 * ends as well. */
CUresult capture_end(CUcontext context, CUstream named, CUgraph *graph);
CUstreamCaptureStatus capture_status(CUstream s);

/* How a stream's capture stands: all but the status only where that is active. */
typedef struct capture_info {
    CUstreamCaptureStatus status;
    cuuint64_t id; /* another one for each capture */
    CUgraph graph;
    node_list tail;         /* what the stream's next node will depend on */
    CUgraphEdgeData *edges; /* of these */
} capture_info;
CUresult capture_describe(CUstream s, capture_info *info);

/* Has the next node depend on these as well, or on nothing else. */
CUresult capture_depend(CUstream s, const CUgraphNode *nodes, size_t count, bool replace);

/* Puts work, or an event, behind what a captured stream has so far. */
CUresult capture_add(CUstream s, const work *w);
CUresult capture_record(CUstream s, CUevent e);

/* A stream waits for an event, one of them or both in a capture. */
CUresult capture_wait(CUstream s, CUevent e);

/* Calls that a capture in this context forbids: those that the capture's mode calls unsafe, those
 * that wait for a captured stream, and work in the legacy stream. They make the capture invalid. */
CUresult capture_refuses(CUcontext c);
CUresult capture_refuses_waiting(CUcontext c);
CUresult capture_refuses_legacy(CUcontext c);

/* A stream goes while it is captured. */
void capture_lose(CUstream s);

#endif
