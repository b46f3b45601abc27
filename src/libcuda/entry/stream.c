#include <string.h>

#include "libcuda/capture.h"
#include "libcuda/submit.h"

static CUresult create(CUcontext c, CUstream *stream, unsigned flags, int priority)
{
    if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *stream = stream_new(c, flags, priority);
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : create(c, stream, flags, priority));
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream s)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && !handle_is(s, STREAM_HANDLE))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        stream_destroy(s);
    return leave(r);
}

CUresult cuStreamDestroy(CUstream s)
{
    return cuStreamDestroy_v2(s);
}

/* A stream, and a place for what is asked of it. */
static CUresult find(CUstream *s, const void *answer)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    if (!r && !answer)
        r = CUDA_ERROR_INVALID_VALUE;
    return r ? r : stream_find(c, *s, s);
}

CUresult cuStreamGetPriority(CUstream s, int *priority)
{
    CUresult r = find(&s, priority);
    if (!r)
        *priority = s->priority;
    return leave(r);
}

CUresult cuStreamGetFlags(CUstream s, unsigned *flags)
{
    CUresult r = find(&s, flags);
    if (!r)
        *flags = s->flags;
    return leave(r);
}

CUresult cuStreamGetCtx(CUstream s, CUcontext *context)
{
    CUresult r = find(&s, context);
    if (!r)
        *context = s->handle.context;
    return leave(r);
}

/* There are no green contexts. */
CUresult cuStreamGetCtx_v2(CUstream s, CUcontext *context, CUgreenCtx *green)
{
    CUresult r = find(&s, context && green ? context : NULL);
    if (!r) {
        *context = s->handle.context;
        *green = NULL;
    }
    return leave(r);
}

CUresult cuStreamGetId(CUstream s, unsigned long long *id)
{
    CUresult r = find(&s, id);
    if (!r)
        *id = s->id;
    return leave(r);
}

CUresult cuStreamGetDevice(CUstream s, CUdevice *device)
{
    CUresult r = find(&s, device);
    if (!r)
        *device = 0;
    return leave(r);
}

/* Those of launches that streams have as well, but for the priority. */
static bool is_kept(CUstreamAttrID which)
{
    return which == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
           which == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
           which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
           which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

CUresult cuStreamGetAttribute(CUstream s, CUstreamAttrID which, CUstreamAttrValue *value)
{
    CUresult r = find(&s, value);
    if (!r && which == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = s->priority;
    else if (!r && is_kept(which))
        *value = s->attributes[which];
    else if (!r)
        r = CUDA_ERROR_INVALID_VALUE;
    return leave(r);
}

CUresult cuStreamSetAttribute(CUstream s, CUstreamAttrID which, const CUstreamAttrValue *value)
{
    CUresult r = find(&s, value);
    if (!r && which == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        s->priority = stream_priority(value->priority);
    else if (!r && is_kept(which))
        s->attributes[which] = *value;
    else if (!r)
        r = CUDA_ERROR_INVALID_VALUE;
    return leave(r);
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : stream_find(c, to, &to);
    r = r ? r : stream_find(c, from, &from);
    if (!r) {
        memmove(to->attributes, from->attributes, sizeof to->attributes);
        to->priority = from->priority;
    }
    return leave(r);
}

static CUresult wait(CUstream s)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : stream_find(c, s, &s);
    return !r && s->capture ? capture_refuses_waiting(s->handle.context) : r;
}

CUresult cuStreamQuery(CUstream s)
{
    return leave(wait(s));
}

CUresult cuStreamSynchronize(CUstream s)
{
    return leave(wait(s));
}

CUresult cuLaunchHostFunc(CUstream s, CUhostFn function, void *data)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_HOST, .as.host = { function, data } };
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : stream_submit(c, s, &w));
}

static CUresult call_back(CUstream named, CUstreamCallback function, void *data, unsigned flags)
{
    CUstream s;
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (!function || flags))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : stream_ready(c, named, &s);
    if (!r && s->capture)
        r = capture_refuses_waiting(c);
    if (!r)
        function(named, CUDA_SUCCESS, data);
    return r;
}

CUresult cuStreamAddCallback(CUstream s, CUstreamCallback function, void *data, unsigned flags)
{
    return leave(call_back(s, function, data, flags));
}

PER_THREAD_ALIAS(cuStreamGetPriority, _ptsz);
PER_THREAD_ALIAS(cuStreamGetFlags, _ptsz);
PER_THREAD_ALIAS(cuStreamGetCtx, _ptsz);
PER_THREAD_ALIAS(cuStreamGetCtx_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamGetId, _ptsz);
PER_THREAD_ALIAS(cuStreamGetDevice, _ptsz);
PER_THREAD_ALIAS(cuStreamGetAttribute, _ptsz);
PER_THREAD_ALIAS(cuStreamSetAttribute, _ptsz);
PER_THREAD_ALIAS(cuStreamCopyAttributes, _ptsz);
PER_THREAD_ALIAS(cuStreamQuery, _ptsz);
PER_THREAD_ALIAS(cuStreamSynchronize, _ptsz);
PER_THREAD_ALIAS(cuStreamAddCallback, _ptsz);
PER_THREAD_ALIAS(cuLaunchHostFunc, _ptsz);
