#include "gen/blocks/reduce.h"

val group_sum(ptx *p, val v, unsigned width)
{
    for (unsigned mask = width / 2; mask; mask /= 2)
        v = add(p, v, shuffle_xor(p, v, mask));
    return v;
}

val group_max(ptx *p, val v, unsigned width)
{
    for (unsigned mask = width / 2; mask; mask /= 2)
        v = max(p, v, shuffle_xor(p, v, mask));
    return v;
}

static unsigned power_of_two_from(unsigned number)
{
    unsigned power = 1;
    while (power < number)
        power *= 2;
    return power;
}

/* Each warp's sum through shared memory at address: written by its lane 0, added up by warp 0. */
static val sum_of_warps(ptx *p, val warps_sum, val address, unsigned num_warps)
{
    val lane = lane_id(p), warp = warp_id(p);
    PTX_IF (p, eq(p, lane, 0))
        st_shared(p, F32, mad(p, warp, 4, address), 0, warps_sum);
    barrier(p);

    var total = var_f32(p, 0.0f);
    PTX_IF (p, eq(p, warp, 0)) {
        PTX_IF (p, lt(p, lane, num_warps))
            assign(p, total, ld_shared(p, F32, mad(p, lane, 4, address), 0));
        assign(p, total, group_sum(p, get(p, total), power_of_two_from(num_warps)));
    }
    return get(p, total);
}

val block_sum(ptx *p, val v, unsigned num_warps)
{
    v = warp_sum(p, v);
    if (num_warps == 1)
        return v;
    return sum_of_warps(p, v, shared_array(p, "partial", F32, num_warps), num_warps);
}

block_sums block_sums_new(ptx *p, unsigned num_warps)
{
    block_sums s = { .num_warps = num_warps };
    if (num_warps > 1) {
        s.partial = shared_array(p, "partial", F32, 2 * num_warps);
        s.half = var_u32(p, 0);
    }
    return s;
}

val block_sums_next(ptx *p, const block_sums *s, val v)
{
    v = warp_sum(p, v);
    if (s->num_warps == 1)
        return v;
    val sum = sum_of_warps(p, v, add(p, s->partial, s->half), s->num_warps);
    assign(p, s->half, bit_xor(p, s->half, 4 * s->num_warps));
    return sum;
}
