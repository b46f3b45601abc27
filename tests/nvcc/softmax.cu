// Dynamic shared memory, fast exponentials, both kinds of warp reduction.
extern "C" __global__ void softmax(float *to, const float *scores, int n)
{
    extern __shared__ float weights[];
    int lane = threadIdx.x;
    float highest = -INFINITY, sum = 0;
    for (int i = lane; i < n; i += 32)
        highest = fmaxf(highest, scores[i]);
    for (int distance = 16; distance > 0; distance /= 2)
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, distance));
    for (int i = lane; i < n; i += 32) {
        weights[n - 1 - i] = __expf(scores[i] - highest);
        sum += weights[n - 1 - i];
    }
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    __syncwarp();
    for (int i = lane; i < n; i += 32)
        to[i] = __fdividef(weights[n - 1 - i], sum);
}
