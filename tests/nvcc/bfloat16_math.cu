#include <cuda_bf16.h>

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
