#include "libcuda/memory.h"
#include "libcuda/virtual.h"

/* Whole granules, and at least one. */
static bool is_whole(uint64_t address, size_t size)
{
    return size && size % EMU_GRANULE == 0 && address % EMU_GRANULE == 0;
}

/* Reserved addresses are aligned to more than any program asks for: what it wishes for besides is
 * not heard, as it may be on a device. */
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    enum { MOST_ALIGNED = 1 << 30 };
    reservation *made;
    CUresult r = enter();
    (void)wish;
    if (!r && (!address || flags || !is_whole(0, size) || (alignment & (alignment - 1))))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && alignment > MOST_ALIGNED)
        r = CUDA_ERROR_NOT_SUPPORTED;
    r = r ? r : reservation_new(size, &made);
    if (!r)
        *address = made->address;
    return leave(r);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
    CUresult r = enter();
    reservation *at = r ? NULL : reservation_of(address);
    if (!r &&
        (!at || at->address != address || at->size != size || is_mapped_anywhere(address, size)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        reservation_free(at);
    return leave(r);
}

/* Memory of the device that other processes do not see is all there is. */
static CUresult check_properties(const CUmemAllocationProp *p)
{
    if (p->type != CU_MEM_ALLOCATION_TYPE_PINNED || p->location.type == CU_MEM_LOCATION_TYPE_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE || p->requestedHandleTypes)
        return CUDA_ERROR_NOT_SUPPORTED;
    return p->location.id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult r = enter();
    if (!r && (!granularity || !properties || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : check_properties(properties);
    if (!r)
        *granularity = EMU_GRANULE;
    return leave(r);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t size,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    physical *made;
    CUresult r = enter();
    if (!r && (!memory || !properties || flags || !is_whole(0, size)))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : check_properties(properties);
    if (!r && size > DEVICE_MEMORY_BYTES - memory_used())
        r = CUDA_ERROR_OUT_OF_MEMORY;
    r = r ? r : physical_new(properties, size, &made);
    if (!r)
        *memory = (uintptr_t)made;
    return leave(r);
}

/* Memory that the program has not released. */
static CUresult find(CUmemGenericAllocationHandle memory, physical **p)
{
    CUresult r = enter();
    *p = (physical *)(uintptr_t)memory;
    return r                                              ? r
           : handle_is(*p, PHYSICAL_HANDLE) && (*p)->uses ? CUDA_SUCCESS
                                                          : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle memory)
{
    physical *p;
    CUresult r = find(memory, &p);
    if (!r) {
        p->uses--;
        physical_settle(p);
    }
    return leave(r);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *memory, void *address)
{
    CUresult r = enter();
    const mapping *m = r ? NULL : mapping_of((uintptr_t)address);
    if (!r && (!memory || !m))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        m->of->uses++;
        *memory = (uintptr_t)m->of;
    }
    return leave(r);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle memory)
{
    physical *p;
    CUresult r = find(memory, &p);
    if (!r && !properties)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *properties = p->properties;
    return leave(r);
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle memory, unsigned long long flags)
{
    physical *p;
    CUresult r = find(memory, &p);
    reservation *in = r ? NULL : reservation_of(address);
    if (!r && (flags || !in || !is_whole(address, size) || !is_whole(offset, size) ||
               size > in->size - (address - in->address) || offset > p->size ||
               size > p->size - offset || is_mapped_anywhere(address, size)))
        r = CUDA_ERROR_INVALID_VALUE;
    return leave(r ? r : mapping_new(in, address, size, p, offset));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    CUresult r = enter();
    if (!r && (!is_whole(address, size) || !is_mapped_whole(address, size)))
        r = CUDA_ERROR_INVALID_VALUE;
    for (mapping *m; !r && size; address += EMU_GRANULE, size -= EMU_GRANULE)
        if ((m = mapping_of(address)))
            mapping_free(m);
    return leave(r);
}

/* What a program says about access, of which there is one kind: the device's. */
static CUresult check_access(const CUmemAccessDesc *access, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
            access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (access[i].location.id)
            return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                        size_t count)
{
    CUresult r = enter();
    if (!r && (!access || !count || !is_whole(address, size) || !is_mapped_whole(address, size)))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : check_access(access, count);
    for (mapping *m; !r && size; address += m->size, size -= m->size) {
        m = mapping_of(address);
        mapping_permit(m, access[count - 1].flags);
    }
    return leave(r);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr address)
{
    CUresult r = enter();
    const mapping *m = r ? NULL : mapping_of(address);
    if (!r && (!flags || !location || !m))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r)
        *flags = m->access;
    return leave(r);
}
