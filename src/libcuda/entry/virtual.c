#define _GNU_SOURCE
#include "libcuda/entry/entry.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "libcuda/memory.h"

/* Returns true if a range is not empty and aligned to whole granules. */
static bool is_whole(uint64_t address, size_t size)
{
    return size && size % EMU_GRANULE == 0 && address % EMU_GRANULE == 0;
}

/* Returns true if a mapping overlaps the range. */
static bool is_mapped_anywhere(uint64_t address, size_t size)
{
    for (mapping *m = NULL; (m = handle_next(MAPPING_HANDLE, m));)
        if (address - m->span.address < m->span.size || m->span.address - address < size)
            return true;
    return false;
}

/* Returns true if the range consists of whole mappings. */
static bool is_mapped_whole(uint64_t address, size_t size)
{
    const mapping *m;
    for (; size; address += m->span.size, size -= m->span.size) {
        m = span_at(MAPPING_HANDLE, address);
        if (!m || m->span.address != address || m->span.size > size)
            return false;
    }
    return true;
}

static CUresult place_reservation(void *context)
{
    reservation *r = context;
    r->span.address = emu_reserve(driver.memory, r->pages, r->span.size);
    return r->span.address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Reserves an address range, aligned to MOST_ALIGNED at least. Ignores address, a hint. */
static CUresult reserve_addresses(CUdeviceptr *address, size_t size, size_t alignment,
                                  unsigned long long flags)
{
    enum { MOST_ALIGNED = 1 << 30 };
    if (!address || flags || !is_whole(0, size) || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment > MOST_ALIGNED)
        return CUDA_ERROR_NOT_SUPPORTED;
    reservation *r = handle_new(RESERVATION_HANDLE, sizeof *r, NULL);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->span.size = size;
    r->pages = pages_new(size, false);
    if (!r->pages || driver_try(place_reservation, r)) {
        pages_free(r->pages, size);
        handle_free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = r->span.address;
    return CUDA_SUCCESS;
}

static CUresult free_addresses(CUdeviceptr address, size_t size)
{
    reservation *r = span_at(RESERVATION_HANDLE, address);
    if (!r || r->span.address != address || r->span.size != size ||
        is_mapped_anywhere(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    emu_free(driver.memory, r->span.address);
    pages_free(r->pages, r->span.size);
    handle_free(r);
    return CUDA_SUCCESS;
}

static CUresult check_memory_properties(const CUmemAllocationProp *p)
{
    return p ? memory_check(p->type, p->requestedHandleTypes, p->location)
             : CUDA_ERROR_INVALID_VALUE;
}

static CUresult create_memory(CUmemGenericAllocationHandle *memory, size_t size,
                              const CUmemAllocationProp *properties, unsigned long long flags)
{
    CUresult r = check_value(memory && !flags && is_whole(0, size));
    r = r ? r : check_memory_properties(properties);
    if (r)
        return r;
    physical *p = size <= DEVICE_MEMORY_BYTES - memory_used()
                      ? handle_new(PHYSICAL_HANDLE, sizeof *p, NULL)
                      : NULL;
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = (physical){ .handle = p->handle, .properties = *properties, .size = size, .uses = 1 };
    p->file = memfd_create("device memory", MFD_CLOEXEC);
    if (p->file < 0 || ftruncate(p->file, (off_t)size) != 0) {
        if (p->file >= 0)
            close(p->file);
        handle_free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *memory = (uintptr_t)p;
    return CUDA_SUCCESS;
}

static physical *physical_of(CUmemGenericAllocationHandle memory)
{
    return (physical *)(uintptr_t)memory;
}

/* Accepts memory that the program has not released. */
static CUresult check_memory(CUmemGenericAllocationHandle memory)
{
    return check_value(handle_is(physical_of(memory), PHYSICAL_HANDLE) &&
                       physical_of(memory)->uses);
}

/* Frees memory without references and mappings. */
static void free_unused_memory(physical *p)
{
    if (p->uses || p->places)
        return;
    close(p->file);
    handle_free(p);
}

static CUresult retain_memory(CUmemGenericAllocationHandle *memory, uint64_t address)
{
    const mapping *m = span_at(MAPPING_HANDLE, address);
    if (!memory || !m)
        return CUDA_ERROR_INVALID_VALUE;
    m->of->uses++;
    *memory = (uintptr_t)m->of;
    return CUDA_SUCCESS;
}

static char *pages_of(const mapping *m)
{
    return (char *)m->in->pages + (m->span.address - m->in->span.address);
}

static CUresult map_memory(CUdeviceptr address, size_t size, size_t offset, physical *of,
                           unsigned long long flags)
{
    reservation *in = span_at(RESERVATION_HANDLE, address);
    if (flags || !in || !is_whole(address, size) || !is_whole(offset, size) ||
        size > in->span.size - (address - in->span.address) || offset > of->size ||
        size > of->size - offset || is_mapped_anywhere(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    mapping *m = handle_new(MAPPING_HANDLE, sizeof *m, NULL);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *m = (mapping){ .span = { m->span.handle, address, size }, .in = in, .of = of };
    if (mmap(pages_of(m), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, of->file,
             (off_t)offset) == MAP_FAILED) {
        handle_free(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    of->places++;
    return CUDA_SUCCESS;
}

/* Grants kernels and copies read, or read and write, access to a mapping, or none. */
static void set_access(mapping *m, CUmemAccess_flags access)
{
    emu_set_access(driver.memory, m->span.address, m->span.size,
                   access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? EMU_LOADS_AND_STORES
                   : access                                     ? EMU_LOADS
                                                                : EMU_NO_ACCESS);
    m->access = access;
}

static CUresult unmap_memory(CUdeviceptr address, size_t size)
{
    if (!is_whole(address, size) || !is_mapped_whole(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    while (size) {
        mapping *m = span_at(MAPPING_HANDLE, address);
        physical *of = m->of;
        address += m->span.size;
        size -= m->span.size;
        set_access(m, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        mmap(pages_of(m), m->span.size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        handle_free(m);
        of->places--;
        free_unused_memory(of);
    }
    return CUDA_SUCCESS;
}

/* Sets the access to a range. The last descriptor applies. */
static CUresult set_mapping_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                                   size_t count)
{
    if (!access || !count || !is_whole(address, size) || !is_mapped_whole(address, size))
        return CUDA_ERROR_INVALID_VALUE;
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
    for (mapping *m; size; address += m->span.size, size -= m->span.size) {
        m = span_at(MAPPING_HANDLE, address);
        set_access(m, access[count - 1].flags);
    }
    return CUDA_SUCCESS;
}

static CUresult get_mapping_access(unsigned long long *flags, const CUmemLocation *location,
                                   CUdeviceptr address)
{
    const mapping *m = span_at(MAPPING_HANDLE, address);
    if (!flags || !location || !m)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = m->access;
    return CUDA_SUCCESS;
}

#include "libcuda/entry/virtual.def"
