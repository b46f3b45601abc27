// Idioms of programs written for a GPU: kernels that no check may stop, and kernels that end in a failed
// assertion or reach an instruction that the emulator does not know.
#include <cassert>
#include <cstdio>

// A variable that one iteration of a loop sets.
extern "C" __global__ void keep_one(float *to, const float *from)
{
    float keep;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float sum = from[i];
        for (int distance = 16; distance > 0; distance /= 2)
            sum += __shfl_xor_sync(0xffffffff, sum, distance);
        if (threadIdx.x % 8 == i)
            keep = sum;
    }
    to[threadIdx.x] = keep;
}

// Threads past the end return; the other threads use a full mask.
extern "C" __global__ void sum_up_to(int *total, const int *values, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int sum = __reduce_add_sync(0xffffffff, values[i]);
    bool any = __any_sync(0xffffffff, values[i] > 5);
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        atomicAdd(total, sum + any);
}

// A barrier after the early return, which a GPU accepts.
extern "C" __global__ void reverse_up_to(int *to, const int *from, int n)
{
    __shared__ int tile[64];
    int i = threadIdx.x;
    if (i >= n)
        return;
    tile[i] = from[i];
    __syncthreads();
    to[i] = tile[n - 1 - i];
}

// A flag in volatile shared memory, and a warp that synchronizes at two places.
extern "C" __global__ void meet(int *to)
{
    __shared__ volatile int tile[32];
    int i = threadIdx.x;
    if (i < 16) {
        tile[i] = i;
        __syncwarp();
    } else {
        tile[i] = 2 * i;
        __syncwarp();
    }
    to[i] = tile[31 - i];
}

// A struct with padding, passed by value to a function that is not inlined.
struct padded {
    char kind;
    double value;
};

__device__ __noinline__ padded make(int i)
{
    padded p;
    p.kind = (char)i;
    if (i % 2)
        p.value = i;
    return p;
}

extern "C" __global__ void structs(double *to)
{
    padded p = make(threadIdx.x);
    to[threadIdx.x] = p.kind % 2 ? p.value : -1;
}

extern "C" __global__ void print(const char *name, float x)
{
    if (threadIdx.x < 2)
        printf("%d of %s: %5.2f|%-6u|%+lld|%#x|%c|%%|%s|%08.3e|%g\n", threadIdx.x, name, x, blockIdx.x,
               -5000000000ll, 255, 'q', "text", 1234.5, 0.1);
    int shown = printf("");
    assert(shown == 0);
}

extern "C" __global__ void check(int limit)
{
    assert((int)threadIdx.x + 32 * (int)blockIdx.x < limit);
}

// Device-side malloc, function pointers, and a table of strings.
struct shape {
    float side;
    __device__ shape(float s) : side(s) {}
    __device__ virtual float area() const = 0;
    __device__ virtual ~shape() {}
};

struct square : shape {
    __device__ square(float s) : shape(s) {}
    __device__ float area() const override { return side * side; }
};

struct triangle : shape {
    __device__ triangle(float s) : shape(s) {}
    __device__ float area() const override { return side * side / 2; }
};

__device__ int add_one(int x) { return x + 1; }
__device__ int negate(int x) { return -x; }
__device__ int (*steps[2])(int) = { add_one, negate };
__device__ const char *const letters[2] = { "ab", "xyz" };

extern "C" __global__ void pointers(float *areas, int *to)
{
    int i = threadIdx.x;
    shape *s = i % 2 ? (shape *)new square((float)i) : new triangle((float)i);
    areas[i] = s->area();
    delete s;
    to[i] = steps[i % 2](i) + letters[i % 2][1];
}

extern "C" __global__ void unusual(int *to, bool come)
{
    if (come)
        asm volatile("tcgen05.fence::before_thread_sync;");
    *to = 1;
}
