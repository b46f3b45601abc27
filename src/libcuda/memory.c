#include "libcuda/memory.h"

#include <stdlib.h>

static CUresult place(void *context)
{
    buffer *b = context;
    b->address = b->host ? emu_map(device_memory(), b->host, b->size, false)
                         : emu_alloc(device_memory(), b->size);
    return b->address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

buffer *buffer_new(CUcontext c, void *host, size_t size)
{
    buffer *b = handle_new(BUFFER_HANDLE, sizeof *b, c);
    if (!b)
        return NULL;
    b->host = host;
    b->size = size;
    if (!driver_try(place, b))
        return b;
    handle_free(b);
    return NULL;
}

void buffer_destroy(buffer *b)
{
    emu_free(device_memory(), b->address);
    if (!b->registered)
        free(b->host);
    handle_free(b);
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
