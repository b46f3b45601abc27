// Flash decoding with grouped queries in CUDA C, for heads of 128 values, an f16 cache and four
// query heads per KV head. The peer of the attention kernels, launched with the buffers of
// flash_decoding_chunk.
//
// A block computes all query heads of a KV head for a chunk of positions, so K and V are read once.
// Sixteen lanes read the row of a position, 16 bytes each. In an iteration each of the eight groups
// of a block reads four consecutive positions. Each group has its own online softmax: sums are
// rescaled when the maximum grows. At the end the groups' rows are merged in shared memory.
#include <cfloat>
#include <cuda_fp16.h>

enum { HEAD_DIM = 128, RATIO = 4, LANES = 16, VALUES = HEAD_DIM / LANES, BLOCK = 128,
       GROUPS = BLOCK / LANES, BATCH = 4, PARTIAL = HEAD_DIM + 4 };

// 1 / sqrt(HEAD_DIM) times log2(e): partial results use powers of two.
static const float SCALE = 1.4426950408889634f * 0.08838834764831845f;

struct softmax {
    float max, sum, row[VALUES];
};

static __device__ void unpack(uint4 raw, float *values)
{
    const __half2 *halves = (const __half2 *)&raw;
    for (int i = 0; i < VALUES / 2; i++)
        ((float2 *)values)[i] = __half22float2(halves[i]);
}

static __device__ float dot(const float *q, const float *k)
{
    float sum = 0;
    for (int i = 0; i < VALUES; i++)
        sum = fmaf(q[i], k[i], sum);
    for (int mask = LANES / 2; mask; mask /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, mask);
    return sum;
}

// Turns the scores of a batch into weights, and rescales earlier sums by the growth of the maximum.
static __device__ void weigh(softmax *s, float *scores, int exist)
{
    float max = s->max;
    for (int i = 0; i < BATCH; i++)
        if (i < exist)
            max = fmaxf(max, scores[i]);
    float kept = exp2f(s->max - max);
    s->max = max;
    s->sum *= kept;
    for (int i = 0; i < VALUES; i++)
        s->row[i] *= kept;
    for (int i = 0; i < BATCH; i++) {
        scores[i] = i < exist ? exp2f(scores[i] - max) : 0;
        s->sum += scores[i];
    }
}

static __device__ void add_batch(softmax *s, const float (*q)[VALUES], const uint4 *k,
                                 const uint4 *v, int exist)
{
    float scores[RATIO][BATCH], values[VALUES];
    for (int i = 0; i < BATCH; i++) {
        unpack(k[i], values);
        for (int h = 0; h < RATIO; h++)
            scores[h][i] = dot(q[h], values);
    }
    for (int h = 0; h < RATIO; h++)
        weigh(&s[h], scores[h], exist);
    for (int i = 0; i < BATCH; i++) {
        unpack(v[i], values);
        for (int h = 0; h < RATIO; h++)
            for (int j = 0; j < VALUES; j++)
                s[h].row[j] = fmaf(scores[h][i], values[j], s[h].row[j]);
    }
}

// Merges the groups' rows. A thread owns one of the 128 values of each head.
static __device__ void merge(float *partials, size_t stride, const float (*rows)[RATIO][PARTIAL])
{
    for (int h = 0; h < RATIO; h++) {
        float max = -FLT_MAX, sum = 0, value = 0;
        for (int g = 0; g < GROUPS; g++)
            max = fmaxf(max, rows[g][h][HEAD_DIM]);
        for (int g = 0; g < GROUPS; g++) {
            float weight = exp2f(rows[g][h][HEAD_DIM] - max);
            sum += weight * rows[g][h][HEAD_DIM + 1];
            value += weight * rows[g][h][threadIdx.x];
        }
        partials[h * stride + threadIdx.x] = value;
        if (threadIdx.x == 0)
            *(float4 *)(partials + h * stride + HEAD_DIM) = make_float4(max, sum, 0, 0);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) flash_decoding_chunk_peer(
    float *partials, const float *q, const uint4 *k_pool, const uint4 *v_pool,
    const unsigned *seq_lens, const unsigned *sequences, unsigned max_seq_len, unsigned chunk_size)
{
    __shared__ __align__(16) float rows[GROUPS][RATIO][PARTIAL];
    unsigned kv_head = blockIdx.x, row = blockIdx.y, chunk = blockIdx.z;
    unsigned lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    unsigned first = chunk * chunk_size;
    unsigned end = min(min(seq_lens[row], max_seq_len), first + chunk_size);
    if (first >= end)
        return;
    size_t head = ((size_t)row * gridDim.x + kv_head) * RATIO;
    float queries[RATIO][VALUES];
    softmax s[RATIO];
    for (int h = 0; h < RATIO; h++) {
        s[h] = { -FLT_MAX, 0, { 0 } };
        for (int i = 0; i < VALUES; i++)
            queries[h][i] = q[(head + h) * HEAD_DIM + lane * VALUES + i] * SCALE;
    }
    size_t cache = ((size_t)sequences[row] * gridDim.x + kv_head) * max_seq_len * LANES + lane;
    const uint4 *k = k_pool + cache, *v = v_pool + cache;
    for (unsigned turn = first; turn < end; turn += GROUPS * BATCH) {
        unsigned position = turn + group * BATCH;
        uint4 k_rows[BATCH], v_rows[BATCH];
        for (int i = 0; i < BATCH; i++) {
            size_t at = (size_t)min(position + i, end - 1) * LANES;
            k_rows[i] = __ldcs(k + at);
            v_rows[i] = __ldcs(v + at);
        }
        add_batch(s, queries, k_rows, v_rows, (int)end - (int)position);
    }
    for (int h = 0; h < RATIO; h++) {
        for (int i = 0; i < VALUES; i++)
            rows[group][h][lane * VALUES + i] = s[h].row[i];
        if (lane == 0)
            *(float2 *)(rows[group][h] + HEAD_DIM) = make_float2(s[h].max, s[h].sum);
    }
    __syncthreads();
    merge(partials + (head * gridDim.z + chunk) * PARTIAL, (size_t)gridDim.z * PARTIAL, rows);
}
