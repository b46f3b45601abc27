// The last block to finish adds up what all have stored. Threads that store see to it that others
// see the store before they see the count; the one that counts, that its block loads after it.
__device__ unsigned finished;

extern "C" __global__ void last_block(float *total, float *partial, const float *values, int n)
{
    __shared__ float warps[4];
    __shared__ bool last;
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    float sum = 0;
    for (unsigned i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128)
        sum += values[i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0)
        partial[blockIdx.x * 4 + warp] = sum;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last)
        return;
    sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x * 4; i += 128)
        sum += partial[i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0)
        warps[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        *total = warps[0] + warps[1] + warps[2] + warps[3];
}
