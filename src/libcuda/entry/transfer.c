#include "libcuda/capture.h"
#include "libcuda/submit.h"

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

static work set_rows(CUdeviceptr to, size_t pitch, unsigned value, unsigned element_size,
                     size_t width, size_t height)
{
    return (work){ .type = CU_GRAPH_NODE_TYPE_MEMSET,
                   .as.set = { .dst = to,
                               .pitch = pitch,
                               .value = value,
                               .elementSize = element_size,
                               .width = width,
                               .height = height } };
}

static work set_work(CUdeviceptr to, unsigned value, unsigned element_size, size_t count)
{
    return set_rows(to, 0, value, element_size, count, 1);
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

/* All contexts share one device. */
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t size)
{
    (void)to_context, (void)from_context;
    return cuMemcpyDtoD_v2(to, from, size);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t size, CUstream stream)
{
    (void)to_context, (void)from_context;
    return cuMemcpyDtoDAsync_v2(to, from, size, stream);
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

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
    return cuMemcpy2D_v2(copy);
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

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height)
{
    work w = set_rows(to, pitch, value, 1, width, height);
    return run_now(&w);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height)
{
    work w = set_rows(to, pitch, value, 2, width, height);
    return run_now(&w);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height)
{
    work w = set_rows(to, pitch, value, 4, width, height);
    return run_now(&w);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream)
{
    work w = set_rows(to, pitch, value, 1, width, height);
    return submit(&w, stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream)
{
    work w = set_rows(to, pitch, value, 2, width, height);
    return submit(&w, stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                            size_t height, CUstream stream)
{
    work w = set_rows(to, pitch, value, 4, width, height);
    return submit(&w, stream);
}

PER_THREAD_ALIAS(cuMemcpyPeer, _ptds);
PER_THREAD_ALIAS(cuMemcpy2DUnaligned_v2, _ptds);
PER_THREAD_ALIAS(cuMemsetD2D8_v2, _ptds);
PER_THREAD_ALIAS(cuMemsetD2D16_v2, _ptds);
PER_THREAD_ALIAS(cuMemsetD2D32_v2, _ptds);
PER_THREAD_ALIAS(cuMemcpyPeerAsync, _ptsz);
PER_THREAD_ALIAS(cuMemsetD2D8Async, _ptsz);
PER_THREAD_ALIAS(cuMemsetD2D16Async, _ptsz);
PER_THREAD_ALIAS(cuMemsetD2D32Async, _ptsz);
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
