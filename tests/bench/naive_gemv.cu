// A kernel of the size of a small generated one. bench_generate times nvcc on it.
#include <cuda_fp16.h>

extern "C" __global__ void naive_gemv(float *y, const unsigned char *w, const float *x, int k)
{
    const unsigned char *row = w + (size_t)blockIdx.x * (k / 256) * 144;
    float sum = 0;
    for (int b = 0; b < k / 256; b++, row += 144, x += 256) {
        float d = __half2float(*(const __half *)row), dmin = __half2float(*(const __half *)(row + 2));
        for (int i = threadIdx.x; i < 128; i += 32) {
            int chunk = i / 32, value = 64 * chunk + i % 32;
            float low = d * (row[4 + chunk] & 63), high = dmin * (row[8 + chunk] & 63);
            sum += (low * (row[16 + i] & 15) - high) * x[value];
            sum += (low * (row[16 + i] >> 4) - high) * x[value + 32];
        }
    }
    for (int mask = 16; mask; mask /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, mask);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum;
}
