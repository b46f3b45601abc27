// Recursive functions and arrays of run-time length, on a stack per thread.

__device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ int is_odd(int n);

__device__ __noinline__ int is_even(int n)
{
    return n == 0 ? 1 : is_odd(n - 1);
}

__device__ __noinline__ int is_odd(int n)
{
    return n == 0 ? 0 : is_even(n - 1);
}

// Each call has its own array, to which its callee adds.
__device__ __noinline__ void pile(int *to, int n)
{
    int own[4], sum = 0;
    for (int i = 0; i < 4; i++)
        own[i] = n * 10 + i;
    if (n > 0)
        pile(own, n - 1);
    for (int i = 0; i < 4; i++)
        sum += own[i];
    to[n & 3] += sum;
}

struct triple {
    int a, b, c;
};

__device__ __noinline__ triple descend(triple t)
{
    if (t.a <= 0)
        return t;
    triple below = descend(triple{ t.a - 1, t.b + t.a, t.c });
    below.c += t.a * t.b;
    return below;
}

extern "C" __global__ void recursion(int *to)
{
    int i = threadIdx.x, top[4] = { 1, 2, 3, 4 };
    pile(top, i % 5);
    triple t = descend(triple{ i % 7, 1, 0 });
    int *own = to + 4 * i;
    own[0] = fibonacci(i % 12) * 2 + is_even(i);
    own[1] = top[0] + 10 * top[1] + 100 * top[2] + 1000 * top[3];
    own[2] = t.a + 100 * t.b;
    own[3] = t.c;
}

extern "C" __global__ void any_length(int *to, int length)
{
    int n = length + threadIdx.x % 3, sum = 0;
    int *squares = (int *)__builtin_alloca(n * sizeof(int));
    for (int i = 0; i < n; i++)
        squares[i] = i * i;
    for (int i = 0; i < n; i++)
        sum += squares[i * 7 % n] * i;
    to[threadIdx.x] = sum;
}
