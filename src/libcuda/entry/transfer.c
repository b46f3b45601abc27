/* Copies and sets, and operations on single words of memory in a stream. */
#include "libcuda/capture.h"
#include "libcuda/entry/entry.h"

/* Does work of a call without a stream, which finishes before it returns: no capture allows that.
 */
static CUresult run_work_now(CUcontext c, work w)
{
    CUresult r = capture_refuses(c);
    r = r ? r : work_check(&w);
    return r ? r : work_run(c, c->null_stream, false, &w);
}

static CUresult submit_work(CUcontext c, CUstream stream, work w)
{
    return stream_submit(c, stream, &w);
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

static work on_device(CUmemorytype type, CUdeviceptr to, CUdeviceptr from, size_t size)
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

static work fill_rows(CUdeviceptr to, size_t pitch, unsigned value, unsigned element_size,
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

static work copy_box(const CUDA_MEMCPY3D *copy)
{
    return (work){ .type = CU_GRAPH_NODE_TYPE_MEMCPY, .as.copy = *copy };
}

static CUresult submit_words(CUcontext c, CUstream stream, unsigned count,
                             CUstreamBatchMemOpParams *operations, unsigned flags)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
               .as.words = { .count = count, .paramArray = operations, .flags = flags } };
    return stream_submit(c, stream, &w);
}

/* Submits a wait or a write, which have their fields at the same places. */
static CUresult submit_word(CUcontext c, CUstream stream, CUstreamBatchMemOpType type,
                            CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams p = { .waitValue = { .operation = type, .address = address } };
    p.waitValue.value64 = value;
    p.waitValue.flags = flags;
    return submit_words(c, stream, 1, &p, 0);
}

#include "libcuda/entry/transfer.def"
