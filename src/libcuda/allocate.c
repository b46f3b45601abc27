#include "libcuda/allocate.h"

#include "libcuda/capture.h"

CUresult memory_allocate(CUcontext c, CUdeviceptr *address, size_t size, CUmemoryPool pool)
{
    CUresult r = capture_refuses(c);
    if (r)
        return r;
    if (!address || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > DEVICE_MEMORY_BYTES - memory_used() || (pool && !pool_take(pool, size)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    buffer *b = buffer_new(c, NULL, size);
    if (!b) {
        if (pool)
            pool_give_back(pool, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    b->pool = pool;
    *address = b->address;
    return CUDA_SUCCESS;
}

CUresult memory_release(CUcontext c, CUdeviceptr address)
{
    CUresult r = capture_refuses(c);
    if (r || !address)
        return r;
    buffer *b = buffer_of_address(address);
    if (!b || b->address != address || (b->host && !b->managed)) {
        say("cuMemFree: nothing was allocated at 0x%llx, or it was freed",
            (unsigned long long)address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    buffer_destroy(b);
    return CUDA_SUCCESS;
}
