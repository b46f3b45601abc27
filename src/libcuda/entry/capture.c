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
    CUresult r = enter_context(&c);
    r = r ? r : status ? stream_find(c, named, &s) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *status = capture_status(s);
    return leave(r);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult r = enter();
    if (!r && (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        CUstreamCaptureMode before = this_thread()->capture_mode;
        this_thread()->capture_mode = *mode;
        *mode = before;
    }
    return leave(r);
}

PER_THREAD_ALIAS(cuStreamBeginCapture_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamEndCapture, _ptsz);
PER_THREAD_ALIAS(cuStreamIsCapturing, _ptsz);
