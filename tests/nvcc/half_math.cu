#include <cuda_fp16.h>

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
