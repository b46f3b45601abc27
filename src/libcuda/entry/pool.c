/* Memory pools. What is allocated from one is like any other device memory. */
#include "libcuda/allocate.h"
#include "libcuda/pool.h"
#include "libcuda/stream.h"

/* Of a call that asks for a pool of a device. */
static CUresult give(CUmemoryPool *pool, CUdevice device, CUmemoryPool (*which)(void))
{
    CUresult r = enter();
    if (!r && !pool)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && device)
        r = CUDA_ERROR_INVALID_DEVICE;
    CUmemoryPool found = r ? NULL : which();
    if (!r && !found)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r)
        *pool = found;
    return leave(r);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return give(pool, device, pool_default);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return give(pool, device, pool_current);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    CUresult r = enter();
    if (!r && device)
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r && !is_pool(pool))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        pool_make_current(pool);
    return leave(r);
}

/* Device memory that other processes do not see is all there is. */
static CUresult check_properties(const CUmemPoolProps *p)
{
    if (p->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        p->location.type == CU_MEM_LOCATION_TYPE_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE || p->handleTypes)
        return CUDA_ERROR_NOT_SUPPORTED;
    return p->location.id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    CUresult r = enter();
    r = r ? r : pool && properties ? check_properties(properties) : CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool made = r ? NULL : pool_new(properties->maxSize);
    if (!r && !made)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r)
        *pool = made;
    return leave(r);
}

static CUresult find(CUmemoryPool pool, const void *answer)
{
    CUresult r = enter();
    return r ? r : is_pool(pool) && answer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult r = find(pool, pool);
    if (!r && pool->is_default)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        pool_destroy(pool);
    return leave(r);
}

/* There is nothing that is kept. */
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t least)
{
    (void)least;
    return leave(find(pool, pool));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
    CUresult r = find(pool, value);
    if (r)
        return leave(r);
    switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = pool->reuse[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = pool->most_used;
        break;
    default:
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return leave(r);
}

/* Of the figures only the highest ones can be set, and to 0. */
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
    CUresult r = find(pool, value);
    if (r)
        return leave(r);
    switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
            *(const int *)value != 0;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(const cuuint64_t *)value;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(const cuuint64_t *)value)
            r = CUDA_ERROR_INVALID_VALUE;
        else
            pool->most_used = pool->used;
        break;
    default:
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return leave(r);
}

/* The device that a pool is of has access to it at all times. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    CUresult r = find(pool, access);
    for (size_t i = 0; !r && i < count; i++)
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id)
            r = CUDA_ERROR_INVALID_DEVICE;
        else if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            r = CUDA_ERROR_INVALID_VALUE;
    return leave(r);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    CUresult r = find(pool, flags && location ? flags : NULL);
    if (!r && (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r)
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return leave(r);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool,
                                 CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : stream_find(c, stream, &stream);
    if (!r && !is_pool(pool))
        r = CUDA_ERROR_INVALID_VALUE;
    return leave(r ? r : memory_allocate(c, address, size, pool));
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : stream_find(c, stream, &stream);
    CUmemoryPool pool = r ? NULL : pool_current();
    if (!r && !pool)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    return leave(r ? r : memory_allocate(c, address, size, pool));
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : stream_find(c, stream, &stream);
    return leave(r ? r : memory_release(c, address));
}

PER_THREAD_ALIAS(cuMemAllocFromPoolAsync, _ptsz);
PER_THREAD_ALIAS(cuMemAllocAsync, _ptsz);
PER_THREAD_ALIAS(cuMemFreeAsync, _ptsz);
