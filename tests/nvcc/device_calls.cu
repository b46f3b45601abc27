// Functions that are called, not inlined: values, a struct and an array by address.
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
