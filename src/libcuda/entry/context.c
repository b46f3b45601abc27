/* Contexts, and each thread's stack of current contexts. Destroying a context destroys all its
 * objects. It is also the only way to continue after a kernel fault. */
#include "libcuda/entry/entry.h"

#include <string.h>

#include "libcuda/graph.h"
#include "libcuda/launch.h"
#include "libcuda/memory.h"

enum { API_VERSION = 3020 };

static const size_t usual_limits[CONTEXT_LIMITS] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
    [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

static CUresult check_context(CUcontext c)
{
    return handle_is(c, CONTEXT_HANDLE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult check_flags(unsigned flags)
{
    return check_value(!(flags & ~(unsigned)CU_CTX_FLAGS_MASK));
}

static CUresult check_limit(CUlimit which)
{
    return (unsigned)which < CONTEXT_LIMITS ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

/* Returns the thread's current context, or NULL if it has none or the context was destroyed. */
static CUcontext context_current(void)
{
    const thread_state *thread = this_thread();
    CUcontext c = thread->count ? thread->pushed[thread->count - 1] : NULL;
    return handle_is(c, CONTEXT_HANDLE) ? c : NULL;
}

static CUresult find_current(CUcontext *current)
{
    *current = context_current();
    if (!*current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((*current)->primary && !(*current)->retained)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (*current)->failure;
}

CUresult enter(int how, CUcontext *current)
{
    CUresult r = driver_enter();
    *current = NULL;
    if (!r && how & RUNS_QUEUED)
        r = queue_finish();
    if (how & WRITES_PRINTED)
        driver_write_printed();
    return !r && how & NEEDS_CONTEXT ? find_current(current) : r;
}

/* Finds a context by its handle. NULL is the current context. */
static CUresult find_context(CUcontext *c)
{
    return *c ? check_context(*c) : find_current(c);
}

/* Makes a context, which may be NULL, the thread's current context. */
static CUresult push_context(CUcontext c)
{
    thread_state *thread = this_thread();
    if (thread->count == MOST_PUSHED)
        return CUDA_ERROR_ILLEGAL_STATE;
    thread->pushed[thread->count++] = c;
    return CUDA_SUCCESS;
}

static CUresult pop_context(CUcontext *context)
{
    thread_state *thread = this_thread();
    if (!thread->count)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = context_current();
    thread->count--;
    return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext c)
{
    thread_state *thread = this_thread();
    if (c && !handle_is(c, CONTEXT_HANDLE))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (thread->count)
        thread->count--;
    return c ? push_context(c) : CUDA_SUCCESS;
}

/* Destroys a context's objects but default streams. Modules destroy their functions. */
static void empty_context(CUcontext c)
{
    static const handle_kind kinds[] = { MODULE_HANDLE, STREAM_HANDLE, BUFFER_HANDLE, EVENT_HANDLE,
                                         LINK_HANDLE };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (handle *h = handle_next(kinds[i], NULL), *next; h; h = next) {
            next = handle_next(kinds[i], h);
            if (h->context != c || h == (void *)c->null_stream || h == (void *)c->thread_stream)
                continue;
            if (h->kind == MODULE_HANDLE)
                module_destroy((CUmodule)(void *)h);
            else if (h->kind == STREAM_HANDLE)
                stream_destroy((CUstream)(void *)h);
            else if (h->kind == BUFFER_HANDLE)
                buffer_destroy((buffer *)(void *)h);
            else
                handle_free(h);
        }
    c->failure = CUDA_SUCCESS;
}

static void destroy_context(CUcontext c)
{
    empty_context(c);
    if (c->null_stream)
        stream_destroy(c->null_stream);
    if (c->thread_stream)
        stream_destroy(c->thread_stream);
    handle_free(c);
}

static CUresult create_context(CUcontext *context, unsigned flags)
{
    CUcontext c = handle_new(CONTEXT_HANDLE, sizeof *c, NULL);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->flags = flags;
    c->id = ++driver.counted;
    memcpy(c->limits, usual_limits, sizeof c->limits);
    c->null_stream = stream_new(c, 0, 0);
    c->thread_stream = stream_new(c, 0, 0);
    if (!c->null_stream || !c->thread_stream) {
        destroy_context(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *context = c;
    return CUDA_SUCCESS;
}

/* Finds the primary context, or creates it. It is active while it is retained. */
static CUresult find_primary(CUcontext *context, CUdevice device)
{
    if (device)
        return CUDA_ERROR_INVALID_DEVICE;
    for (*context = NULL; (*context = handle_next(CONTEXT_HANDLE, *context));)
        if ((*context)->primary)
            return CUDA_SUCCESS;
    CUresult r = create_context(context, 0);
    if (!r)
        (*context)->primary = true;
    return r;
}

static CUresult release_primary(CUdevice device)
{
    CUcontext c;
    CUresult r = find_primary(&c, device);
    if (!r && !c->retained)
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && --c->retained == 0)
        empty_context(c);
    return r;
}

static CUresult create_current(CUcontext *context, unsigned flags, CUdevice device)
{
    if (!context || check_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUcontext made;
    CUresult r = create_context(&made, flags);
    if (!r && (r = push_context(made)))
        destroy_context(made);
    if (!r)
        *context = made;
    return r;
}

static CUresult destroy_named(CUcontext c)
{
    if (!handle_is(c, CONTEXT_HANDLE) || c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    thread_state *thread = this_thread();
    if (thread->count && thread->pushed[thread->count - 1] == c)
        thread->count--;
    destroy_context(c);
    return CUDA_SUCCESS;
}

#include "libcuda/entry/context.def"
