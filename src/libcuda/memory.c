#define _DEFAULT_SOURCE
#include "libcuda/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

void *pages_new(size_t size, bool usable)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *pages = mmap(NULL, size, usable ? PROT_READ | PROT_WRITE : PROT_NONE, flags, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void pages_free(void *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}

static CUresult place_buffer(void *context)
{
    buffer *b = context;
    b->span.address = b->managed ? emu_map_here(driver.memory, b->host, b->span.size)
                      : b->host  ? emu_map(driver.memory, b->host, b->span.size, false)
                                 : emu_alloc(driver.memory, b->span.size);
    return b->span.address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

buffer *buffer_new(CUcontext c, void *host, size_t size, bool managed)
{
    buffer *b = handle_new(BUFFER_HANDLE, sizeof *b, c);
    if (!b)
        return NULL;
    b->host = host;
    b->span.size = size;
    b->managed = managed;
    if (!driver_try(place_buffer, b))
        return b;
    handle_free(b);
    return NULL;
}

void pool_free_unused(CUmemoryPool pool)
{
    if (pool->destroyed && !pool->used)
        handle_free(pool);
}

void buffer_destroy(buffer *b)
{
    emu_free(driver.memory, b->span.address);
    if (b->managed)
        pages_free(b->host, b->span.size);
    else if (!b->registered)
        free(b->host);
    if (b->pool) {
        b->pool->used -= b->span.size;
        pool_free_unused(b->pool);
    }
    handle_free(b);
}

CUresult memory_check(CUmemAllocationType type, CUmemAllocationHandleType handle_types,
                      CUmemLocation location)
{
    if (type != CU_MEM_ALLOCATION_TYPE_PINNED || location.type == CU_MEM_LOCATION_TYPE_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || handle_types)
        return CUDA_ERROR_NOT_SUPPORTED;
    return location.id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

size_t memory_used(void)
{
    size_t bytes = 0;
    for (buffer *b = NULL; (b = handle_next(BUFFER_HANDLE, b));)
        bytes += b->host && !b->managed ? 0 : b->span.size;
    for (physical *p = NULL; (p = handle_next(PHYSICAL_HANDLE, p));)
        bytes += p->size;
    return bytes;
}

void *span_at(handle_kind kind, uint64_t address)
{
    for (span *s = NULL; (s = handle_next(kind, s));)
        if (address - s->address < s->size)
            return s;
    return NULL;
}

buffer *buffer_of_host(const void *p)
{
    for (buffer *b = NULL; (b = handle_next(BUFFER_HANDLE, b));)
        if (b->host && (uintptr_t)p - (uintptr_t)b->host < b->span.size)
            return b;
    return NULL;
}

void say_where(const char *what, uint64_t address, size_t size)
{
    emu_allocation a;
    if (!emu_find(driver.memory, address, &a))
        say("%s: %zu bytes at 0x%llx, which is not a device address", what, size,
            (unsigned long long)address);
    else
        say("%s: %zu bytes at 0x%llx, which is offset %lld of the %s%llu bytes at 0x%llx", what,
            size, (unsigned long long)address, (long long)(address - a.address),
            a.freed ? "freed " : "", (unsigned long long)a.size, (unsigned long long)a.address);
}
