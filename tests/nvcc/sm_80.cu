#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

// A switch that compiles to a jump table, a loop whose lanes leave at different times, and an early
// return.
extern "C" __global__ void branches(int *results, int *steps, const int *values, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = values[i];
    switch (v % 9) {
    case 0: results[i] = v * 3; break;
    case 1: results[i] = v + values[i + 1]; break;
    case 2: atomicXor(&results[i], n); break;
    case 3: results[i] = v / (n & 7); break;
    case 4: results[i] = -v; break;
    case 5: results[i] = v << 2; break;
    case 6: results[i] = __popc(v); break;
    case 7: atomicAdd(&results[i], values[v & 31]); break;
    default: results[i] = 1;
    }
    unsigned at = (unsigned)v + 1;
    int count = 0;
    while (at != 1) {
        at = at & 1 ? 3 * at + 1 : at / 2;
        if (++count > 100)
            return;
    }
    steps[i] = count;
}

// Results of votes, matches and reductions in a warp.
struct vote {
    unsigned ballot, any, all, same, everybody_same, prefix, leader, even_sum;
};

extern "C" __global__ void votes(vote *votes, const int *values)
{
    int lane = threadIdx.x, value = values[lane], everybody_same;
    vote v;
    v.ballot = __ballot_sync(0xffffffff, value & 1);
    v.any = __any_sync(0xffffffff, value > 90);
    v.all = __all_sync(0xffffffff, value >= 0);
    v.same = __match_any_sync(0xffffffff, value & 3);
    __match_all_sync(0xffffffff, value, &everybody_same);
    v.everybody_same = everybody_same;
    v.prefix = value;
    for (int distance = 1; distance < 32; distance *= 2) {
        unsigned before = __shfl_up_sync(0xffffffff, v.prefix, distance);
        if (lane >= distance)
            v.prefix += before;
    }
    v.leader = __shfl_sync(0xffffffff, value, lane & 24);
    v.even_sum = 0;
    if (lane % 2 == 0) {
        v.even_sum = value;
        for (int distance = 16; distance > 1; distance /= 2)
            v.even_sum += __shfl_xor_sync(0x55555555, v.even_sum, distance);
    }
    votes[lane] = v;
}

extern "C" __global__ void wide_integers(long long *to, const long long *from, int n)
{
    int i = threadIdx.x;
    long long v = from[i];
    long long r = v / (i + 3) + v % (i + 5) * __mul64hi(v, v);
    r += __clzll(v) + __popcll(v) + (long long)__brevll(v) + (v >> (i & 63));
    r ^= (long long)((unsigned long long)v / (unsigned)n) + __funnelshift_l(i, n, 5);
    r += __funnelshift_rc((unsigned)v, n, i) + __byte_perm((unsigned)v, n, 0x6172) + __ffsll(v);
    to[i] = r + (long long)min((unsigned long long)v, (unsigned long long)r);
}

// Divides 128 bits by 64 bits; the code adds up the carries of subtractions.
extern "C" __global__ void divide_wide(unsigned long long *to, const unsigned long long *from)
{
    int i = 3 * threadIdx.x;
    unsigned __int128 whole = (unsigned __int128)from[i + 1] << 64 | from[i];
    unsigned __int128 quotient = whole / from[i + 2];
    to[i] = (unsigned long long)quotient;
    to[i + 1] = (unsigned long long)(quotient >> 64);
    to[i + 2] = (unsigned long long)(whole - quotient * from[i + 2]);
}

extern "C" __global__ void double_math(double *to, const double *from)
{
    double v = from[threadIdx.x];
    to[threadIdx.x] = sqrt(v) * log(v) + exp(-v) / (1 + v) + rint(v * 3) + fma(v, v, -v) + cbrt(v);
}

extern "C" __global__ void half_math(float *result, __half2 *packed, const __half *a,
                                     const __half *b)
{
    int i = threadIdx.x;
    __half2 pair = __halves2half2(a[i], b[i]);
    __half2 square = __hfma2(pair, pair, __hneg2(pair));
    packed[i] = __hmax2(square, __hmul2(pair, __float2half2_rn(0.5f)));
    result[i] = __low2float(square) + __high2float(square) + __half2float(__hsub(a[i], b[i])) +
                (__hlt(a[i], b[i]) ? 100.0f : 0.0f) + __half2float(__float2half(1.0f / 3 * i));
}

// Four products of bytes per instruction, and a warp sum in one instruction.
extern "C" __global__ void int8_dot(int *dot, const int *a, const int *b, const short2 *wide, int n)
{
    int sum = 0, mixed = 0;
    for (int i = threadIdx.x; i < n; i += 32) {
        sum = __dp4a(a[i], b[i], sum);
        mixed = __dp2a_lo(wide[i], *(const char4 *)&b[i], mixed);
    }
    sum = __reduce_add_sync(0xffffffff, sum);
    mixed = __reduce_add_sync(0xffffffff, mixed);
    if (threadIdx.x == 0) {
        dot[0] = sum;
        dot[1] = mixed;
    }
}

// An array in local memory, constant memory, a struct as a parameter, and a module variable that
// outlives the launch.
struct settings {
    int a;
    float b[5];
    long long c;
};

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int launches = 7;

extern "C" __global__ void local_array(float *to, settings s, int n)
{
    float values[8];
    for (int i = 0; i < 8; i++)
        values[(i * 3 + n) & 7] = i * s.b[i % 5];
    to[threadIdx.x] =
        values[(threadIdx.x + n) & 7] + table[threadIdx.x & 3] + s.a + (float)s.c;
    if (threadIdx.x == 0)
        atomicAdd(&launches, 1);
}

// Functions that are not inlined: with values, a struct, and an array by address.
struct pair {
    float a, b;
};

__device__ __noinline__ pair swap_and_scale(pair p, float scale)
{
    if (scale < 0)
        return p;
    return pair{p.b * scale, p.a * scale};
}

__device__ __noinline__ int digits(int *to, int value)
{
    int count = 0;
    do
        to[count++] = value % 10;
    while (value /= 10);
    return count;
}

__device__ __noinline__ float warp_sum(float value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffff, value, distance);
    return value;
}

extern "C" __global__ void device_calls(float *to, int *digit_sums, const float *from)
{
    int i = threadIdx.x, list[10], sum = 0;
    pair p = swap_and_scale(pair{from[i], (float)i}, from[i]);
    if (i % 3 == 0)
        p = swap_and_scale(p, 2);
    for (int n = digits(list, i * i * i * 31); n > 0; n--)
        sum += list[n - 1];
    digit_sums[i] = sum;
    to[i] = warp_sum(p.a) + p.b;
}

// Copies a tile to shared memory while the preceding tile is summed: two stages of cp.async.

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

// The last block to finish adds up all stores. The fence of a storing thread makes its store visible
// before the count. The fence of the counting thread orders its block's loads after the count.
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

static __device__ unsigned halves(const float *two)
{
    __half2 pair = __floats2half2_rn(two[0], two[1]);
    return *(unsigned *)&pair;
}

static __device__ unsigned bfloats(const float *two)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(two[0], two[1]);
    return *(unsigned *)&pair;
}

#define MMA(type, c, a0, a1, a2, a3, b0, b1)                                                      \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, " \
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                  \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                 \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))

// 16 rows and 8 columns per warp: a has rows of k values, b columns of k. Even steps of 16 values use
// f16, odd steps bf16.
extern "C" __global__ void matrix_multiply(float *d, const float *a, const float *b, int n, int k)
{
    int group = threadIdx.x / 4, first = threadIdx.x % 4 * 2;
    int row = (blockIdx.y * blockDim.y + threadIdx.y) * 16 + group, column = blockIdx.x * 8;
    const float *upper = a + row * k + first, *lower = upper + 8 * k;
    const float *of_b = b + (column + group) * k + first;
    float c[4] = {};
    for (int i = 0; i < k; i += 16)
        if (i / 16 % 2 == 0)
            MMA("f16", c, halves(upper + i), halves(lower + i), halves(upper + i + 8),
                halves(lower + i + 8), halves(of_b + i), halves(of_b + i + 8));
        else
            MMA("bf16", c, bfloats(upper + i), bfloats(lower + i), bfloats(upper + i + 8),
                bfloats(lower + i + 8), bfloats(of_b + i), bfloats(of_b + i + 8));
    *(float2 *)(d + row * n + column + first) = make_float2(c[0], c[1]);
    *(float2 *)(d + (row + 8) * n + column + first) = make_float2(c[2], c[3]);
}
