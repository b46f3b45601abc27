#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>

using barrier = cuda::barrier<cuda::thread_scope_block>;

// Each thread copies its element and reads another thread's element after the barrier.
extern "C" __global__ void reverse_at_barrier(int *to, const int *from)
{
    __shared__ int tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier all;
    if (threadIdx.x == 0)
        init(&all, blockDim.x);
    __syncthreads();
    for (int round = 0; round < 3; round++) {
        cuda::memcpy_async(&tile[threadIdx.x], &from[round * 256 + threadIdx.x], sizeof(int), all);
        all.arrive_and_wait();
        to[round * 256 + threadIdx.x] = tile[255 - threadIdx.x];
        all.arrive_and_wait();
    }
    all.arrive_and_drop();
}

// Sums tiles of 1 KiB in two stages: one is copied while the other is added up.
extern "C" __global__ void add_up_stages(int *to, const int *from, int tiles)
{
    __shared__ int stages[2][256];
    auto block = cooperative_groups::this_thread_block();
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipeline = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int copied = 0, i = 0; i < tiles; i++) {
        for (; copied < tiles && copied < i + 2; copied++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, stages[copied % 2], from + 256 * copied, cuda::aligned_size_t<16>(1024), pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += stages[i % 2][255 - threadIdx.x];
        pipeline.consumer_release();
    }
    to[threadIdx.x] = sum;
}
