/* Instructions that bring the lanes of a warp together: shuffles, votes, matches, reductions.
 *
 * All lanes that a member mask names must take part. (The PTX ISA excuses lanes that have ended;
 * here naming one is a fault, as it is hardly ever meant.)
 */
#include "emu/arith.h"
#include "emu/machine.h"

/* Lanes that name one another see what the others stored. Usually that is the whole warp. */
static void synchronise(warp *w, const op *o, lane_mask mask, int member_source)
{
    machine *m = w->machine;
    for (lane_mask left = mask; left;) {
        lane_mask members = get_u32(source(w, o, member_source), lowest_lane(left));
        shared_warp_sync(&m->shared, m->arena, w->index, members, members == w->present);
        left &= ~members;
    }
}

/* The first lane that a mask names and whose own mask is another; WARP_LANES: there is none. */
static int find_other_mask(const warp *w, const op *o, lane_mask members, int member_source)
{
    const lanes32 *masks = source(w, o, member_source);
    int lane = 0;
    while (lane < WARP_LANES && (!(members >> lane & 1) || masks->u32[lane] == members))
        lane++;
    return lane;
}

static bool check_members(warp *w, const op *o, lane_mask mask, int lane, int member_source)
{
    lane_mask members = get_u32(source(w, o, member_source), lane), absent = members & ~mask;
    int other = find_other_mask(w, o, members & mask, member_source);
    if (!(members >> lane & 1))
        warp_fault(w, o, lane, EMU_INACTIVE_LANE, 0, "lane %d is not in its own member mask 0x%08x",
                   lane, members);
    else if (absent)
        warp_fault(w, o, lane, EMU_INACTIVE_LANE, 0,
                   "member mask 0x%08x names lane %d, which does not take part: it %s", members,
                   lowest_lane(absent),
                   !(w->present >> lowest_lane(absent) & 1) ? "is not in the block"
                   : !(w->alive >> lowest_lane(absent) & 1) ? "has ended"
                                                            : "is inactive");
    else if (other < WARP_LANES)
        warp_fault(w, o, lane, EMU_INACTIVE_LANE, 0,
                   "member mask 0x%08x names lane %d, whose own is 0x%08x", members, other,
                   get_u32(source(w, o, member_source), other));
    else
        return true;
    return false;
}

static bool members_take_part(warp *w, const op *o, lane_mask mask, int member_source)
{
    /* Most often all lanes are active and name all lanes. */
    bool whole = mask == ALL_LANES && find_other_mask(w, o, mask, member_source) == WARP_LANES;
    for (int i = 0; !whole && i < WARP_LANES; i++)
        if (mask >> i & 1 && !check_members(w, o, mask, i, member_source))
            return false;
    return true;
}

/* The lane that a lane's value comes from; false: from itself, as the other is out of range. */
static bool shuffle_source(unsigned mode, unsigned lane, u32 b, u32 c, unsigned *from)
{
    unsigned clamp = c & 31, segment = c >> 8 & 31, distance = b & 31;
    unsigned lowest = lane & segment, highest = lowest | (clamp & ~segment);
    unsigned j;
    bool in_range;
    switch (mode) {
    case SHUFFLE_UP:
        j = lane - distance;
        in_range = (int)j >= (int)highest;
        break;
    case SHUFFLE_DOWN:
        j = lane + distance;
        in_range = j <= highest;
        break;
    case SHUFFLE_BUTTERFLY:
        j = lane ^ distance;
        in_range = j <= highest;
        break;
    default:
        j = lowest | (distance & ~segment);
        in_range = j <= highest;
        break;
    }
    *from = in_range ? j : lane;
    return in_range;
}

void exec_shfl(warp *w, const op *o, lane_mask mask)
{
    lanes32 result;
    lane_mask in_range = 0;
    if (!members_take_part(w, o, mask, 3))
        return;
    memset(&result, 0, sizeof result);
    for (unsigned i = 0; i < WARP_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        int lane = (int)i;
        unsigned from;
        u32 b = get_u32(source(w, o, 1), lane), c = get_u32(source(w, o, 2), lane);
        in_range |= (lane_mask)shuffle_source(o->variant, i, b, c, &from) << i;
        if (!((mask & get_u32(source(w, o, 3), lane)) >> from & 1)) {
            warp_fault(w, o, lane, EMU_INACTIVE_LANE, 0,
                       "lane %u takes its value from lane %u, which does not take part", i, from);
            return;
        }
        result.u32[i] = get_u32(source(w, o, 0), (int)from);
    }
    write_lanes32(w->file + o->dst[0], &result, mask);
    write_predicate(w, o->dst[1], in_range, mask);
}

void exec_vote(warp *w, const op *o, lane_mask mask)
{
    lane_mask holds = predicate(w, o->src[0], o->pred_not) & mask, bits = 0;
    lanes32 ballots;
    if (!members_take_part(w, o, mask, 1))
        return;
    for (int i = 0; i < WARP_LANES; i++) {
        lane_mask members = get_u32(source(w, o, 1), i), ballot = holds & members;
        bool result = o->variant == VOTE_ALL   ? ballot == members
                      : o->variant == VOTE_ANY ? ballot != 0
                                               : ballot == 0 || ballot == members;
        bits |= (lane_mask)result << i;
        ballots.u32[i] = ballot;
    }
    if (o->variant == VOTE_BALLOT)
        write_lanes32(w->file + o->dst[0], &ballots, mask);
    else
        write_predicate(w, o->dst[0], bits, mask);
}

static u64 match_value(const warp *w, const op *o, int lane)
{
    return o->type == TYPE_b64 ? get_u64(source(w, o, 0), lane) : get_u32(source(w, o, 0), lane);
}

void exec_match(warp *w, const op *o, lane_mask mask)
{
    lanes32 result;
    lane_mask all_match = 0;
    if (!members_take_part(w, o, mask, 1))
        return;
    memset(&result, 0, sizeof result);
    for (int i = 0; i < WARP_LANES; i++) {
        lane_mask members = get_u32(source(w, o, 1), i) & mask, equal = 0;
        for (int j = 0; mask >> i & 1 && j < WARP_LANES; j++)
            if (members >> j & 1 && match_value(w, o, i) == match_value(w, o, j))
                equal |= (lane_mask)1 << j;
        bool all = equal == members;
        all_match |= (lane_mask)all << i;
        result.u32[i] = o->variant && !all ? 0 : equal;
    }
    write_lanes32(w->file + o->dst[0], &result, mask);
    write_predicate(w, o->dst[1], all_match, mask);
}

void exec_activemask(warp *w, const op *o, lane_mask mask)
{
    lanes32 result;
    for (int i = 0; i < WARP_LANES; i++)
        result.u32[i] = mask;
    write_lanes32(w->file + o->dst[0], &result, mask);
}

static u32 reduce(ptx_combine how, bool is_signed, u32 a, u32 b)
{
    bool less = is_signed ? (s32)a < (s32)b : a < b;
    switch (how) {
    case COMBINE_ADD:
        return a + b;
    case COMBINE_MIN:
        return less ? a : b;
    case COMBINE_MAX:
        return less ? b : a;
    case COMBINE_AND:
        return a & b;
    case COMBINE_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

void exec_redux(warp *w, const op *o, lane_mask mask)
{
    lanes32 result;
    if (!members_take_part(w, o, mask, 1))
        return;
    memset(&result, 0, sizeof result);
    for (int i = 0; i < WARP_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        lane_mask members = get_u32(source(w, o, 1), i);
        u32 sum = get_u32(source(w, o, 0), lowest_lane(members));
        for (int j = lowest_lane(members) + 1; j < WARP_LANES; j++)
            if (members >> j & 1)
                sum = reduce((ptx_combine)o->combine, o->type == TYPE_s32, sum,
                             get_u32(source(w, o, 0), j));
        result.u32[i] = sum;
    }
    write_lanes32(w->file + o->dst[0], &result, mask);
}

/* bar.warp.sync */
void exec_bar_warp(warp *w, const op *o, lane_mask mask)
{
    if (members_take_part(w, o, mask, 0))
        synchronise(w, o, mask, 0);
}
