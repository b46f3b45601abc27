/* Copies, memsets, and memory operations on single words. */
#include "libcuda/graph.h"
#include "libcuda/entry/entry.h"

/* Runs the work of a synchronous call, which no capture allows. */
static CUresult run_work_now(CUcontext c, const work *w)
{
    CUresult r = capture_refuses(c, UNSAFE_CALL);
    r = r ? r : work_check(w);
    return r ? r : work_run(c, c->null_stream, false, w);
}

static CUDA_MEMCPY3D copy_line(CUmemorytype to_type, void *to_host, CUdeviceptr to,
                               CUmemorytype from_type, const void *from_host, CUdeviceptr from,
                               size_t size)
{
    return (CUDA_MEMCPY3D){ .srcMemoryType = from_type,
                            .srcHost = from_host,
                            .srcDevice = from,
                            .dstMemoryType = to_type,
                            .dstHost = to_host,
                            .dstDevice = to,
                            .WidthInBytes = size,
                            .Height = 1,
                            .Depth = 1 };
}

static CUDA_MEMCPY3D copy_of_2d(const CUDA_MEMCPY2D *c)
{
    return (CUDA_MEMCPY3D){ .srcXInBytes = c->srcXInBytes,
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
                            .Depth = 1 };
}

/* Submits a wait or a write. Both have the same field offsets. */
static CUresult submit_word(CUcontext c, CUstream stream, CUstreamBatchMemOpType type,
                            CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams p = { .waitValue = { .operation = type, .address = address } };
    p.waitValue.value64 = value;
    p.waitValue.flags = flags;
    return stream_submit(
        c, stream, WORK(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, words, { .count = 1, .paramArray = &p }));
}

#include "libcuda/entry/transfer.def"
