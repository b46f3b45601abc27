extern "C" __global__ void single_math(float *exact, float *fast, const float *from)
{
    float v = from[threadIdx.x];
    exact[threadIdx.x] = expf(v) + logf(v + 1) + sinf(v * 40000) + powf(v + 0.5f, 1.7f) + tanhf(v) +
                         erff(v) + rsqrtf(v + 1) + fmodf(v, 0.7f) + roundf(v * 3);
    fast[threadIdx.x] = __sinf(v) + __cosf(v) + __logf(v + 1) + __powf(v + 0.5f, 1.7f) +
                        __frcp_rz(v + 1) + __fsqrt_ru(v) + __saturatef(v - 1) + __frsqrt_rn(v + 1);
}
