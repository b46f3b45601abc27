// Tiles are copied to shared memory while the one before is summed: two stages of cp.async.
#include <cuda_pipeline.h>

extern "C" __global__ void async_copy(float *sums, const float *values, int tiles)
{
    __shared__ float4 stage[2][64];
    const float4 *from = (const float4 *)values + (size_t)blockIdx.x * tiles * 64;
    float sum = 0;
    __pipeline_memcpy_async(&stage[0][threadIdx.x], &from[threadIdx.x], sizeof(float4));
    __pipeline_commit();
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles)
            __pipeline_memcpy_async(&stage[(tile + 1) & 1][threadIdx.x],
                                    &from[(tile + 1) * 64 + threadIdx.x], sizeof(float4));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = stage[tile & 1][63 - threadIdx.x];
        sum += v.x + v.y + v.z + v.w;
        __syncthreads();
    }
    sums[blockIdx.x * 64 + threadIdx.x] = sum;
}
