#include "gen/seeds/q6k.h"

#include "gen/common/bytes.h"

enum { LANE_BYTES = 4, HALF_BYTES = 64, HALF_HIGH_BYTES = 32, NIBBLE_BYTES = 32 };

q6k_lane q6k_lane_new(ptx *p, unsigned lanes)
{
    bool whole_warp = lanes == 32;
    val number = whole_warp ? lane_id(p) : rem(p, lane_id(p), lanes);
    val half = named(p, "half", div(p, number, lanes / 2));
    val l = named(p, "l", mul(p, rem(p, number, 8), LANE_BYTES));
    q6k_lane lane = {
        .group_step = whole_warp ? 2 : 1,
        .super_block = warp_id(p),
        .group = mul(p, half, Q6K_GROUPS),
        .l = l,
        .low = mad(p, half, HALF_BYTES, l),
        .high = add(p, mad(p, half, HALF_HIGH_BYTES, l), Q6_K_HIGH_BITS),
        .shift = imm(U32, 0),
    };
    if (whole_warp) {
        val odd = named(p, "odd groups", rem(p, div(p, number, 8), 2));
        lane.group = add(p, lane.group, odd);
        lane.low = mul(p, number, LANE_BYTES);
        lane.shift = mul(p, odd, 2);
    } else {
        lane.super_block = mad(p, warp_id(p), 32 / lanes, div(p, lane_id(p), lanes));
    }
    lane.scale = add(p, mad(p, lane.group, Q6K_GROUP_SCALES, div(p, l, 16)), Q6_K_SCALES);
    return lane;
}

q6k_quants q6k_quants_at(ptx *p, const q6k_lane *lane, val low, val high, int64_t offset)
{
    q6k_quants q = { .low[0] = load_word_by_halves(p, low, offset) };
    if (lane->group_step == 1)
        q.low[1] = load_word_by_halves(p, low, offset + NIBBLE_BYTES);
    /* The first group's bits come to where group 0 has them. */
    q.high = shr(p, load_word_by_halves(p, high, offset), lane->shift);
    return q;
}

static val shifted_left(ptx *p, val word, int count)
{
    return count < 0 ? shr(p, word, -count) : shl(p, word, count);
}

/* The four q of a group, each from bit first on in its byte; bit 7 is flipped (or set, where first
 * is 1 and the bit is free). */
static val in_bytes(ptx *p, const q6k_quants *q, unsigned group, int first)
{
    val low = shifted_left(p, q->low[group & 1], first - (group < 2 ? 0 : 4));
    val high = shifted_left(p, q->high, first + 4 - 2 * (int)group);
    val flipped = lop3(p, low, IN_EACH_BYTE(0x0f << first), IN_EACH_BYTE(0x80), AND_XOR);
    return lop3(p, high, IN_EACH_BYTE(0x30 << first), flipped, AND_XOR);
}

val q6k_as_bytes(ptx *p, const q6k_quants *q, unsigned group)
{
    return as(p, S32, in_bytes(p, q, group, 2));
}

void q6k_as_f32(ptx *p, const q6k_quants *q, unsigned group, val weight[Q6K_LANE_VALUES])
{
    centred_fractions(p, in_bytes(p, q, group, 1), weight);
}
