/* Allocations. Device addresses and host pointers are different things here, as the attribute
 * CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING says: kernels reach page-locked host memory by the address
 * that cuMemHostGetDevicePointer gives. Memory that nobody has written is empty, and a kernel that
 * reads it fails. */
#include <stdlib.h>

#include "libcuda/capture.h"
#include "libcuda/memory.h"

enum { PITCH_UNIT = 512 };

static size_t used_bytes(void)
{
    size_t bytes = 0;
    for (buffer *b = NULL; (b = handle_next(BUFFER_HANDLE, b));)
        bytes += b->host ? 0 : b->size;
    return bytes;
}

static CUresult allocate(CUcontext c, CUdeviceptr *address, size_t size)
{
    CUresult r = capture_refuses(c);
    if (r)
        return r;
    if (!address || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > DEVICE_MEMORY_BYTES - used_bytes())
        return CUDA_ERROR_OUT_OF_MEMORY;
    const buffer *b = buffer_new(c, NULL, size);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = b->address;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (!available || !total))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        *available = DEVICE_MEMORY_BYTES - used_bytes();
        *total = DEVICE_MEMORY_BYTES;
    }
    return leave(r);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : allocate(c, address, size));
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned element_size)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    bool known = element_size == 4 || element_size == 8 || element_size == 16;
    size_t bytes = (width + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;
    if (!r &&
        (!pitch || !known || width > SIZE_MAX - PITCH_UNIT || (bytes && height > SIZE_MAX / bytes)))
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : allocate(c, address, bytes * height);
    if (!r)
        *pitch = bytes;
    return leave(r);
}

static CUresult release(CUcontext c, CUdeviceptr address)
{
    CUresult r = capture_refuses(c);
    if (r || !address)
        return r;
    buffer *b = buffer_of_address(address);
    if (!b || b->address != address || b->host) {
        say("cuMemFree: nothing was allocated at 0x%llx, or it was freed",
            (unsigned long long)address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    buffer_destroy(b);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : release(c, address));
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : stream_find(c, stream, &stream);
    return leave(r ? r : allocate(c, address, size));
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : stream_find(c, stream, &stream);
    return leave(r ? r : release(c, address));
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    const buffer *b = r ? NULL : buffer_of_address(address);
    if (!r && !b)
        r = CUDA_ERROR_NOT_FOUND;
    if (!r && base)
        *base = b->address;
    if (!r && size)
        *size = b->size;
    return leave(r);
}

/* Host memory that the device knows under an address of its own. */
static CUresult map(CUcontext c, void *host, size_t size, unsigned flags, bool registered)
{
    buffer *b = host ? buffer_new(c, host, size) : NULL;
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->flags = flags;
    b->registered = registered;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **host, size_t size, unsigned flags)
{
    enum { KNOWN_FLAGS = 7 };
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (!host || !size || flags & ~(unsigned)KNOWN_FLAGS))
        r = CUDA_ERROR_INVALID_VALUE;
    void *bytes = r ? NULL : calloc(size, 1);
    r = r ? r : map(c, bytes, size, flags, false);
    if (r)
        free(bytes);
    else
        *host = bytes;
    return leave(r);
}

CUresult cuMemAllocHost_v2(void **host, size_t size)
{
    return cuMemHostAlloc(host, size, 0);
}

static CUresult release_host(void *host, bool registered)
{
    buffer *b = buffer_of_host(host);
    if (!b || b->host != host || b->registered != registered)
        return registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    buffer_destroy(b);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *host)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : release_host(host, false));
}

CUresult cuMemHostRegister_v2(void *host, size_t size, unsigned flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (!host || !size ||
               flags & ~(unsigned)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && (buffer_of_host(host) || buffer_of_host((char *)host + size - 1)))
        r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return leave(r ? r : map(c, host, size, flags, true));
}

CUresult cuMemHostUnregister(void *host)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : release_host(host, true));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    const buffer *b = r ? NULL : buffer_of_host(host);
    if (!r && (!address || flags || !b))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *address = b->address + ((uintptr_t)host - (uintptr_t)b->host);
    return leave(r);
}

CUresult cuMemHostGetFlags(unsigned *flags, void *host)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    const buffer *b = r ? NULL : buffer_of_host(host);
    if (!r && (!flags || !b))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *flags = b->flags;
    return leave(r);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    (void)address, (void)size, (void)flags;
    return leave(r ? r : CUDA_ERROR_NOT_SUPPORTED);
}

static CUresult pointer_attribute(void *data, CUpointer_attribute which, CUdeviceptr p)
{
    const buffer *b = buffer_of_address(p);
    if (!b)
        b = buffer_of_host((const void *)(uintptr_t)p);
    if (!data || !b)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t offset = p - (p - b->address < b->size ? b->address : (uintptr_t)b->host);
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = b->handle.context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = b->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = b->address + offset;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!b->host)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (char *)b->host + offset;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = b->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = b->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr p)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : pointer_attribute(data, which, p));
}

PER_THREAD_ALIAS(cuMemAllocAsync, _ptsz);
PER_THREAD_ALIAS(cuMemFreeAsync, _ptsz);
