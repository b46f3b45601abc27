#include <cuda_fp16.h>

// Every thread of the grid does every operation once.
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
