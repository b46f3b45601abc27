#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

// 16 rows and 8 columns a warp: a has rows of k values, b columns of k. Even steps of 16 values are
// taken as f16, odd ones as bf16.
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
