#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void single_math(float *exact, float *fast, const float *from)
{
    float v = from[threadIdx.x];
    exact[threadIdx.x] = expf(v) + logf(v + 1) + sinf(v * 40000) + powf(v + 0.5f, 1.7f) + tanhf(v) +
                         erff(v) + rsqrtf(v + 1) + fmodf(v, 0.7f) + roundf(v * 3);
    fast[threadIdx.x] = __sinf(v) + __cosf(v) + __logf(v + 1) + __powf(v + 0.5f, 1.7f) +
                        __frcp_rz(v + 1) + __fsqrt_ru(v) + __saturatef(v - 1) + __frsqrt_rn(v + 1);
}

extern "C" __global__ void bfloat16_math(__nv_bfloat16 *rounded, __nv_bfloat162 *pairs, float *back,
                                         const float *values)
{
    int i = threadIdx.x;
    __nv_bfloat16 value = __float2bfloat16(values[i]);
    __nv_bfloat162 pair = __floats2bfloat162_rn(values[i], values[i + 1]);
    rounded[i] = value;
    pairs[i] = __hfma2(pair, pair, pair);
    back[i] = __bfloat162float(__hmul(value, value)) + __low2float(pair);
}

// Every thread of the grid executes every operation once.
struct cells {
    float sum;
    int highest, lowest;
    unsigned first, ring, bits, drawn;
    unsigned long long wide;
    double fine;
    __half2 halves;
};

extern "C" __global__ void atomics(cells *c, const int *values)
{
    int value = values[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&c->sum, (float)value);
    atomicMax(&c->highest, value);
    atomicMin(&c->lowest, value);
    atomicCAS(&c->first, 0, value + 1);
    atomicInc(&c->ring, 9);
    atomicOr(&c->bits, 1u << (value & 31));
    atomicAdd(&c->wide, (unsigned long long)value << 32);
    atomicAdd(&c->fine, value * 0.5);
    atomicAdd(&c->halves, __floats2half2_rn(1.0f, 2.0f));
    c->drawn = 7;
}

// A launch of a chain: the next launch may start while this launch runs, and waits before it reads.
extern "C" __global__ void diffuse(float *to, const float *from, const float *gains, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    float gain = gains[i];
    cudaGridDependencySynchronize();
    to[i] = gain * (from[(i + count - 1) % count] + from[i] + from[(i + 1) % count]);
}

// diffuse with its first load before the wait, which is a race.
extern "C" __global__ void diffuse_too_early(float *to, const float *from, const float *gains, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    float gain = gains[i], left = from[(i + count - 1) % count];
    cudaGridDependencySynchronize();
    to[i] = gain * (left + from[i] + from[(i + 1) % count]);
}
