#include "libcuda/submit.h"

#include "libcuda/capture.h"

CUresult stream_ready(CUcontext c, CUstream named, CUstream *stream)
{
    CUresult r = stream_find(c, named, stream);
    return r ? r : *stream == c->null_stream ? capture_refuses_legacy(c) : CUDA_SUCCESS;
}

CUresult stream_submit(CUcontext c, CUstream named, const work *w)
{
    CUstream s;
    CUresult r = stream_ready(c, named, &s);
    r = r ? r : work_check(w);
    return r ? r : s->capture ? capture_add(s, w) : work_run(c, w);
}

void stream_destroy(CUstream s)
{
    capture_lose(s);
    handle_free(s);
}
