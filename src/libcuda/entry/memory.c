/* Allocations. Device addresses and host pointers are different things here, as the attribute
 * CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING says: kernels reach page-locked host memory by the address
 * that cuMemHostGetDevicePointer gives. Memory that nobody has written is empty, and a kernel that
 * reads it fails. */
#include <stdlib.h>
#include <string.h>

#include "libcuda/allocate.h"
#include "libcuda/capture.h"
#include "libcuda/virtual.h"

enum { PITCH_UNIT = 512 };

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (!available || !total))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        *available = DEVICE_MEMORY_BYTES - memory_used();
        *total = DEVICE_MEMORY_BYTES;
    }
    return leave(r);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : memory_allocate(c, address, size, NULL));
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
    r = r ? r : memory_allocate(c, address, bytes * height, NULL);
    if (!r)
        *pitch = bytes;
    return leave(r);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : memory_release(c, address));
}

/* What an address is in: an allocation, or reserved addresses with memory mapped there. */
typedef struct range {
    const buffer *buffer; /* NULL: reserved addresses */
    const mapping *mapping;
    uint64_t address;
    size_t size;
} range;

static bool find_range(CUdeviceptr p, range *found)
{
    const buffer *b = buffer_of_address(p);
    const mapping *m = b ? NULL : mapping_of(p);
    *found = (range){ b, m, b ? b->address : m ? m->address : 0, b ? b->size : m ? m->size : 0 };
    return b || m;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    range at;
    if (!r && !find_range(address, &at))
        r = CUDA_ERROR_NOT_FOUND;
    if (!r && base)
        *base = at.address;
    if (!r && size)
        *size = at.size;
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
    if (!b || b->host != host || b->registered != registered || b->managed)
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
    CUresult r = enter_context_to_ask(&c);
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
    CUresult r = enter_context_to_ask(&c);
    const buffer *b = r ? NULL : buffer_of_host(host);
    if (!r && (!flags || !b))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *flags = b->flags;
    return leave(r);
}

/* What a device address, or a host pointer that the device knows, is in; *p is the first then. */
static bool find_pointer(CUdeviceptr *p, range *found)
{
    if (find_range(*p, found))
        return true;
    const buffer *b = buffer_of_host((const void *)(uintptr_t)*p);
    if (b) {
        *p = b->address + (*p - (uintptr_t)b->host);
        *found = (range){ b, NULL, b->address, b->size };
    }
    return b;
}

/* Bytes of what is answered; 0 for an attribute that is not known. */
static size_t answer_bytes(CUpointer_attribute which)
{
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return 8;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return 4;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return 4;
    default:
        return 0;
    }
}

/* An attribute as a number. */
static uint64_t answer(CUpointer_attribute which, CUdeviceptr p, const range *in)
{
    const buffer *b = in->buffer;
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return b ? (uintptr_t)b->handle.context : 0;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return b && b->host && !b->managed ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return p;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return (uintptr_t)b->host + (p - b->address);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return b && b->managed;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return in->address;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return in->size;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return in->address >>
               32; /* no two allocations have that in common, and none gets it again */
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return 1;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return b ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : in->mapping->access;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return b ? (uintptr_t)b->pool : 0;
    default:
        return 0;
    }
}

static CUresult pointer_attribute(void *data, CUpointer_attribute which, CUdeviceptr p)
{
    range in;
    size_t bytes = answer_bytes(which);
    if (!data || !find_pointer(&p, &in))
        return CUDA_ERROR_INVALID_VALUE;
    if (!bytes)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (which == CU_POINTER_ATTRIBUTE_HOST_POINTER && !(in.buffer && in.buffer->host))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t value = answer(which, p, &in);
    memcpy(data, &value, bytes); /* of a little-endian host */
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr p)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : pointer_attribute(data, which, p));
}

/* What a pointer has not is zero, and no error; so is all of a pointer that nobody knows. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **data,
                                CUdeviceptr p)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    if (!r && (!which || !data))
        r = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !r && i < count; i++)
        if (!data[i] || !answer_bytes(which[i]))
            r = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !r && i < count; i++)
        if (pointer_attribute(data[i], which[i], p))
            memset(data[i], 0, answer_bytes(which[i]));
    return leave(r);
}

/* All operations are synchronous as it is. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute which, CUdeviceptr p)
{
    range in;
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (!value || which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !find_pointer(&p, &in)))
        r = CUDA_ERROR_INVALID_VALUE;
    return leave(r);
}
