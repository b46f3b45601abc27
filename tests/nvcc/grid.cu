/* Kernels whose blocks wait for each other, which cooperative launches allow. */
#include <cooperative_groups.h>

/* Adds up the values of all blocks twice; the second round reads the results of the first. */
extern "C" __global__ void sum_twice(unsigned *sums, unsigned *values)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < 2; round++) {
        values[at] = (round ? sums[at] : at) + 1;
        grid.sync();
        unsigned sum = 0;
        for (unsigned i = 0; i < grid.size(); i++)
            sum += values[i];
        sums[at] = sum;
        grid.sync();
    }
}

/* Each block waits for the next block, by a flag and not by a grid barrier. */
extern "C" __global__ void backwards(unsigned *order, unsigned *flags, unsigned *done)
{
    if (threadIdx.x == 32) {
        volatile unsigned *next = flags + blockIdx.x + 1;
        while (blockIdx.x + 1 < gridDim.x && !*next)
            ;
        __threadfence();
        order[blockIdx.x] = atomicAdd(done, 1);
        __threadfence();
        atomicExch(flags + blockIdx.x, 1);
    }
}

/* sum_twice without its barrier. */
extern "C" __global__ void sum_at_once(unsigned *sums, unsigned *values)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    values[at] = at + 1;
    if (sums[at]) /* always 0 */
        grid.sync();
    for (unsigned i = 0; i < grid.size(); i++)
        sum += values[i];
    sums[at] = sum;
}
