#include "libcuda/context.h"

CUcontext context_current(void)
{
    const thread_state *thread = this_thread();
    CUcontext c = thread->count ? thread->pushed[thread->count - 1] : NULL;
    return handle_is(c, CONTEXT_HANDLE) ? c : NULL;
}

static CUresult find_current(CUresult r, CUcontext *context)
{
    *context = r ? NULL : context_current();
    if (r)
        return r;
    if (!*context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((*context)->primary && !(*context)->retained)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (*context)->failure;
}

CUresult enter_context(CUcontext *context)
{
    return find_current(enter(), context);
}

CUresult enter_context_to_ask(CUcontext *context)
{
    return find_current(enter_to_ask(), context);
}

CUresult enter_context_to_add(CUcontext *context)
{
    return find_current(enter_to_add(), context);
}
