#include "libcuda/stream.h"

CUstream stream_new(CUcontext c, unsigned flags, int priority)
{
    CUstream s = handle_new(STREAM_HANDLE, sizeof *s, c);
    if (s) {
        s->flags = flags;
        s->id = driver_count();
        s->priority = priority < GREATEST_PRIORITY ? GREATEST_PRIORITY
                      : priority > 0               ? 0
                                                   : priority;
    }
    return s;
}

CUresult stream_find(CUcontext c, CUstream named, CUstream *stream)
{
    if (!named || named == CU_STREAM_LEGACY)
        *stream = c->null_stream;
    else if (named == CU_STREAM_PER_THREAD)
        *stream = c->thread_stream;
    else if (handle_is(named, STREAM_HANDLE))
        *stream = named;
    else
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}
