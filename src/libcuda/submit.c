#include "libcuda/submit.h"

#include "libcuda/capture.h"
#include "libcuda/queue.h"

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
    if (r || s->capture)
        return r ? r : capture_add(s, w);
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL && (driver_overlaps() || w->cooperative))
        return queue_launch(c, s, w);
    return work_run(c, w);
}

CUresult stream_record(CUcontext c, CUstream named, CUevent e)
{
    CUstream s;
    CUresult r = stream_ready(c, named, &s);
    if (r)
        return r;
    if (s->capture)
        return capture_record(s, e);
    e->capture = NULL;
    event_stamp(e);
    return CUDA_SUCCESS;
}

void stream_destroy(CUstream s)
{
    capture_lose(s);
    handle_free(s);
}
