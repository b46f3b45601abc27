// The family stream_gemv with Q4_K weights, written in CUDA C. The peer that the generated kernel is
// timed against, launched with the same grid and buffers.
//
// A block quantizes x into shared memory, then each warp multiplies two rows at a time. Eight lanes
// read a super-block, 16 bytes of quants each; lane 2c + h reads half h of chunk c. A step is 1024
// weights.
#include <cuda_fp16.h>

enum { WARP = 32, ROWS = 2, BLOCK_WORDS = 9, SEGMENT = 16, STEP_SEGMENTS = 64, STEP_BYTES = 1536,
       AT_HIGH = 512, AT_SCALES = 1024 };

static __device__ void quantize(char *tile, const float *x, int segments, int padded)
{
    for (int first = threadIdx.x / WARP * WARP; first < padded; first += blockDim.x) {
        int segment = first + threadIdx.x % WARP, q[SEGMENT / 4] = { 0 }, sum = 0;
        float values[SEGMENT], largest = 1e-30f;
        for (int i = 0; i < SEGMENT; i++) {
            values[i] = segment < segments ? x[segment * SEGMENT + i] : 0;
            largest = fmaxf(largest, fabsf(values[i]));
        }
        float d = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 1)) / 127;
        for (int i = 0; i < SEGMENT; i++) {
            int rounded = __float2int_rn(values[i] * (1 / d));
            sum += rounded;
            q[i / 4] |= (rounded & 0xff) << 8 * (i % 4);
        }
        int high = segment >> 1 & 1, within = segment % SEGMENT;
        int lane = segment / SEGMENT % 4 * 8 + within / 4 * 2 + (segment & 1);
        char *piece = tile + segment / STEP_SEGMENTS * STEP_BYTES + lane * 16;
        *(int4 *)(piece + high * AT_HIGH) = make_int4(q[0], q[1], q[2], q[3]);
        ((float *)(piece + AT_SCALES))[high] = d;
        ((float *)(piece + AT_SCALES))[2 + high] = d * sum;
    }
    __syncthreads();
}

static __device__ int dot(uint4 w, int shift, int4 x)
{
    int sum = __dp4a((int)(w.x >> shift & 0x0f0f0f0f), x.x, 0);
    sum = __dp4a((int)(w.y >> shift & 0x0f0f0f0f), x.y, sum);
    sum = __dp4a((int)(w.z >> shift & 0x0f0f0f0f), x.z, sum);
    return __dp4a((int)(w.w >> shift & 0x0f0f0f0f), x.w, sum);
}

static __device__ float product(uint4 header, uint4 quants, int chunk, const char *piece)
{
    float2 d = __half22float2(*(const __half2 *)&header.x);
    unsigned scales = chunk < 2 ? header.y & 0x3f3f3f3f
                                : (header.w & 0x0f0f0f0f) | (header.y >> 2 & 0x30303030);
    unsigned mins = chunk < 2 ? header.z & 0x3f3f3f3f
                              : (header.w >> 4 & 0x0f0f0f0f) | (header.z >> 2 & 0x30303030);
    int byte = chunk % 2 * 16;
    float4 words = *(const float4 *)(piece + AT_SCALES);
    float low = (scales >> byte & 0xff) * words.x * dot(quants, 0, *(const int4 *)piece);
    float high = (scales >> byte + 8 & 0xff) * words.y *
                 dot(quants, 4, *(const int4 *)(piece + AT_HIGH));
    float min = (mins >> byte & 0xff) * words.z + (mins >> byte + 8 & 0xff) * words.w;
    return d.x * (low + high) - d.y * min;
}

extern "C" __global__ void __launch_bounds__(448) stream_q4k_gemv_peer(
    float *y, const uint4 *w, const float *x, unsigned k, unsigned n)
{
    extern __shared__ __align__(16) char tile[];
    int steps = (k + 1023) / 1024, super_blocks = k / 256;
    quantize(tile, x, k / SEGMENT, steps * STEP_SEGMENTS);
    int lane = threadIdx.x % WARP, warps = blockDim.x / WARP, part = lane % 8;
    int warp = blockIdx.x * warps + threadIdx.x / WARP;
    for (size_t row = (size_t)warp * ROWS; row < n; row += (size_t)gridDim.x * warps * ROWS) {
        float sums[ROWS] = { 0 };
        #pragma unroll 2
        for (int step = 0; step < steps; step++) {
            int block = min(step * 4 + lane / 8, super_blocks - 1);
            for (int r = 0; r < ROWS; r++) {
                size_t which = min(row + r, (size_t)n - 1);
                const uint4 *at = w + (which * super_blocks + block) * BLOCK_WORDS;
                sums[r] += product(__ldg(at), __ldg(at + 1 + part), part / 2,
                                   tile + step * STEP_BYTES + lane * 16);
            }
        }
        for (int r = 0; r < ROWS; r++) {
            for (int mask = WARP / 2; mask; mask /= 2)
                sums[r] += __shfl_xor_sync(0xffffffff, sums[r], mask);
            if (lane == 0 && row + r < n)
                y[row + r] = sums[r];
        }
    }
}
