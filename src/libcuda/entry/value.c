/* Operations on single words of memory in a stream. The first versions of these functions have the
 * same parameters. */
#include "libcuda/submit.h"

CUresult cuStreamBatchMemOp_v2(CUstream s, unsigned count, CUstreamBatchMemOpParams *operations,
                               unsigned flags)
{
    work w = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
               .as.values = { .count = count, .paramArray = operations, .flags = flags } };
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : stream_submit(c, s, &w));
}

CUresult cuStreamBatchMemOp(CUstream s, unsigned count, CUstreamBatchMemOpParams *operations,
                            unsigned flags)
{
    return cuStreamBatchMemOp_v2(s, count, operations, flags);
}

/* Both kinds of operation lie alike. */
static CUresult submit(CUstream s, CUstreamBatchMemOpType type, CUdeviceptr address,
                       cuuint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams p = { .waitValue = { .operation = type, .address = address } };
    p.waitValue.value64 = value;
    p.waitValue.flags = flags;
    return cuStreamBatchMemOp_v2(s, 1, &p, 0);
}

CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    return submit(s, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CUresult cuStreamWaitValue32(CUstream s, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    return cuStreamWaitValue32_v2(s, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream s, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    return submit(s, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

CUresult cuStreamWaitValue64(CUstream s, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    return cuStreamWaitValue64_v2(s, address, value, flags);
}

CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    return submit(s, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

CUresult cuStreamWriteValue32(CUstream s, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    return cuStreamWriteValue32_v2(s, address, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream s, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    return submit(s, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

CUresult cuStreamWriteValue64(CUstream s, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    return cuStreamWriteValue64_v2(s, address, value, flags);
}

PER_THREAD_ALIAS(cuStreamBatchMemOp, _ptsz);
PER_THREAD_ALIAS(cuStreamBatchMemOp_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamWaitValue32, _ptsz);
PER_THREAD_ALIAS(cuStreamWaitValue32_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamWaitValue64, _ptsz);
PER_THREAD_ALIAS(cuStreamWaitValue64_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamWriteValue32, _ptsz);
PER_THREAD_ALIAS(cuStreamWriteValue32_v2, _ptsz);
PER_THREAD_ALIAS(cuStreamWriteValue64, _ptsz);
PER_THREAD_ALIAS(cuStreamWriteValue64_v2, _ptsz);
