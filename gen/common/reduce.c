#include "gen/common/reduce.h"

val lane_in_group(ptx *p, unsigned group)
{
    return group == WARP ? lane_id(p) : bit_and(p, lane_id(p), group - 1);
}

val group_of_lane(ptx *p, unsigned group)
{
    return group == WARP ? imm(U32, 0) : div(p, lane_id(p), group);
}

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

val lanes_sum(ptx *p, val v, unsigned first, unsigned end)
{
    for (unsigned mask = first; mask < end; mask *= 2)
        v = add(p, v, shuffle_xor(p, v, mask));
    return v;
}

val lanes_max(ptx *p, val v, unsigned first, unsigned end)
{
    for (unsigned mask = first; mask < end; mask *= 2)
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

/* Adds the warps' sums: lane 0 of each warp stores them to shared memory, warp 0 adds them up. */
static void add_up_warps(ptx *p, val *sums, unsigned count, val address, unsigned num_warps)
{
    val lane = lane_id(p), warp = warp_id(p);
    unsigned bytes = 4 * num_warps;
    PTX_IF (p, eq(p, lane, 0)) {
        val own = mad(p, warp, 4, address);
        for (unsigned i = 0; i < count; i++)
            st_shared(p, F32, own, i * bytes, sums[i]);
    }
    barrier(p);

    var totals[MAX_SUMS];
    for (unsigned i = 0; i < count; i++)
        totals[i] = var_f32(p, 0.0f);
    PTX_IF (p, eq(p, warp, 0)) {
        PTX_IF (p, lt(p, lane, num_warps)) {
            val one_each = mad(p, lane, 4, address);
            for (unsigned i = 0; i < count; i++)
                assign(p, totals[i], ld_shared(p, F32, one_each, i * bytes));
        }
        for (unsigned i = 0; i < count; i++)
            assign(p, totals[i], group_sum(p, get(p, totals[i]), power_of_two_from(num_warps)));
    }
    for (unsigned i = 0; i < count; i++)
        sums[i] = get(p, totals[i]);
}

void block_sum_each(ptx *p, val *values, unsigned count, unsigned num_warps)
{
    for (unsigned i = 0; i < count; i++)
        values[i] = warp_sum(p, values[i]);
    if (num_warps > 1)
        add_up_warps(p, values, count, shared_array(p, "partial", F32, count * num_warps),
                     num_warps);
}

val block_sum(ptx *p, val v, unsigned num_warps)
{
    block_sum_each(p, &v, 1, num_warps);
    return v;
}

block_sums block_sums_new(ptx *p, unsigned num_warps, unsigned count)
{
    block_sums s = { .num_warps = num_warps, .count = count };
    if (num_warps > 1) {
        s.partial = shared_array(p, "partial", F32, 2 * count * num_warps);
        s.half = var_u32(p, 0);
    }
    return s;
}

void block_sums_next(ptx *p, const block_sums *s, val *values)
{
    for (unsigned i = 0; i < s->count; i++)
        values[i] = warp_sum(p, values[i]);
    if (s->num_warps == 1)
        return;
    add_up_warps(p, values, s->count, add(p, s->partial, s->half), s->num_warps);
    assign(p, s->half, bit_xor(p, s->half, 4 * s->count * s->num_warps));
}

/* Each step halves the values: a lane keeps one half and gives the other to its partner. This takes
 * count - 1 shuffles; count butterflies would take log2(count) times as many. */
spread_sums group_sum_spread(ptx *p, const val *values, unsigned count, unsigned group)
{
    val v[MAX_SUMS];
    for (unsigned i = 0; i < count; i++)
        v[i] = values[i];
    unsigned width = power_of_two_from(count), lanes_a_sum = group / width, mask = group / 2,
             left = count;
    val lane = lane_in_group(p, group);
    for (; width > 1; width /= 2, mask /= 2) {
        unsigned half = width / 2;
        val upper = ne(p, bit_and(p, lane, mask), 0);
        for (unsigned i = 0; i < half && i < left; i++) {
            bool paired = i + half < left;
            val kept = paired ? select(p, upper, v[i + half], v[i]) : v[i];
            val given = paired ? select(p, upper, v[i], v[i + half]) : v[i];
            v[i] = add(p, kept, shuffle_xor(p, given, mask));
        }
        left = left < half ? left : half;
    }
    val first_of_its_lanes = eq(p, rem(p, lane, lanes_a_sum), 0);
    return (spread_sums){
        .number = select(p, first_of_its_lanes, div(p, lane, lanes_a_sum), imm(U32, count)),
        .sum = group_sum(p, v[0], lanes_a_sum),
        .lanes = lanes_a_sum,
    };
}

/* Adds the warps' sums through shared memory: thread i adds up sum i. */
static spread_sums add_up_spread(ptx *p, spread_sums of_warp, unsigned count, val address,
                                 unsigned num_warps)
{
    enum { BYTES = 4 };
    val number = tid_x(p);
    PTX_IF (p, lt(p, of_warp.number, count)) {
        val place = mad(p, warp_id(p), count, of_warp.number);
        st_shared(p, F32, mad(p, place, BYTES, address), 0, of_warp.sum);
    }
    barrier(p);
    var total = var_f32(p, 0.0f);
    PTX_IF (p, lt(p, number, count)) {
        val of_number = mad(p, number, BYTES, address);
        for (unsigned w = 0; w < num_warps; w++)
            assign(p, total, add(p, total, ld_shared(p, F32, of_number, w * count * BYTES)));
    }
    return (spread_sums){ .number = number, .sum = get(p, total) };
}

spread_sums block_sum_spread(ptx *p, const val *values, unsigned count, unsigned num_warps)
{
    spread_sums sums = group_sum_spread(p, values, count, WARP);
    if (num_warps == 1)
        return sums;
    val partial = shared_array(p, "partial", F32, count * num_warps);
    return add_up_spread(p, sums, count, partial, num_warps);
}

spread_sums block_sums_next_spread(ptx *p, const block_sums *s, const val *values)
{
    spread_sums sums = group_sum_spread(p, values, s->count, WARP);
    if (s->num_warps == 1)
        return sums;
    val address = add(p, s->partial, s->half);
    sums = add_up_spread(p, sums, s->count, address, s->num_warps);
    assign(p, s->half, bit_xor(p, s->half, 4 * s->count * s->num_warps));
    return sums;
}

val block_is_last(ptx *p, val counter, val blocks, val ticket)
{
    val last = sub(p, blocks, 1);
    barrier(p);
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        val number = atomic_inc(p, counter, last);
        st_shared(p, U32, ticket, 0, number);
    }
    barrier(p);
    return eq(p, ld_shared(p, U32, ticket, 0), last);
}

val norm_factor(ptx *p, const instance *in, val mean)
{
    return rsqrt(p, add(p, mean, (float)in->options.epsilon));
}

val norm_factor_or_nan(ptx *p, const instance *in, val mean)
{
    val factor = norm_factor(p, in, mean);
    return fma(p, mean, imm(F32, 0), factor);
}

val norm_chunk_squares(ptx *p, const val *x, unsigned count, const lane_bits *bits)
{
    val sum = imm(F32, 0);
    for (unsigned i = 0; i < count; i++)
        sum = fma(p, x[i], x[i], sum);
    for (unsigned i = 5; i-- > 0;)
        sum = add(p, sum, shuffle_xor(p, sum, 1u << bits->of[i]));
    return sum;
}

val norm_mean_of_chunks(ptx *p, const instance *in, val sums, unsigned chunks)
{
    var sum = var_f32(p, 0.0f);
    PTX_FOR (p, chunk, lane_id(p), chunks, WARP)
        assign(p, sum, add(p, sum, ld_shared(p, F32, mad(p, chunk, imm(U32, F32_BYTES), sums), 0)));
    return mul(p, warp_sum(p, get(p, sum)), (float)(1.0 / (double)in->shape.k));
}

val height_of_float(ptx *p, val number)
{
    val bits = bits_as(p, U32, add(p, number, 0.0f)); /* turns -0 into 0 */
    val sign = as(p, U32, shr(p, as(p, S32, bits), 31));
    val height = bit_xor(p, bits, bit_or(p, sign, 0x80000000));
    return select(p, gt(p, bit_and(p, bits, 0x7fffffff), 0x7f800000), imm(U32, HEIGHT_NAN), height);
}

val float_of_height(ptx *p, val height)
{
    val flipped = select(p, ge(p, height, 0x80000000), imm(U32, 0x80000000), imm(U32, 0xffffffff));
    return bits_as(p, F32, bit_xor(p, height, flipped));
}

val ranks_before(ptx *p, val height, val number, val other_height, val other_number)
{
    val equal = bit_and(p, eq(p, height, other_height), lt(p, number, other_number));
    return bit_or(p, gt(p, height, other_height), equal);
}

void update_first(ptx *p, const first_number *f, val height, val number)
{
    val before = ranks_before(p, height, number, get(p, f->height), get(p, f->number));
    assign(p, f->height, select(p, before, height, f->height));
    assign(p, f->number, select(p, before, number, f->number));
}

void first_of_warp(ptx *p, const first_number *f)
{
    for (unsigned mask = 16; mask; mask /= 2) {
        val height = shuffle_xor(p, f->height, mask), number = shuffle_xor(p, f->number, mask);
        update_first(p, f, height, number);
    }
}
