/* Contexts, and the stack of them that each thread has. Destroying one destroys all that was made
 * in it, which is also the only way out after a kernel has failed. */
#include "libcuda/capture.h"
#include "libcuda/link.h"
#include "libcuda/memory.h"
#include "libcuda/module.h"
#include "libcuda/submit.h"

enum { API_VERSION = 3020, STACK_BYTES = 1024, FIFO_BYTES = 1 << 20 };

static CUresult push(CUcontext c)
{
    if (c && !handle_is(c, CONTEXT_HANDLE))
        return CUDA_ERROR_INVALID_CONTEXT;
    thread_state *thread = this_thread();
    if (thread->count == MOST_PUSHED)
        return CUDA_ERROR_ILLEGAL_STATE;
    thread->pushed[thread->count++] = c;
    return CUDA_SUCCESS;
}

static void destroy_object(handle *h)
{
    switch (h->kind) {
    case MODULE_HANDLE:
        module_destroy((CUmodule)(void *)h);
        break;
    case STREAM_HANDLE:
        stream_destroy((CUstream)(void *)h);
        break;
    case BUFFER_HANDLE:
        buffer_destroy((buffer *)(void *)h);
        break;
    case LINK_HANDLE:
        link_free((CUlinkState)(void *)h);
        break;
    case EVENT_HANDLE:
        handle_free(h);
        break;
    default: /* functions go with their module, and graphs belong to no context */
        break;
    }
}

static bool is_default_stream(CUcontext c, const void *object)
{
    return object == c->null_stream || object == c->thread_stream;
}

/* All but the default streams, which live as long as the context. */
static void empty(CUcontext c)
{
    static const handle_kind kinds[] = { MODULE_HANDLE, STREAM_HANDLE, BUFFER_HANDLE, EVENT_HANDLE,
                                         LINK_HANDLE };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        handle *next;
        for (handle *h = handle_next(kinds[i], NULL); h; h = next) {
            next = handle_next(kinds[i], h);
            if (h->context == c && !is_default_stream(c, h))
                destroy_object(h);
        }
    }
    c->failure = CUDA_SUCCESS;
}

static void destroy(CUcontext c)
{
    empty(c);
    if (c->null_stream)
        stream_destroy(c->null_stream);
    if (c->thread_stream)
        stream_destroy(c->thread_stream);
    handle_free(c);
}

static CUresult create(CUcontext *context, unsigned flags)
{
    CUcontext c = handle_new(CONTEXT_HANDLE, sizeof *c, NULL);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->flags = flags;
    c->null_stream = stream_new(c, 0, 0);
    c->thread_stream = stream_new(c, 0, 0);
    if (!c->null_stream || !c->thread_stream) {
        destroy(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *context = c;
    return CUDA_SUCCESS;
}

/* It exists from the first call that asks for it, and is active while somebody retains it. */
static CUresult primary(CUcontext *context, CUdevice device)
{
    if (device)
        return CUDA_ERROR_INVALID_DEVICE;
    for (CUcontext c = NULL; (c = handle_next(CONTEXT_HANDLE, c));)
        if (c->primary) {
            *context = c;
            return CUDA_SUCCESS;
        }
    CUresult r = create(context, 0);
    if (!r)
        (*context)->primary = true;
    return r;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUcontext c;
    CUresult r = enter();
    if (!r && !context)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : primary(&c, device);
    if (!r) {
        c->retained++;
        *context = c;
    }
    return leave(r);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUcontext c;
    CUresult r = enter();
    r = r ? r : primary(&c, device);
    if (!r && !c->retained)
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && --c->retained == 0)
        empty(c);
    return leave(r);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUcontext c;
    CUresult r = enter();
    r = r ? r : primary(&c, device);
    if (!r)
        empty(c);
    return leave(r);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    CUcontext c;
    CUresult r = enter();
    if (!r && flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : primary(&c, device);
    if (!r)
        c->flags = flags;
    return leave(r);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUcontext c;
    CUresult r = enter();
    if (!r && (!flags || !active))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : primary(&c, device);
    if (!r) {
        *flags = c->flags;
        *active = c->retained > 0;
    }
    return leave(r);
}

static CUresult create_current(CUcontext *context, unsigned flags, CUdevice device)
{
    if (!context || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    if (device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult r = create(context, flags);
    return r ? r : push(*context);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    CUresult r = enter();
    return leave(r ? r : create_current(context, flags, device));
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count,
                        unsigned flags, CUdevice device)
{
    return affinity && count ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags,
                        CUdevice device)
{
    bool plain = !params || (!params->numExecAffinityParams && !params->cigParams);
    return plain ? cuCtxCreate_v2(context, flags, device) : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult destroy_named(CUcontext c)
{
    if (!handle_is(c, CONTEXT_HANDLE) || c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    thread_state *thread = this_thread();
    if (thread->count && thread->pushed[thread->count - 1] == c)
        thread->count--;
    destroy(c);
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext c)
{
    CUresult r = enter();
    return leave(r ? r : destroy_named(c));
}

CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    CUresult r = enter();
    return leave(r ? r : c ? push(c) : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult r = enter();
    if (!r && !this_thread()->count)
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && context)
        *context = context_current();
    if (!r)
        this_thread()->count--;
    return leave(r);
}

CUresult cuCtxSetCurrent(CUcontext c)
{
    CUresult r = enter();
    if (!r && c && !handle_is(c, CONTEXT_HANDLE))
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && this_thread()->count)
        this_thread()->count--;
    return leave(r ? r : c ? push(c) : CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult r = enter();
    if (!r && !context)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *context = context_current();
    return leave(r);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && !device)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *device = 0;
    return leave(r);
}

/* What is asked of a context that need not be the current one; NULL: of that. */
static CUresult find(CUcontext *c)
{
    CUresult r = *c ? enter() : enter_context(c);
    return r || !*c || handle_is(*c, CONTEXT_HANDLE) ? r : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext c)
{
    CUresult r = find(&c);
    if (!r && !device)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *device = 0;
    return leave(r);
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && !flags)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *flags = c->flags;
    return leave(r);
}

CUresult cuCtxSynchronize(void)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : capture_refuses_waiting(c));
}

CUresult cuCtxSynchronize_v2(CUcontext c)
{
    CUresult r = find(&c);
    r = r ? r : c->failure;
    return leave(r ? r : capture_refuses_waiting(c));
}

CUresult cuCtxGetApiVersion(CUcontext c, unsigned *version)
{
    CUresult r = enter();
    if (!r && !version)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && c && !handle_is(c, CONTEXT_HANDLE))
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r)
        *version = API_VERSION;
    return leave(r);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && least)
        *least = 0;
    if (!r && greatest)
        *greatest = GREATEST_PRIORITY;
    return leave(r);
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    CUcontext c;
    (void)config; /* a preference, and there are no caches */
    return leave(enter_context(&c));
}

static CUresult limit(CUlimit which, size_t *value)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
    case CU_LIMIT_STACK_SIZE:
        *value = STACK_BYTES;
        return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        *value = FIFO_BYTES;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
}

CUresult cuCtxGetLimit(size_t *value, CUlimit which)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : limit(which, value));
}

/* Kernels have no stack and print nothing, so that what is set is never used up. */
CUresult cuCtxSetLimit(CUlimit which, size_t value)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : limit(which, &value));
}
