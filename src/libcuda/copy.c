#include "libcuda/copy.h"

#include <string.h>

#include "libcuda/memory.h"

enum { HOST_ADDRESS_BITS = 48 }; /* what is above is the device's or nobody's */

/* One side of a copy: the start of a row. */
typedef struct place {
    bool on_device;
    uint64_t address;
} place;

static place resolve(CUmemorytype type, const void *host, CUdeviceptr device)
{
    emu_allocation a;
    if (type == CU_MEMORYTYPE_HOST)
        return (place){ false, (uintptr_t)host };
    bool on_device = type == CU_MEMORYTYPE_DEVICE || device >> HOST_ADDRESS_BITS ||
                     (emu_find(device_memory(), device, &a) && device - a.address < a.size);
    return (place){ on_device, device };
}

static bool has_memory(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST
               ? host != NULL
               : (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED) && device;
}

CUresult copy_check(const CUDA_MEMCPY3D *c)
{
    bool rows = c->Height > 1 || c->Depth > 1, slices = c->Depth > 1;
    if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!c->WidthInBytes || !c->Height || !c->Depth)
        return CUDA_SUCCESS;
    if (!has_memory(c->srcMemoryType, c->srcHost, c->srcDevice) ||
        !has_memory(c->dstMemoryType, c->dstHost, c->dstDevice) ||
        (rows && (c->srcPitch < c->srcXInBytes + c->WidthInBytes ||
                  c->dstPitch < c->dstXInBytes + c->WidthInBytes)) ||
        (slices && (c->srcHeight < c->srcY + c->Height || c->dstHeight < c->dstY + c->Height)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Size bytes, or a line on standard error and false. */
static bool copy_row(place to, place from, size_t size)
{
    emu_memory *m = device_memory();
    void *to_host = (void *)(uintptr_t)to.address;
    const void *from_host = (const void *)(uintptr_t)from.address;
    if (!to.on_device && !from.on_device) {
        memmove(to_host, from_host, size);
        return true;
    }
    if (to.on_device && from.on_device ? emu_copy(m, to.address, from.address, size)
        : to.on_device                 ? emu_write(m, to.address, from_host, size)
                                       : emu_read(m, from.address, to_host, size))
        return true;
    if (from.on_device)
        say_where("copy from", from.address, size);
    if (to.on_device)
        say_where("copy to", to.address, size);
    return false;
}

CUresult copy_run(const CUDA_MEMCPY3D *c)
{
    place to = resolve(c->dstMemoryType, c->dstHost, c->dstDevice);
    place from = resolve(c->srcMemoryType, c->srcHost, c->srcDevice);
    uint64_t to_start = to.address, from_start = from.address;
    for (size_t z = 0; c->WidthInBytes && z < c->Depth; z++)
        for (size_t y = 0; y < c->Height; y++) {
            to.address = to_start + c->dstXInBytes +
                         (c->dstY + y + (c->dstZ + z) * c->dstHeight) * c->dstPitch;
            from.address = from_start + c->srcXInBytes +
                           (c->srcY + y + (c->srcZ + z) * c->srcHeight) * c->srcPitch;
            if (!copy_row(to, from, c->WidthInBytes))
                return CUDA_ERROR_INVALID_VALUE;
        }
    return CUDA_SUCCESS;
}

CUresult set_check(const CUDA_MEMSET_NODE_PARAMS *s)
{
    unsigned size = s->elementSize;
    bool known = size == 1 || size == 2 || size == 4;
    if (!known || !s->dst || s->dst % size ||
        (s->height > 1 && (s->pitch < s->width * size || s->pitch % size)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult set_run(const CUDA_MEMSET_NODE_PARAMS *s)
{
    unsigned char element[4];
    for (unsigned i = 0; i < sizeof element; i++)
        element[i] = (unsigned char)(s->value >> 8 * i);
    for (size_t y = 0; s->width && y < s->height; y++) {
        uint64_t row = s->dst + y * s->pitch;
        if (!emu_fill(device_memory(), row, element, s->elementSize, s->width)) {
            say_where("memset", row, s->width * s->elementSize);
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}
