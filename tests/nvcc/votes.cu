// What the lanes of a warp know of each other.
struct vote {
    unsigned ballot, any, all, same, everybody_same, prefix, leader, even_sum;
};

extern "C" __global__ void votes(vote *votes, const int *values)
{
    int lane = threadIdx.x, value = values[lane], everybody_same;
    vote v;
    v.ballot = __ballot_sync(0xffffffff, value & 1);
    v.any = __any_sync(0xffffffff, value > 90);
    v.all = __all_sync(0xffffffff, value >= 0);
    v.same = __match_any_sync(0xffffffff, value & 3);
    __match_all_sync(0xffffffff, value, &everybody_same);
    v.everybody_same = everybody_same;
    v.prefix = value;
    for (int distance = 1; distance < 32; distance *= 2) {
        unsigned before = __shfl_up_sync(0xffffffff, v.prefix, distance);
        if (lane >= distance)
            v.prefix += before;
    }
    v.leader = __shfl_sync(0xffffffff, value, lane & 24);
    v.even_sum = 0;
    if (lane % 2 == 0) {
        v.even_sum = value;
        for (int distance = 16; distance > 1; distance /= 2)
            v.even_sum += __shfl_xor_sync(0x55555555, v.even_sum, distance);
    }
    votes[lane] = v;
}
