#include "libcuda/virtual.h"

#include "libcuda/pages.h"

static CUresult place(void *context)
{
    reservation *r = context;
    r->address = emu_reserve(device_memory(), r->pages, r->size);
    return r->address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult reservation_new(size_t size, reservation **made)
{
    reservation *r = handle_new(RESERVATION_HANDLE, sizeof *r, NULL);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->size = size;
    r->pages = pages_reserve(size);
    if (!r->pages || driver_try(place, r)) {
        pages_free(r->pages, size);
        handle_free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = r;
    return CUDA_SUCCESS;
}

void reservation_free(reservation *r)
{
    emu_free(device_memory(), r->address);
    pages_free(r->pages, r->size);
    handle_free(r);
}

CUresult physical_new(const CUmemAllocationProp *properties, size_t size, physical **made)
{
    physical *p = handle_new(PHYSICAL_HANDLE, sizeof *p, NULL);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->properties = *properties;
    p->size = size;
    p->uses = 1;
    p->shared = pages_share(size);
    if (p->shared < 0) {
        handle_free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = p;
    return CUDA_SUCCESS;
}

void physical_settle(physical *p)
{
    if (p->uses || p->places)
        return;
    pages_unshare(p->shared);
    handle_free(p);
}

static char *page_of(const mapping *m)
{
    return (char *)m->in->pages + (m->address - m->in->address);
}

CUresult mapping_new(reservation *in, uint64_t address, size_t size, physical *of, size_t offset)
{
    mapping *m = handle_new(MAPPING_HANDLE, sizeof *m, NULL);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->in = in;
    m->of = of;
    m->address = address;
    m->size = size;
    if (!pages_put(page_of(m), size, of->shared, offset)) {
        handle_free(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    of->places++;
    return CUDA_SUCCESS;
}

void mapping_permit(mapping *m, CUmemAccess_flags access)
{
    emu_set_access(device_memory(), m->address, m->size,
                   access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? EMU_LOADS_AND_STORES
                   : access                                     ? EMU_LOADS
                                                                : EMU_NO_ACCESS);
    m->access = access;
}

void mapping_free(mapping *m)
{
    physical *of = m->of;
    mapping_permit(m, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    pages_take(page_of(m), m->size);
    handle_free(m);
    of->places--;
    physical_settle(of);
}

reservation *reservation_of(uint64_t address)
{
    for (reservation *r = NULL; (r = handle_next(RESERVATION_HANDLE, r));)
        if (address - r->address < r->size)
            return r;
    return NULL;
}

mapping *mapping_of(uint64_t address)
{
    for (mapping *m = NULL; (m = handle_next(MAPPING_HANDLE, m));)
        if (address - m->address < m->size)
            return m;
    return NULL;
}

bool is_mapped_anywhere(uint64_t address, size_t size)
{
    for (mapping *m = NULL; (m = handle_next(MAPPING_HANDLE, m));)
        if (address - m->address < m->size || m->address - address < size)
            return true;
    return false;
}

bool is_mapped_whole(uint64_t address, size_t size)
{
    const mapping *m;
    for (; size; address += m->size, size -= m->size) {
        m = mapping_of(address);
        if (!m || m->address != address || m->size > size)
            return false;
    }
    return true;
}

size_t physical_used(void)
{
    size_t bytes = 0;
    for (physical *p = NULL; (p = handle_next(PHYSICAL_HANDLE, p));)
        bytes += p->size;
    return bytes;
}
