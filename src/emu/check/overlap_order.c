#include "emu/check/overlap_order.h"
#include "emu/check/shared_race.h"

static void drop_launch(overlap *all, overlap_launch *gone)
{
    overlap_set others = ~overlap_set_of(gone);
    all->launches[gone->bit] = NULL;
    if (all->unknown == gone)
        all->unknown = NULL;
    for (unsigned i = 0; i < OVERLAP_LAUNCHES; i++) {
        overlap_launch *l = all->launches[i];
        if (!l)
            continue;
        l->followers &= others;
        for (int phase = 0; phase < WAIT_PHASES; phase++)
            l->unfinished[phase] &= others;
    }
    arena_free(gone->arena);
}

overlap_launch *overlap_begin(overlap *all, arena *parent, const char *name, size_t number,
                              bool beside, bool leads)
{
    const overlap_launch *predecessor = beside ? all->newest : NULL;
    all->newest = NULL;
    if (!predecessor && !leads)
        return NULL;
    arena *a = arena_new_in(parent);
    overlap_launch *l = arena_zalloc(a, sizeof *l);
    *l = (overlap_launch){ .all = all, .arena = a, .name = name, .number = number, .leads = leads };
    while (l->bit < OVERLAP_LAUNCHES && all->launches[l->bit])
        l->bit++;
    if (l->bit == OVERLAP_LAUNCHES) { /* replaces the oldest */
        l->bit = 0;
        for (unsigned i = 1; i < OVERLAP_LAUNCHES; i++)
            if (all->launches[i]->number < all->launches[l->bit]->number)
                l->bit = i;
        drop_launch(all, all->launches[l->bit]);
    }
    if (predecessor) {
        overlap_set began =
            predecessor->unfinished[predecessor->late_triggers ? AFTER_WAIT : BEFORE_WAIT];
        l->unfinished[BEFORE_WAIT] = began | overlap_set_of(predecessor);
        if (predecessor->ended)
            l->unfinished[AFTER_WAIT] =
                predecessor->unfinished[predecessor->waited ? AFTER_WAIT : BEFORE_WAIT];
    }
    for (unsigned i = 0; i < OVERLAP_LAUNCHES; i++)
        if (l->unfinished[BEFORE_WAIT] >> i & 1)
            all->launches[i]->followers |= overlap_set_of(l);
    all->launches[l->bit] = l;
    return all->newest = l;
}

void overlap_end(overlap_launch *l, overlap_launch *next)
{
    l->ended = true;
    if (next)
        next->unfinished[AFTER_WAIT] = l->unfinished[l->waited ? AFTER_WAIT : BEFORE_WAIT];
}

void overlap_forget(overlap *all, overlap_set kept)
{
    overlap_set needed = kept | overlap_set_of(all->newest);
    for (unsigned i = 0; i < OVERLAP_LAUNCHES; i++)
        if ((kept | overlap_set_of(all->newest)) >> i & 1)
            needed |= all->launches[i]->unfinished[BEFORE_WAIT];
    for (unsigned i = 0; i < OVERLAP_LAUNCHES; i++)
        if (all->launches[i] && !(needed >> i & 1))
            drop_launch(all, all->launches[i]);
}

lane_mask overlap_waited_lanes(const warp *w, lane_mask mask)
{
    const machine *m = w->machine;
    overlap_block *b = m->dependence.overlap;
    lane_mask *waited_lanes = &b->waited_lanes[w->index], left = mask & ~*waited_lanes;
    for (size_t i = 0; left && i < b->waits.count; i++) {
        const overlap_passed *p = &b->waits.items[i];
        EACH_LANE (lane, left)
            if (shared_seen(&m->shared, thread_of(w, lane), p->warp, p->lanes, p->time))
                *waited_lanes |= (lane_mask)1 << lane;
        left &= ~*waited_lanes;
    }
    return mask & *waited_lanes;
}

void overlap_wait(warp *w, lane_mask mask)
{
    overlap_block *b = w->machine->dependence.overlap;
    b->launch->waited = true;
    if ((b->waited_lanes[w->index] & mask) == mask)
        return;
    b->waited_lanes[w->index] |= mask;
    *VEC_PUSH(b->arena, &b->waits) = (overlap_passed){
        .warp = w->index, .lanes = mask, .time = w->machine->shared.warp_time[w->index]
    };
}

void overlap_trigger(warp *w, lane_mask mask)
{
    const dependence *d = &w->machine->dependence;
    overlap_block *b = d->overlap;
    bool late = overlap_waited_lanes(w, mask) == mask;
    if (!d->triggered) {
        b->late_trigger = late;
        b->launch->late_triggers += late;
    } else if (b->late_trigger && !late) { /* on a device this trigger may be the first */
        b->late_trigger = false;
        b->launch->late_triggers--;
    }
}

bool overlap_excuses(const warp *w, int lane)
{
    emu_report *report = w->machine->report;
    const overlap_block *b = w->machine->dependence.overlap;
    int phase = b && overlap_waited_lanes(w, (lane_mask)1 << lane) ? AFTER_WAIT : BEFORE_WAIT;
    if (!b || !b->launch->unfinished[phase])
        return false;
    emu_report *doubt = &b->launch->all->doubt;
    if (!doubt->fault) {
        *doubt = *report;
        doubt->launch = b->launch->number;
    }
    *report = (emu_report){ .fault = EMU_OK, .message = "" };
    return true;
}
