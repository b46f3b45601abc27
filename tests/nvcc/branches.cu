// A switch that becomes a jump through a table, a loop whose lanes leave at different times, and an
// early return.
extern "C" __global__ void branches(int *results, int *steps, const int *values, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = values[i];
    switch (v % 9) {
    case 0: results[i] = v * 3; break;
    case 1: results[i] = v + values[i + 1]; break;
    case 2: atomicXor(&results[i], n); break;
    case 3: results[i] = v / (n & 7); break;
    case 4: results[i] = -v; break;
    case 5: results[i] = v << 2; break;
    case 6: results[i] = __popc(v); break;
    case 7: atomicAdd(&results[i], values[v & 31]); break;
    default: results[i] = 1;
    }
    unsigned at = (unsigned)v + 1;
    int count = 0;
    while (at != 1) {
        at = at & 1 ? 3 * at + 1 : at / 2;
        if (++count > 100)
            return;
    }
    steps[i] = count;
}
