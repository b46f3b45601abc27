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
    e->state.flags = flags;
    *event = e;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
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

/* What is external is work in a capture: a node that does it whenever the graph runs. */
static CUresult submit_external(CUcontext c, CUstream named, CUgraphNodeType type, CUevent e)
{
    return stream_submit(c, named, &(work){ .type = type, .as.event = e });
}

CUresult cuEventRecordWithFlags(CUevent e, CUstream stream, unsigned flags)
{
    CUcontext c;
    CUresult r = find(&c, e);
    if (!r && flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        r = CUDA_ERROR_INVALID_VALUE;
    return leave(r       ? r
                 : flags ? submit_external(c, stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e)
                         : stream_record(c, stream, e));
}

CUresult cuEventRecord(CUevent e, CUstream stream)
{
    return cuEventRecordWithFlags(e, stream, 0);
}

CUresult cuEventQuery(CUevent e)
{
    CUcontext c;
    CUresult r = find(&c, e);
    return leave(r ? r : e->state.captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS);
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
    if (!r && (from->state.captured || to->state.captured))
        r = CUDA_ERROR_CAPTURED_EVENT;
    if (!r && (!from->state.recorded || !to->state.recorded ||
               (from->state.flags | to->state.flags) & CU_EVENT_DISABLE_TIMING))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        *milliseconds =
            (float)((double)to->state.nanoseconds - (double)from->state.nanoseconds) / 1e6f;
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
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags)
        return submit_external(c, stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
    CUresult r = stream_ready(c, stream, &s);
    return r ? r : s->capture || e->capture ? capture_wait(s, e) : CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent e, unsigned flags)
{
    CUcontext c;
    CUresult r = find(&c, e);
    return leave(r ? r : wait(c, stream, e, flags));
}

/* Behind all work of a context, which is done, and ahead of all that it gets. */
static CUresult find_in(CUcontext c, CUevent e)
{
    CUresult r = enter();
    if (!r && (!handle_is(c, CONTEXT_HANDLE) || !handle_is(e, EVENT_HANDLE)))
        r = CUDA_ERROR_INVALID_HANDLE;
    return r ? r : capture_refuses_waiting(c);
}

CUresult cuCtxRecordEvent(CUcontext c, CUevent e)
{
    CUresult r = find_in(c, e);
    if (!r) {
        e->capture = NULL;
        event_stamp(e);
    }
    return leave(r);
}

CUresult cuCtxWaitEvent(CUcontext c, CUevent e)
{
    CUresult r = find_in(c, e);
    return leave(!r && e->state.captured ? CUDA_ERROR_CAPTURED_EVENT : r);
}

PER_THREAD_ALIAS(cuEventRecord, _ptsz);
PER_THREAD_ALIAS(cuEventRecordWithFlags, _ptsz);
PER_THREAD_ALIAS(cuStreamWaitEvent, _ptsz);
