/* Instructions that bring the lanes of a warp together: shuffles, votes, matches, reductions.
 *
 * All lanes that a member mask names must take part. (The PTX ISA excuses lanes that have ended;
 * here naming one is a fault, as it is hardly ever meant.)
 */
#include "emu/exec.h"
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
                   lowest_lane(absent), warp_absence(w, lowest_lane(absent)));
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

/* Of each lane: the lanes that its mask names and whose predicate holds. */
static bool take_votes(warp *w, const op *o, lane_mask mask, u64 *votes)
{
    lane_mask holds = predicate(w, o->src[0], o->pred_not) & mask;
    if (!members_take_part(w, o, mask, 1))
        return false;
    for (int i = 0; i < WARP_LANES; i++)
        votes[i] = holds & get_u32(source(w, o, 1), i);
    return true;
}

void exec_ballot(warp *w, const op *o, lane_mask mask)
{
    u64 votes[WARP_LANES];
    if (take_votes(w, o, mask, votes))
        write_lanes(w->file + o->dst[0], votes, false, mask);
}

void exec_vote(warp *w, const op *o, lane_mask mask)
{
    u64 votes[WARP_LANES];
    lane_mask bits = 0;
    if (!take_votes(w, o, mask, votes))
        return;
    for (int i = 0; i < WARP_LANES; i++) {
        bool all = votes[i] == get_u32(source(w, o, 1), i), any = votes[i] != 0;
        bool result = o->variant == VOTE_ALL ? all : o->variant == VOTE_ANY ? any : all || !any;
        bits |= (lane_mask)result << i;
    }
    write_predicate(w, o->dst[0], bits, mask);
}

/* Of each lane: the lanes that its mask names and whose value is the same. Returns those lanes
 * where that is all. */
static lane_mask find_matches(const warp *w, const op *o, lane_mask mask, u64 *equal)
{
    const void *value = source(w, o, 0);
    bool wide = o->type == TYPE_b64;
    lane_mask all = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        lane_mask members = get_u32(source(w, o, 1), i) & mask;
        equal[i] = 0;
        for (int j = 0; mask >> i & 1 && j < WARP_LANES; j++)
            if (members >> j & 1 && get_bits(value, i, wide) == get_bits(value, j, wide))
                equal[i] |= (lane_mask)1 << j;
        all |= (lane_mask)(equal[i] == members) << i;
    }
    return all;
}

void exec_match_any(warp *w, const op *o, lane_mask mask)
{
    u64 equal[WARP_LANES];
    if (!members_take_part(w, o, mask, 1))
        return;
    find_matches(w, o, mask, equal);
    write_lanes(w->file + o->dst[0], equal, false, mask);
}

void exec_match_all(warp *w, const op *o, lane_mask mask)
{
    u64 equal[WARP_LANES];
    if (!members_take_part(w, o, mask, 1))
        return;
    lane_mask all = find_matches(w, o, mask, equal);
    for (int i = 0; i < WARP_LANES; i++)
        equal[i] = all >> i & 1 ? equal[i] : 0;
    write_lanes(w->file + o->dst[0], equal, false, mask);
    write_predicate(w, o->dst[1], all, mask);
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
