/* Managed memory: host and device have it at the same address. It moves nowhere, so that what
 * programs say about where it should be is checked and has no effect. */
#include "libcuda/capture.h"
#include "libcuda/memory.h"
#include "libcuda/submit.h"

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : capture_refuses(c);
    if (!r && (!address || !size || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && size > DEVICE_MEMORY_BYTES - memory_used())
        r = CUDA_ERROR_OUT_OF_MEMORY;
    const buffer *b = r ? NULL : buffer_new_managed(c, size);
    if (!r && !b)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r)
        *address = b->address;
    return leave(r);
}

/* Some bytes of managed memory. */
static CUresult check_range(CUdeviceptr address, size_t size)
{
    const buffer *b = buffer_of_address(address);
    return b && b->managed && size && size <= b->size - (address - b->address)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_location(CUmemLocation location)
{
    return location.type == CU_MEM_LOCATION_TYPE_NONE ||
                   location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
               ? CUDA_ERROR_INVALID_VALUE
           : location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id ? CUDA_ERROR_INVALID_DEVICE
                                                                         : CUDA_SUCCESS;
}

/* Of the first versions, which name the host as a device. */
static CUmemLocation location_of(CUdevice device)
{
    return (CUmemLocation){ device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
                                                    : CU_MEM_LOCATION_TYPE_DEVICE,
                            device == CU_DEVICE_CPU ? 0 : device };
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice,
                        CUmemLocation location)
{
    bool places = advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
                  advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY &&
                  advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : check_range(address, size);
    return leave(r || !places ? r : check_location(location));
}

CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device)
{
    return cuMemAdvise_v2(address, size, advice, location_of(device));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location,
                               unsigned flags, CUstream stream)
{
    work nothing = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && flags)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : check_range(address, size);
    r = r ? r : check_location(location);
    return leave(r ? r : stream_submit(c, stream, &nothing));
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream)
{
    return cuMemPrefetchAsync_v2(address, size, location_of(device), 0, stream);
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t size, unsigned flags)
{
    const buffer *b;
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
        flags != CU_MEM_ATTACH_SINGLE)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : stream_find(c, stream, &stream);
    b = r ? NULL : buffer_of_address(address);
    if (!r && (!b || !b->managed || b->address != address || (size && size != b->size)))
        r = CUDA_ERROR_INVALID_VALUE;
    return leave(r);
}

PER_THREAD_ALIAS(cuMemPrefetchAsync, _ptsz);
PER_THREAD_ALIAS(cuMemPrefetchAsync_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamAttachMemAsync, _ptsz);
