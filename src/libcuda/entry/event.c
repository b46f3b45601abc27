/* Events: the time at which they were recorded, by the host's clock, or a place in a capture. */
#include "libcuda/capture.h"
#include "libcuda/submit.h"

static CUresult create(CUcontext c, CUevent *event, unsigned flags)
{
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (!event || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    CUevent e = handle_new(EVENT_HANDLE, sizeof *e, c);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->flags = flags;
    *event = e;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : create(c, event, flags));
}

static CUresult find(CUcontext *c, CUevent e)
{
    CUresult r = enter_context(c);
    return r ? r : handle_is(e, EVENT_HANDLE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventDestroy_v2(CUevent e)
{
    CUcontext c;
    CUresult r = find(&c, e);
    if (!r)
        handle_free(e);
    return leave(r);
}

CUresult cuEventDestroy(CUevent e)
{
    return cuEventDestroy_v2(e);
}

CUresult cuEventRecord(CUevent e, CUstream stream)
{
    CUcontext c;
    CUresult r = find(&c, e);
    return leave(r ? r : stream_record(c, stream, e));
}

CUresult cuEventRecordWithFlags(CUevent e, CUstream stream, unsigned flags)
{
    return flags ? CUDA_ERROR_NOT_SUPPORTED : cuEventRecord(e, stream);
}

CUresult cuEventQuery(CUevent e)
{
    CUcontext c;
    CUresult r = find(&c, e);
    return leave(r ? r : e->captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS);
}

CUresult cuEventSynchronize(CUevent e)
{
    return cuEventQuery(e);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to)
{
    CUcontext c;
    CUresult r = find(&c, from);
    if (!r && !milliseconds)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && !handle_is(to, EVENT_HANDLE))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r && (from->captured || to->captured))
        r = CUDA_ERROR_CAPTURED_EVENT;
    if (!r &&
        (!from->recorded || !to->recorded || (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        *milliseconds = (float)((double)to->nanoseconds - (double)from->nanoseconds) / 1e6f;
    return leave(r);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to)
{
    return cuEventElapsedTime_v2(milliseconds, from, to);
}

/* Whatever was recorded is done, so that only captures have to know. */
static CUresult wait(CUcontext c, CUstream stream, CUevent e, unsigned flags)
{
    CUstream s;
    CUresult r = flags ? CUDA_ERROR_NOT_SUPPORTED : stream_ready(c, stream, &s);
    return r ? r : s->capture || e->capture ? capture_wait(s, e) : CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent e, unsigned flags)
{
    CUcontext c;
    CUresult r = find(&c, e);
    return leave(r ? r : wait(c, stream, e, flags));
}

PER_THREAD_ALIAS(cuEventRecord, _ptsz);
PER_THREAD_ALIAS(cuEventRecordWithFlags, _ptsz);
PER_THREAD_ALIAS(cuStreamWaitEvent, _ptsz);
