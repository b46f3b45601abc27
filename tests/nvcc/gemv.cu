// y = W x, a warp a row, butterfly shuffles.
extern "C" __global__ void gemv(float *y, const float *__restrict__ w, const float *__restrict__ x,
                                int k)
{
    size_t row = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < k; i += 32)
        sum += w[row * k + i] * x[i];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    if (threadIdx.x == 0)
        y[row] = sum;
}
