// An array that registers cannot hold, constant memory, a struct as a parameter, and a variable of
// the module that outlives the launch.
struct settings {
    int a;
    float b[5];
    long long c;
};

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int launches = 7;

extern "C" __global__ void local_array(float *to, settings s, int n)
{
    float values[8];
    for (int i = 0; i < 8; i++)
        values[(i * 3 + n) & 7] = i * s.b[i % 5];
    to[threadIdx.x] =
        values[(threadIdx.x + n) & 7] + table[threadIdx.x & 3] + s.a + (float)s.c;
    if (threadIdx.x == 0)
        atomicAdd(&launches, 1);
}
