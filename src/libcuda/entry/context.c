/* Contexts, and the stack of them that each thread has. Destroying one destroys all that was made
 * in it, which is also the only way out after a kernel has failed. */
#include <string.h>

#include "libcuda/capture.h"
#include "libcuda/link.h"
#include "libcuda/memory.h"
#include "libcuda/module.h"
#include "libcuda/submit.h"

enum { API_VERSION = 3020 };

/* What the limits of a context are at first. */
static const size_t usual_limits[CONTEXT_LIMITS] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
    [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

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
    c->id = driver_count();
    memcpy(c->limits, usual_limits, sizeof c->limits);
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
    CUresult r = enter_to_ask();
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

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
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

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return cuDevicePrimaryCtxReset_v2(device);
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

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUcontext c;
    CUresult r = enter_to_ask();
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
    CUcontext made;
    CUresult r = create(&made, flags);
    if (r)
        return r;
    r = push(made);
    if (r)
        destroy(made);
    else
        *context = made;
    return r;
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

CUresult cuCtxDestroy(CUcontext c)
{
    return cuCtxDestroy_v2(c);
}

/* One more use of the current context, which cuCtxDetach gives back; the last one's end is the
 * context's. */
CUresult cuCtxAttach(CUcontext *context, unsigned flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (!context || flags))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        c->attached++;
        *context = c;
    }
    return leave(r);
}

CUresult cuCtxDetach(CUcontext c)
{
    CUresult r = enter();
    if (!r && (!handle_is(c, CONTEXT_HANDLE) || c != context_current()))
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && !c->attached)
        return leave(destroy_named(c));
    if (!r)
        c->attached--;
    return leave(r);
}

CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    CUresult r = enter_to_ask();
    return leave(r ? r : c ? push(c) : CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuCtxPushCurrent(CUcontext c)
{
    return cuCtxPushCurrent_v2(c);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult r = enter_to_ask();
    if (!r && !this_thread()->count)
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && context)
        *context = context_current();
    if (!r)
        this_thread()->count--;
    return leave(r);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    return cuCtxPopCurrent_v2(context);
}

CUresult cuCtxSetCurrent(CUcontext c)
{
    CUresult r = enter_to_ask();
    if (!r && c && !handle_is(c, CONTEXT_HANDLE))
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (!r && this_thread()->count)
        this_thread()->count--;
    return leave(r ? r : c ? push(c) : CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult r = enter_to_ask();
    if (!r && !context)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *context = context_current();
    return leave(r);
}

/* A context, NULL for the current one, and a place for what is asked of it. */
static CUresult find(CUcontext *c, const void *answer)
{
    CUresult r = *c ? enter_to_ask() : enter_context_to_ask(c);
    if (!r && !handle_is(*c, CONTEXT_HANDLE))
        r = CUDA_ERROR_INVALID_CONTEXT;
    return r || answer ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext c)
{
    CUresult r = find(&c, device);
    if (!r)
        *device = 0;
    return leave(r);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    return cuCtxGetDevice_v2(device, NULL);
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    CUcontext c = NULL;
    CUresult r = find(&c, flags);
    if (!r)
        *flags = c->flags;
    return leave(r);
}

CUresult cuCtxSetFlags(unsigned flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        c->flags = flags;
    return leave(r);
}

CUresult cuCtxGetId(CUcontext c, unsigned long long *id)
{
    CUresult r = find(&c, id);
    if (!r)
        *id = c->id;
    return leave(r);
}

CUresult cuCtxSynchronize_v2(CUcontext c)
{
    CUresult r = c ? enter() : enter_context(&c);
    if (!r && !handle_is(c, CONTEXT_HANDLE))
        r = CUDA_ERROR_INVALID_CONTEXT;
    r = r ? r : c->failure;
    return leave(r ? r : capture_refuses_waiting(c));
}

CUresult cuCtxSynchronize(void)
{
    return cuCtxSynchronize_v2(NULL);
}

CUresult cuCtxGetApiVersion(CUcontext c, unsigned *version)
{
    CUresult r = enter_to_ask();
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
    CUresult r = enter_context_to_ask(&c);
    if (!r && least)
        *least = 0;
    if (!r && greatest)
        *greatest = GREATEST_PRIORITY;
    return leave(r);
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    if (!r && config > CU_FUNC_CACHE_PREFER_EQUAL)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        c->cache_config = config; /* a preference, and there are no caches */
    return leave(r);
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    CUcontext c = NULL;
    CUresult r = find(&c, config);
    if (!r)
        *config = c->cache_config;
    return leave(r);
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        c->shared_config = config; /* about the width of banks, which all devices have one of */
    return leave(r);
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    CUcontext c = NULL;
    CUresult r = find(&c, config);
    if (!r)
        *config = c->shared_config;
    return leave(r);
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    CUcontext c;
    return leave(enter_context(&c));
}

CUresult cuCtxGetLimit(size_t *value, CUlimit which)
{
    CUcontext c = NULL;
    CUresult r = find(&c, value);
    if (!r && (unsigned)which >= CONTEXT_LIMITS)
        r = CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (!r)
        *value = c->limits[which];
    return leave(r);
}

CUresult cuCtxSetLimit(CUlimit which, size_t value)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (unsigned)which >= CONTEXT_LIMITS)
        r = CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (!r)
        c->limits[which] = value;
    return leave(r);
}

/* All contexts are of one device. */
static CUresult check_peer(CUcontext peer, CUresult otherwise)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return r ? r : handle_is(peer, CONTEXT_HANDLE) ? otherwise : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    CUresult r = check_peer(peer, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    return leave(flags ? CUDA_ERROR_INVALID_VALUE : r);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    return leave(check_peer(peer, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED));
}
