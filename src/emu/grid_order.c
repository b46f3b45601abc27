#include "emu/grid_order.h"

#include <string.h>

enum { LANES = 32 };

void order_begin_block(grid_order *g, uint32_t block)
{
    g->block = block;
    g->acquires.count = g->fences.count = 0;
}

static bool covers(const grid_release *r, const grid_store *s)
{
    unsigned warp = s->thread / LANES, lane = s->thread % LANES;
    if (s->time < r->seen[warp])
        return true;
    return warp == r->warp && ((r->lanes >> lane & 1 && s->time <= r->time) ||
                               (r->seen_lanes && s->time < r->seen_lanes[lane]));
}

/* The place behind the last release of a block or of those before it. */
static size_t end_of_block(const release_sequence *s, uint32_t block)
{
    size_t low = 0, high = s->releases.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->releases.items[middle].block <= block)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static grid_release *find_at(const release_sequence *s, uint32_t block, unsigned warp,
                             uint32_t time)
{
    for (size_t i = end_of_block(s, block); i-- > 0 && s->releases.items[i].block == block;)
        if (s->releases.items[i].warp == warp && s->releases.items[i].time == time)
            return &s->releases.items[i];
    return NULL;
}

static bool sequence_covers(const release_sequence *s, const grid_store *store)
{
    for (size_t i = end_of_block(s, store->block);
         i-- > 0 && s->releases.items[i].block == store->block;)
        if (covers(&s->releases.items[i], store))
            return true;
    return false;
}

static void join_lanes(grid_release *r, const grid_release *other)
{
    r->lanes |= other->lanes;
    for (unsigned i = 0; r->seen_lanes && other->seen_lanes && i < LANES; i++)
        if (other->seen_lanes[i] > r->seen_lanes[i])
            r->seen_lanes[i] = other->seen_lanes[i];
}

/* A release takes the place of an earlier one by the same lanes, as it covers all that that did. */
static void add(arena *a, release_sequence *s, const grid_release *r)
{
    grid_release *same = find_at(s, r->block, r->warp, r->time);
    if (same) {
        join_lanes(same, r);
        return;
    }
    size_t at = end_of_block(s, r->block);
    for (size_t i = at; i-- > 0 && s->releases.items[i].block == r->block;) {
        grid_release *known = &s->releases.items[i];
        if (known->warp == r->warp && known->lanes == r->lanes) {
            if (known->time < r->time)
                *known = *r;
            return;
        }
    }
    VEC_PUSH(a, &s->releases);
    grid_release *items = s->releases.items;
    memmove(items + at + 1, items + at, (s->releases.count - 1 - at) * sizeof *items);
    items[at] = *r;
}

/* What lanes of a warp release when they do so now. */
static grid_release release_now(const grid_order *g, unsigned warp, uint32_t lanes)
{
    const shared_memory *t = g->times;
    grid_release r = {
        .block = g->block, .time = t->warp_time[warp], .lanes = lanes, .warp = warp
    };
    uint32_t *seen = arena_alloc(g->arena, sizeof t->seen[warp]);
    memcpy(seen, t->seen[warp], sizeof t->seen[warp]);
    r.seen = seen;
    if (!t->seen_lanes[warp])
        return r;
    r.seen_lanes = arena_zalloc(g->arena, LANES * sizeof *r.seen_lanes);
    for (unsigned lane = 0; lane < LANES; lane++)
        if (lanes >> lane & 1) {
            grid_release one = { .seen_lanes = (*t->seen_lanes[warp])[lane] };
            join_lanes(&r, &one);
        }
    return r;
}

/* Whether a fence comes right behind another one, as in a loop that waits for something. */
static bool is_same_fence(const grid_order *g, unsigned warp, uint32_t lanes)
{
    return g->fences.count && g->fences.items[g->fences.count - 1].lanes == lanes &&
           g->fence_stores == g->stores && g->fence_end == g->times->warp_time[warp];
}

static uint32_t lanes_that_know(const grid_order *g, unsigned warp, uint32_t lanes,
                                const grid_acquire *a)
{
    uint32_t know = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        if (lanes >> lane & 1 &&
            shared_seen(g->times, warp * LANES + lane, a->warp, a->lanes, a->time))
            know |= UINT32_C(1) << lane;
    return know;
}

static void note_acquire(grid_order *g, const grid_acquire *new)
{
    for (size_t i = g->acquires.count; i-- > 0;) {
        const grid_acquire *a = &g->acquires.items[i];
        if (a->from == new->from && a->warp == new->warp && (a->complete || !new->complete) &&
            !(new->lanes & ~a->lanes))
            return;
    }
    *VEC_PUSH(g->arena, &g->acquires) = *new;
}

void order_fence(grid_order *g, unsigned warp, uint32_t lanes, bool acquires, bool releases)
{
    for (size_t i = 0, count = g->acquires.count; acquires && i < count; i++) {
        grid_acquire a = g->acquires.items[i];
        if (a.complete)
            continue;
        a.lanes = lanes_that_know(g, warp, lanes, &a);
        a.warp = warp;
        a.time = g->times->warp_time[warp];
        a.complete = true;
        if (a.lanes)
            note_acquire(g, &a);
    }
    if (!releases || is_same_fence(g, warp, lanes))
        return;
    *VEC_PUSH(g->arena, &g->fences) = release_now(g, warp, lanes);
    shared_tick(g->times, warp);
    g->fence_stores = g->stores;
    g->fence_end = g->times->warp_time[warp];
}

bool order_has_fenced(const grid_order *g, unsigned thread)
{
    for (size_t i = g->fences.count; i-- > 0;)
        if (g->fences.items[i].warp == thread / LANES &&
            g->fences.items[i].lanes >> thread % LANES & 1)
            return true;
    return false;
}

void order_read(grid_order *g, unsigned thread, const release_sequence *from, bool acquires)
{
    unsigned warp = thread / LANES;
    note_acquire(g, &(grid_acquire){ .from = from,
                                     .time = g->times->warp_time[warp],
                                     .lanes = UINT32_C(1) << thread % LANES,
                                     .warp = warp,
                                     .complete = acquires });
}

static bool knows(const grid_order *g, unsigned thread, const grid_acquire *a)
{
    return a->complete && shared_seen(g->times, thread, a->warp, a->lanes, a->time);
}

/* Who releases passes on what was acquired before. */
static void pass_on(grid_order *g, unsigned thread, release_sequence *to)
{
    for (size_t i = 0; i < g->acquires.count; i++) {
        const grid_acquire *a = &g->acquires.items[i];
        if (a->from == to || !knows(g, thread, a))
            continue;
        for (size_t r = 0; r < a->from->releases.count; r++)
            add(g->arena, to, &a->from->releases.items[r]);
    }
}

void order_write(grid_order *g, unsigned thread, release_sequence *to, bool releases)
{
    unsigned warp = thread / LANES;
    uint32_t done[SHARED_MAX_WARPS] = { 0 }; /* lanes of each warp whose newest fence is in */
    bool any = releases;
    for (size_t i = g->fences.count; i-- > 0;) {
        grid_release f = g->fences.items[i];
        f.lanes = ~done[f.warp] & shared_seen(g->times, thread, f.warp, f.lanes, f.time);
        if (!f.lanes)
            continue;
        done[f.warp] |= f.lanes;
        add(g->arena, to, &f);
        any = true;
    }
    uint32_t lane = UINT32_C(1) << thread % LANES;
    grid_release *same = find_at(to, g->block, warp, g->times->warp_time[warp]);
    if (releases && same && !g->times->seen_lanes[warp]) {
        same->lanes |= lane;
    } else if (releases) {
        grid_release r = release_now(g, warp, lane);
        add(g->arena, to, &r);
    }
    if (any)
        pass_on(g, thread, to);
}

order_gap order_find_gap(const grid_order *g, unsigned thread, const grid_store *s)
{
    order_gap gap = g->acquires.count ? GAP_NOT_RELEASED : GAP_NO_RELEASE;
    for (size_t i = 0; i < g->acquires.count; i++) {
        const grid_acquire *a = &g->acquires.items[i];
        if (!sequence_covers(a->from, s))
            continue;
        if (knows(g, thread, a))
            return GAP_NONE;
        gap = a->complete ? GAP_NO_BARRIER : gap == GAP_NO_BARRIER ? gap : GAP_NOT_ACQUIRED;
    }
    return gap;
}
