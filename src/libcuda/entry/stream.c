/* Streams, events, and stream capture. */
#include "libcuda/graph.h"

#include "libcuda/entry/entry.h"

/* Finds a stream by its handle, and checks the pointer for an answer. */
static CUresult find_stream(CUcontext c, CUstream *s, const void *answer)
{
    return answer ? stream_find(c, *s, s) : CUDA_ERROR_INVALID_VALUE;
}

/* Returns true for launch attributes that streams store, except the priority. */
static bool is_kept_attribute(CUstreamAttrID which)
{
    return which == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
           which == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
           which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
           which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

static CUresult get_stream_attribute(CUstream s, CUstreamAttrID which, CUstreamAttrValue *value)
{
    if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = s->priority;
    else if (is_kept_attribute(which))
        *value = s->attributes[which];
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult set_stream_attribute(CUstream s, CUstreamAttrID which,
                                     const CUstreamAttrValue *value)
{
    if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        s->priority = stream_priority(value->priority);
    else if (is_kept_attribute(which))
        s->attributes[which] = *value;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult run_callback(CUcontext c, CUstream named, CUstreamCallback function, void *data)
{
    CUstream s;
    CUresult r = stream_ready(c, named, &s);
    if (!r && s->capture)
        r = capture_refuses(c, WAITING_CALL);
    if (!r)
        function(named, CUDA_SUCCESS, data);
    return r;
}

static CUresult create_event(CUcontext c, CUevent *event, unsigned flags)
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

static CUresult elapsed_time(float *milliseconds, CUevent from, CUevent to)
{
    if (!handle_is(from, EVENT_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(to, EVENT_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (from->captured || to->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (!from->recorded || !to->recorded || (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((double)to->nanoseconds - (double)from->nanoseconds) / 1e6f;
    return CUDA_SUCCESS;
}

/* Checks arguments of cuCtxRecordEvent and cuCtxWaitEvent. Only captures matter here. */
static CUresult find_event_in(CUcontext c, CUevent e)
{
    if (!handle_is(c, CONTEXT_HANDLE) || !handle_is(e, EVENT_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    return capture_refuses(c, WAITING_CALL);
}

static CUresult set_dependencies(CUcontext c, CUstream s, const CUgraphNode *nodes,
                                 const CUgraphEdgeData *edges, size_t count, unsigned flags)
{
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !nodes))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; edges && i < count; i++)
        if (edges[i].from_port || edges[i].to_port || edges[i].type)
            return CUDA_ERROR_NOT_SUPPORTED;
    CUresult r = stream_find(c, s, &s);
    return r ? r : capture_depend(s, nodes, count, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

static CUresult exchange_capture_mode(CUstreamCaptureMode *mode)
{
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = this_thread()->capture_mode;
    this_thread()->capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

#include "libcuda/entry/stream.def"
