// A grid-stride loop: fewer threads than elements.
extern "C" __global__ void vector_add(float *sum, const float *a, const float *b, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum[i] = a[i] + b[i];
}
