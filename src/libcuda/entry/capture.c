#include "libcuda/capture.h"

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : capture_begin(c, s, mode));
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *graph)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : capture_end(c, s, graph));
}

CUresult cuStreamIsCapturing(CUstream named, CUstreamCaptureStatus *status)
{
    CUstream s;
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    r = r ? r : status ? stream_find(c, named, &s) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *status = capture_status(s);
    return leave(r);
}

CUresult cuStreamBeginCapture(CUstream s)
{
    return cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static CUresult describe(CUstream named, CUstreamCaptureStatus *status, capture_info *info)
{
    CUstream s;
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    r = r ? r : status ? stream_find(c, named, &s) : CUDA_ERROR_INVALID_VALUE;
    r = r ? r : capture_describe(s, info);
    if (!r)
        *status = info->status;
    return leave(r);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies,
                                   const CUgraphEdgeData **edges, size_t *count)
{
    capture_info info;
    CUresult r = edges && !dependencies ? CUDA_ERROR_INVALID_VALUE : describe(s, status, &info);
    if (r)
        return r;
    if (id)
        *id = info.id;
    if (graph)
        *graph = info.graph;
    if (dependencies)
        *dependencies = info.tail.items;
    if (edges)
        *edges = info.edges;
    if (count)
        *count = info.tail.count;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(s, status, id, graph, dependencies, NULL, count);
}

CUresult cuStreamGetCaptureInfo(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo_v3(s, status, id, NULL, NULL, NULL, NULL);
}

static CUresult depend(CUstream named, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
                       size_t count, unsigned flags)
{
    CUstream s;
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !nodes)))
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !r && edges && i < count; i++)
        if (edges[i].from_port || edges[i].to_port || edges[i].type)
            r = CUDA_ERROR_NOT_SUPPORTED;
    r = r ? r : stream_find(c, named, &s);
    return leave(r ? r
                   : capture_depend(s, nodes, count, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream s, CUgraphNode *nodes,
                                              const CUgraphEdgeData *edges, size_t count,
                                              unsigned flags)
{
    return depend(s, nodes, edges, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream s, CUgraphNode *nodes, size_t count,
                                           unsigned flags)
{
    return depend(s, nodes, NULL, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult r = enter_to_ask();
    if (!r && (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        CUstreamCaptureMode before = this_thread()->capture_mode;
        this_thread()->capture_mode = *mode;
        *mode = before;
    }
    return leave(r);
}

PER_THREAD_ALIAS(cuStreamBeginCapture, _ptsz);
PER_THREAD_ALIAS(cuStreamBeginCapture_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamGetCaptureInfo, _ptsz);
PER_THREAD_ALIAS(cuStreamGetCaptureInfo_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamGetCaptureInfo_v3, _ptsz);
PER_THREAD_ALIAS(cuStreamUpdateCaptureDependencies, _ptsz);
PER_THREAD_ALIAS(cuStreamUpdateCaptureDependencies_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamEndCapture, _ptsz);
PER_THREAD_ALIAS(cuStreamIsCapturing, _ptsz);
