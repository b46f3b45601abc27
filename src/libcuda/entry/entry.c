#include "libcuda/entry/entry.h"

#include "libcuda/queue.h"

CUresult find_current(CUcontext *current)
{
    *current = context_current();
    if (!*current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((*current)->primary && !(*current)->retained)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (*current)->failure;
}

CUresult enter_driver(CUcontext *current)
{
    CUresult r = driver_enter();
    *current = NULL;
    r = r ? r : queue_finish();
    driver_write_printed();
    return r;
}

CUresult enter_ask(CUcontext *current)
{
    CUresult r = driver_enter();
    *current = NULL;
    driver_write_printed();
    return r;
}

CUresult enter_context(CUcontext *current)
{
    CUresult r = enter_driver(current);
    return r ? r : find_current(current);
}

CUresult enter_ask_context(CUcontext *current)
{
    CUresult r = enter_ask(current);
    return r ? r : find_current(current);
}

CUresult enter_add_context(CUcontext *current)
{
    CUresult r = driver_enter();
    *current = NULL;
    return r ? r : find_current(current);
}
