#include <cuda/barrier>
#include <cuda/ptx>

namespace ptx = cuda::ptx;
using cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, cuda::ptx::space_global;

enum { STAGES = 3, TILE = 256 };

// One warp copies tiles while the others add them up, with full and empty mbarriers for each stage. WRONG
// selects a mistake: (1) the copying warp waits for the stage's last copy, not for the empty stage; (2) the
// others do not wait; (3) they signal an empty stage only once; (4) no fence follows the initialisation of
// the mbarriers.
template <int WRONG> __device__ void run(int *to, const int *from, int tiles)
{
    __shared__ alignas(128) int stages[STAGES][TILE];
    __shared__ alignas(8) uint64_t full[STAGES], empty[STAGES];
    int consumers = blockDim.x - 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            ptx::mbarrier_init(&full[i], 1);
            ptx::mbarrier_init(&empty[i], consumers);
        }
        if (WRONG != 4)
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < tiles && threadIdx.x == 0; i++) {
            int stage = i % STAGES, round = i / STAGES;
            while (!ptx::mbarrier_try_wait_parity(WRONG == 1 ? &full[stage] : &empty[stage], (round & 1) ^ 1))
                ;
            ptx::mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, &full[stage], sizeof stages[0]);
            ptx::cp_async_bulk(ptx::space_cluster, space_global, stages[stage], from + i * TILE, sizeof stages[0],
                               &full[stage]);
        }
        return;
    }
    int me = threadIdx.x - 32, sum = 0;
    for (int i = 0; i < tiles; i++) {
        int stage = i % STAGES, round = i / STAGES;
        if (WRONG != 2)
            while (!ptx::mbarrier_try_wait_parity(&full[stage], round & 1))
                ;
        sum += stages[stage][TILE - 1 - me];
        if (WRONG != 3 || i == 0)
            ptx::mbarrier_arrive(&empty[stage]);
    }
    to[me] = sum;
}

extern "C" __global__ void bulk_stages(int *to, const int *from, int tiles) { run<0>(to, from, tiles); }
extern "C" __global__ void bulk_overwrites(int *to, const int *from, int tiles) { run<1>(to, from, tiles); }
extern "C" __global__ void bulk_reads_early(int *to, const int *from, int tiles) { run<2>(to, from, tiles); }
extern "C" __global__ void bulk_never_empties(int *to, const int *from, int tiles) { run<3>(to, from, tiles); }
extern "C" __global__ void bulk_without_init_fence(int *to, const int *from, int tiles) { run<4>(to, from, tiles); }

// Loads a tile, adds one to each element, and stores the tile.
template <bool FENCED, bool WAITS> __device__ void increment(int *to, const int *from)
{
    __shared__ alignas(128) int tile[TILE * 4];
    __shared__ cuda::barrier<cuda::thread_scope_block> full;
    if (threadIdx.x == 0) {
        init(&full, blockDim.x);
        ptx::fence_proxy_async(space_shared);
    }
    __syncthreads();
    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::memcpy_async(tile, from + blockIdx.x * TILE * 4, cuda::aligned_size_t<16>(sizeof tile), full);
        token = cuda::device::barrier_arrive_tx(full, 1, 0);
    } else {
        token = full.arrive();
    }
    full.wait(std::move(token));
    for (int i = threadIdx.x; i < TILE * 4; i += blockDim.x)
        tile[i] += 1;
    if (FENCED)
        ptx::fence_proxy_async(space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(space_global, space_shared, to + blockIdx.x * TILE * 4, tile, sizeof tile);
        ptx::cp_async_bulk_commit_group();
        if (WAITS)
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}

extern "C" __global__ void bulk_increment(int *to, const int *from) { increment<true, true>(to, from); }
extern "C" __global__ void bulk_without_fence(int *to, const int *from) { increment<false, true>(to, from); }
extern "C" __global__ void bulk_without_wait(int *to, const int *from) { increment<true, false>(to, from); }
