/* Instructions that exchange data between lanes: shuffles, votes, matches, reductions.
 *
 * All lanes of a member mask must reach the same instruction with the same mask, except lanes that
 * have ended or do not exist. Early lanes wait in a frame while the others run. Any two
 * bar.warp.sync match, since they exchange nothing. */
#include "emu/check/shared_race.h"
#include "emu/check/undefined.h"
#include "emu/machine.h"
#include "emu/run/arith.h"

static bool is_whole(const lanes32 *masks, lane_mask mask)
{
    lane_mask all = mask;
    for (int i = 0; i < WARP_LANES; i++)
        all &= masks->u32[i];
    return all == ALL_LANES;
}

static bool waits_with(const frame *f, const op *o, lane_mask members)
{
    bool same = f->waits_at == o ||
                (f->waits_at && o->exec == exec_bar_warp && f->waits_at->exec == o->exec);
    return same && f->members == members;
}

static lane_mask lanes_waiting(const warp *w, const op *o, lane_mask members)
{
    lane_mask lanes = 0;
    for (uint32_t i = 0; w->waiting_frames && i < w->depth; i++)
        lanes |= waits_with(&w->frames[i], o, members) ? w->frames[i].mask : 0;
    return lanes;
}

static void wait_for_members(warp *w, const op *o, lane_mask group, lane_mask members)
{
    w->frames[w->depth++] = (frame){
        .pc = w->pc, .reconverge = w->reconverge, .mask = group, .waits_at = o, .members = members
    };
    w->waiting_frames++;
    set_active(w, w->active & ~group);
}

/* Makes waiting lanes runnable. Lanes at the pc of the active lanes join them. */
static void end_waiting(warp *w, const op *o, lane_mask members)
{
    for (uint32_t i = w->depth; i-- > 0;) {
        frame *f = &w->frames[i];
        if (!waits_with(f, o, members))
            continue;
        f->waits_at = NULL;
        w->waiting_frames--;
        if (!w->active || f->pc != w->pc || f->reconverge != w->reconverge)
            continue;
        set_active(w, w->active | f->mask);
        memmove(f, f + 1, (--w->depth - i) * sizeof *f);
    }
}

/* Returns active and waiting lanes whose members have all arrived. Returns 0 after a fault. */
static lane_mask converge_members(warp *w, const op *o, lane_mask mask, int member_source)
{
    const lanes32 *masks = source(w, o, member_source);
    shared_memory *shared = &w->machine->shared;
    bool orders = o->exec == exec_bar_warp;
    lane_mask ready = is_whole(masks, mask) && !w->waiting_frames ? ALL_LANES : 0;
    if (ready && orders)
        shared_warp_sync(shared, w->index, ALL_LANES, true);
    for (lane_mask left = mask & ~ready; left;) {
        lane_mask members = masks->u32[lowest_lane(left)], group = 0;
        for (int i = 0; i < WARP_LANES; i++)
            group |= (lane_mask)(masks->u32[i] == members) << i;
        group &= left;
        left &= ~group;
        lane_mask outside = group & ~members, others = members & mask & ~group;
        if (outside)
            warp_fault(w, o, lowest_lane(outside), EMU_INACTIVE_LANE, 0,
                       "lane %d is not in its own member mask 0x%08x", lowest_lane(outside),
                       members);
        else if (others)
            warp_fault(w, o, lowest_lane(group), EMU_INACTIVE_LANE, 0,
                       "member mask 0x%08x names lane %d, whose own member mask is 0x%08x", members,
                       lowest_lane(others), masks->u32[lowest_lane(others)]);
        if (outside || others)
            return 0;
        lane_mask there = group | lanes_waiting(w, o, members);
        if (members & w->alive & ~there) {
            wait_for_members(w, o, group, members);
            continue;
        }
        end_waiting(w, o, members);
        ready |= there;
        if (orders)
            shared_warp_sync(shared, w->index, there, there == w->present);
    }
    if (!w->active && mask & ~ready)
        warp_resume(w);
    return ready;
}

lane_mask warp_converge(warp *w, const op *o, lane_mask mask)
{
    lane_mask there = mask | lanes_waiting(w, o, ALL_LANES);
    if (there == w->alive) {
        end_waiting(w, o, ALL_LANES);
        return there;
    }
    wait_for_members(w, o, mask, ALL_LANES);
    if (!w->active)
        warp_resume(w);
    return 0;
}

/* Finds the source lane of a lane. Returns false if it is out of range. */
static inline bool shuffle_source(unsigned mode, unsigned lane, u32 b, u32 c, unsigned *from)
{
    unsigned clamp = c & 31, segment = c >> 8 & 31, distance = b & 31;
    unsigned lowest = lane & segment, highest = lowest | (clamp & ~segment);
    unsigned j = mode == SHUFFLE_UP          ? lane - distance
                 : mode == SHUFFLE_DOWN      ? lane + distance
                 : mode == SHUFFLE_BUTTERFLY ? lane ^ distance
                                             : lowest | (distance & ~segment);
    bool in_range = mode == SHUFFLE_UP ? (int)j >= (int)highest : j <= highest;
    *from = in_range ? j : lane;
    return in_range;
}

/* Finds the source lane of each lane. Returns the lanes whose source is in range. */
static inline lane_mask shuffle_all(const warp *w, const op *o, unsigned mode, lanes32 *from)
{
    const lanes32 *b = source(w, o, 1), *c = source(w, o, 2);
    lane_mask in_range = 0;
    for (unsigned i = 0; i < WARP_LANES; i++)
        in_range |= shuffle_source(mode, i, b->u32[i], c->u32[i], &from->u32[i]) ? lane_bits[i] : 0;
    return in_range;
}

/* Calls shuffle_all with a constant mode, so that compilers vectorise it. */
static lane_mask shuffle_by_mode(const warp *w, const op *o, lanes32 *from)
{
    return o->variant == SHUFFLE_UP          ? shuffle_all(w, o, SHUFFLE_UP, from)
           : o->variant == SHUFFLE_DOWN      ? shuffle_all(w, o, SHUFFLE_DOWN, from)
           : o->variant == SHUFFLE_BUTTERFLY ? shuffle_all(w, o, SHUFFLE_BUTTERFLY, from)
                                             : shuffle_all(w, o, SHUFFLE_INDEX, from);
}

void exec_shfl(warp *w, const op *o, lane_mask mask)
{
    lanes32 result;
    uint8_t taken[WARP_LANES] = { 0 };
    lane_mask in_range = 0;
    mask = converge_members(w, o, mask, 3);
    if (mask == ALL_LANES && is_whole(source(w, o, 3), mask) && !undefined_carries(w, o)) {
        lanes32 from;
        in_range = shuffle_by_mode(w, o, &from);
        for (int i = 0; i < WARP_LANES; i++)
            result.u32[i] = get_u32(source(w, o, 0), (int)from.u32[i]);
        write_lanes32(w->file + o->dst[0], &result, mask);
        write_predicate(w, o->dst[1], in_range, mask);
        return;
    }
    memset(&result, 0, sizeof result);
    EACH_LANE (i, mask) {
        unsigned from;
        u32 b = get_u32(source(w, o, 1), i), c = get_u32(source(w, o, 2), i);
        in_range |= (lane_mask)shuffle_source(o->variant, (unsigned)i, b, c, &from) << i;
        if ((mask & get_u32(source(w, o, 3), i)) >> from & 1) {
            result.u32[i] = get_u32(source(w, o, 0), (int)from);
            taken[i] = (uint8_t)from;
        } else if (!WARP_CHECK(w, o, i, EMU_CHECK_LANES, 0,
                               "lane %d reads from lane %u, which does not participate", i, from)) {
            return;
        }
    }
    if (undefined_carries(w, o))
        undefined_shuffle(w, o, mask, taken);
    write_lanes32(w->file + o->dst[0], &result, mask);
    write_predicate(w, o->dst[1], in_range, mask);
}

/* Finds, for each lane, the members of its mask whose predicate is true. */
static void take_votes(const warp *w, const op *o, lane_mask mask, u64 *votes)
{
    lane_mask holds = predicate(w, o->src[0], o->pred_not) & mask;
    for (int i = 0; i < WARP_LANES; i++)
        votes[i] = holds & get_u32(source(w, o, 1), i);
}

void exec_ballot(warp *w, const op *o, lane_mask mask)
{
    u64 votes[WARP_LANES];
    mask = converge_members(w, o, mask, 1);
    take_votes(w, o, mask, votes);
    write_lanes(w->file + o->dst[0], votes, false, mask);
}

void exec_vote(warp *w, const op *o, lane_mask mask)
{
    u64 votes[WARP_LANES];
    lane_mask bits = 0;
    mask = converge_members(w, o, mask, 1);
    take_votes(w, o, mask, votes);
    for (int i = 0; i < WARP_LANES; i++) {
        bool all = votes[i] == (mask & get_u32(source(w, o, 1), i)), any = votes[i] != 0;
        bool result = o->variant == VOTE_ALL ? all : o->variant == VOTE_ANY ? any : all || !any;
        bits |= (lane_mask)result << i;
    }
    write_predicate(w, o->dst[0], bits, mask);
}

/* Finds each lane's members with an equal value. Returns lanes where all are equal. */
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
    mask = converge_members(w, o, mask, 1);
    find_matches(w, o, mask, equal);
    write_lanes(w->file + o->dst[0], equal, false, mask);
}

void exec_match_all(warp *w, const op *o, lane_mask mask)
{
    u64 equal[WARP_LANES];
    mask = converge_members(w, o, mask, 1);
    lane_mask all = find_matches(w, o, mask, equal);
    for (int i = 0; i < WARP_LANES; i++)
        equal[i] = all >> i & 1 ? equal[i] : 0;
    write_lanes(w->file + o->dst[0], equal, false, mask);
    write_predicate(w, o->dst[1], all, mask);
}

/* Elects the lowest live lane of the member mask. */
void exec_elect(warp *w, const op *o, lane_mask mask)
{
    lanes32 leaders = { { 0 } };
    lane_mask leads = 0;
    mask = converge_members(w, o, mask, 0);
    EACH_LANE (i, mask) {
        int leader = lowest_lane(get_u32(source(w, o, 0), i) & mask);
        leaders.u32[i] = (u32)leader;
        leads |= (lane_mask)(leader == i) << i;
    }
    write_lanes32(w->file + o->dst[0], &leaders, mask);
    write_predicate(w, o->dst[1], leads, mask);
}

void exec_activemask(warp *w, const op *o, lane_mask mask)
{
    lanes32 result;
    for (int i = 0; i < WARP_LANES; i++)
        result.u32[i] = mask;
    write_lanes32(w->file + o->dst[0], &result, mask);
}

void exec_redux(warp *w, const op *o, lane_mask mask)
{
    lanes32 result = { { 0 } };
    mask = converge_members(w, o, mask, 1);
    EACH_LANE (i, mask) {
        lane_mask members = get_u32(source(w, o, 1), i) & mask;
        u32 sum = get_u32(source(w, o, 0), lowest_lane(members));
        for (int j = lowest_lane(members) + 1; j < WARP_LANES; j++)
            if (members >> j & 1)
                sum = (u32)combine_integers((ptx_combine)o->combine, (ptx_type)o->type, sum,
                                            get_u32(source(w, o, 0), j));
        result.u32[i] = sum;
    }
    write_lanes32(w->file + o->dst[0], &result, mask);
}

void exec_bar_warp(warp *w, const op *o, lane_mask mask)
{
    converge_members(w, o, mask, 0);
}
