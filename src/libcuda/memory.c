#include "libcuda/memory.h"

#include <stdlib.h>

#include "libcuda/pages.h"
#include "libcuda/virtual.h"

static CUresult place(void *context)
{
    buffer *b = context;
    b->address = b->managed ? emu_map_here(device_memory(), b->host, b->size)
                 : b->host  ? emu_map(device_memory(), b->host, b->size, false)
                            : emu_alloc(device_memory(), b->size);
    return b->address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static buffer *make(CUcontext c, void *host, size_t size, bool managed)
{
    buffer *b = handle_new(BUFFER_HANDLE, sizeof *b, c);
    if (!b)
        return NULL;
    b->host = host;
    b->size = size;
    b->managed = managed;
    if (!driver_try(place, b))
        return b;
    handle_free(b);
    return NULL;
}

buffer *buffer_new(CUcontext c, void *host, size_t size)
{
    return make(c, host, size, false);
}

buffer *buffer_new_managed(CUcontext c, size_t size)
{
    void *host = pages_new(size);
    buffer *b = host ? make(c, host, size, true) : NULL;
    if (!b)
        pages_free(host, size);
    return b;
}

void buffer_destroy(buffer *b)
{
    emu_free(device_memory(), b->address);
    if (b->managed)
        pages_free(b->host, b->size);
    else if (!b->registered)
        free(b->host);
    if (b->pool)
        pool_give_back(b->pool, b->size);
    handle_free(b);
}

size_t memory_used(void)
{
    size_t bytes = physical_used();
    for (buffer *b = NULL; (b = handle_next(BUFFER_HANDLE, b));)
        bytes += b->host && !b->managed ? 0 : b->size;
    return bytes;
}

buffer *buffer_of_address(uint64_t address)
{
    for (buffer *b = NULL; (b = handle_next(BUFFER_HANDLE, b));)
        if (address - b->address < b->size)
            return b;
    return NULL;
}

buffer *buffer_of_host(const void *p)
{
    for (buffer *b = NULL; (b = handle_next(BUFFER_HANDLE, b));)
        if (b->host && (uintptr_t)p - (uintptr_t)b->host < b->size)
            return b;
    return NULL;
}

void say_where(const char *what, uint64_t address, size_t size)
{
    emu_allocation a;
    if (!emu_find(device_memory(), address, &a))
        say("%s: %zu bytes at 0x%llx, which is no device address", what, size,
            (unsigned long long)address);
    else
        say("%s: %zu bytes at 0x%llx, which is %lld bytes into %s%llu at 0x%llx", what, size,
            (unsigned long long)address, (long long)(address - a.address),
            a.freed ? "the freed " : "", (unsigned long long)a.size, (unsigned long long)a.address);
}
