// A grid-stride loop: fewer threads than elements.
extern "C" __global__ void vector_add(float *sum, const float *a, const float *b, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum[i] = a[i] + b[i];
}

// A tree reduction in shared memory, with a barrier after each step.
extern "C" __global__ void block_sum(float *sums, const float *values, int n)
{
    __shared__ float tile[256];
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        sum += values[i];
    tile[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tile[threadIdx.x] += tile[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = tile[0];
}

// y = W x, one warp per row, butterfly shuffles.
extern "C" __global__ void gemv(float *y, const float *__restrict__ w, const float *__restrict__ x,
                                int k)
{
    size_t row = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < k; i += 32)
        sum += w[row * k + i] * x[i];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    if (threadIdx.x == 0)
        y[row] = sum;
}

// Transposes a 32 x 32 tile through shared memory with a padding column.
extern "C" __global__ void transpose(float *to, const float *from, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = from[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        to[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// Counters in shared memory are added to counters in global memory.
extern "C" __global__ void histogram(int *counts, const unsigned char *bytes, int n)
{
    __shared__ int local[16];
    if (threadIdx.x < 16)
        local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[bytes[i] & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16)
        atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}

// Dynamic shared memory, fast exponentials, both kinds of warp reduction.
extern "C" __global__ void softmax(float *to, const float *scores, int n)
{
    extern __shared__ float weights[];
    int lane = threadIdx.x;
    float highest = -INFINITY, sum = 0;
    for (int i = lane; i < n; i += 32)
        highest = fmaxf(highest, scores[i]);
    for (int distance = 16; distance > 0; distance /= 2)
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, distance));
    for (int i = lane; i < n; i += 32) {
        weights[n - 1 - i] = __expf(scores[i] - highest);
        sum += weights[n - 1 - i];
    }
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    __syncwarp();
    for (int i = lane; i < n; i += 32)
        to[i] = __fdividef(weights[n - 1 - i], sum);
}
