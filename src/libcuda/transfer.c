/* Copies and sets. All copies are one kind: a box of rows from a place in host or device memory to
 * another, of which a plain copy is one row. */
#include <string.h>

#include "libcuda/capture.h"
#include "libcuda/memory.h"
#include "libcuda/stream.h"
#include "libcuda/work.h"

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
    bool on_device = type == CU_MEMORYTYPE_DEVICE ||
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

/* Calls without a stream finish before they return, which no capture allows. */
static CUresult run_now(work *w)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : capture_refuses(c);
    r = r ? r : work_check(w);
    return leave(r ? r : work_run(c, w));
}

static CUresult submit(work *w, CUstream stream)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : stream_submit(c, stream, w));
}

static work copy_work(CUmemorytype to_type, void *to_host, CUdeviceptr to, CUmemorytype from_type,
                      const void *from_host, CUdeviceptr from, size_t size)
{
    return (work){ .type = CU_GRAPH_NODE_TYPE_MEMCPY,
                   .as.copy = { .srcMemoryType = from_type,
                                .srcHost = from_host,
                                .srcDevice = from,
                                .dstMemoryType = to_type,
                                .dstHost = to_host,
                                .dstDevice = to,
                                .WidthInBytes = size,
                                .Height = 1,
                                .Depth = 1 } };
}

static work to_device(CUdeviceptr to, const void *from, size_t size)
{
    return copy_work(CU_MEMORYTYPE_DEVICE, NULL, to, CU_MEMORYTYPE_HOST, from, 0, size);
}

static work to_host(void *to, CUdeviceptr from, size_t size)
{
    return copy_work(CU_MEMORYTYPE_HOST, to, 0, CU_MEMORYTYPE_DEVICE, NULL, from, size);
}

static work between(CUmemorytype type, CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return copy_work(type, NULL, to, type, NULL, from, size);
}

static work from_2d(const CUDA_MEMCPY2D *c)
{
    return (work){ .type = CU_GRAPH_NODE_TYPE_MEMCPY,
                   .as.copy = { .srcXInBytes = c->srcXInBytes,
                                .srcY = c->srcY,
                                .srcMemoryType = c->srcMemoryType,
                                .srcHost = c->srcHost,
                                .srcDevice = c->srcDevice,
                                .srcPitch = c->srcPitch,
                                .dstXInBytes = c->dstXInBytes,
                                .dstY = c->dstY,
                                .dstMemoryType = c->dstMemoryType,
                                .dstHost = c->dstHost,
                                .dstDevice = c->dstDevice,
                                .dstPitch = c->dstPitch,
                                .WidthInBytes = c->WidthInBytes,
                                .Height = c->Height,
                                .Depth = 1 } };
}

static work set_work(CUdeviceptr to, unsigned value, unsigned element_size, size_t count)
{
    return (work){ .type = CU_GRAPH_NODE_TYPE_MEMSET,
                   .as.set = { .dst = to,
                               .value = value,
                               .elementSize = element_size,
                               .width = count,
                               .height = 1 } };
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
    work w = to_device(to, from, size);
    return run_now(&w);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    work w = to_device(to, from, size);
    return submit(&w, stream);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
    work w = to_host(to, from, size);
    return run_now(&w);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    work w = to_host(to, from, size);
    return submit(&w, stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    work w = between(CU_MEMORYTYPE_DEVICE, to, from, size);
    return run_now(&w);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    work w = between(CU_MEMORYTYPE_DEVICE, to, from, size);
    return submit(&w, stream);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    work w = between(CU_MEMORYTYPE_UNIFIED, to, from, size);
    return run_now(&w);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    work w = between(CU_MEMORYTYPE_UNIFIED, to, from, size);
    return submit(&w, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    work w = from_2d(copy);
    return run_now(&w);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    work w = from_2d(copy);
    return submit(&w, stream);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    return run_now(&(work){ .type = CU_GRAPH_NODE_TYPE_MEMCPY, .as.copy = *copy });
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    return submit(&(work){ .type = CU_GRAPH_NODE_TYPE_MEMCPY, .as.copy = *copy }, stream);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    work w = set_work(to, value, 1, count);
    return run_now(&w);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    work w = set_work(to, value, 2, count);
    return run_now(&w);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count)
{
    work w = set_work(to, value, 4, count);
    return run_now(&w);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    work w = set_work(to, value, 1, count);
    return submit(&w, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    work w = set_work(to, value, 2, count);
    return submit(&w, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    work w = set_work(to, value, 4, count);
    return submit(&w, stream);
}

PER_THREAD_ALIAS(cuMemcpyHtoD_v2, _ptds);
PER_THREAD_ALIAS(cuMemcpyDtoH_v2, _ptds);
PER_THREAD_ALIAS(cuMemcpyDtoD_v2, _ptds);
PER_THREAD_ALIAS(cuMemcpy, _ptds);
PER_THREAD_ALIAS(cuMemcpy2D_v2, _ptds);
PER_THREAD_ALIAS(cuMemcpy3D_v2, _ptds);
PER_THREAD_ALIAS(cuMemsetD8_v2, _ptds);
PER_THREAD_ALIAS(cuMemsetD16_v2, _ptds);
PER_THREAD_ALIAS(cuMemsetD32_v2, _ptds);
PER_THREAD_ALIAS(cuMemcpyHtoDAsync_v2, _ptsz);
PER_THREAD_ALIAS(cuMemcpyDtoHAsync_v2, _ptsz);
PER_THREAD_ALIAS(cuMemcpyDtoDAsync_v2, _ptsz);
PER_THREAD_ALIAS(cuMemcpyAsync, _ptsz);
PER_THREAD_ALIAS(cuMemcpy2DAsync_v2, _ptsz);
PER_THREAD_ALIAS(cuMemcpy3DAsync_v2, _ptsz);
PER_THREAD_ALIAS(cuMemsetD8Async, _ptsz);
PER_THREAD_ALIAS(cuMemsetD16Async, _ptsz);
PER_THREAD_ALIAS(cuMemsetD32Async, _ptsz);
