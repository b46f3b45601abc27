#include "libcuda/context.h"

#include "base/os_process.h"

CUcontext context_current(void)
{
    const thread_state *thread = this_thread();
    CUcontext c = thread->count ? thread->pushed[thread->count - 1] : NULL;
    return handle_is(c, CONTEXT_HANDLE) ? c : NULL;
}

int stream_priority(int wish)
{
    return wish < GREATEST_PRIORITY ? GREATEST_PRIORITY : wish > 0 ? 0 : wish;
}

CUstream stream_new(CUcontext c, unsigned flags, int priority)
{
    CUstream s = handle_new(STREAM_HANDLE, sizeof *s, c);
    if (s) {
        s->flags = flags;
        s->id = ++driver.counted;
        s->priority = stream_priority(priority);
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

void event_stamp(CUevent e)
{
    e->recorded = true;
    e->captured = false;
    e->nanoseconds = os_nanoseconds();
}
