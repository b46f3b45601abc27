#include "emu/check/grid_order.h"

void order_begin_block(grid_order *g, uint32_t block)
{
    g->block = block;
    g->running = NULL;
    for (unsigned w = 0; w < MAX_WARPS; w++)
        g->fences[w].count = 0;
    memset(g->fenced, 0, sizeof g->fenced);
    g->fenced_warps = g->changed = 0;
    memset(g->views, 0, sizeof g->views);
}

void order_switch(grid_order *g, grid_order *aside)
{
    grid_order other = *aside;
    *aside = *g;
    other.searches = g->searches; /* counter of all blocks */
    other.pending = g->pending;   /* empty between searches */
    *g = other;
}

static grid_block *running_block(grid_order *g)
{
    if (!g->running) {
        g->running = arena_zalloc(g->arena, sizeof *g->running);
        g->running->number = g->block;
    }
    return g->running;
}

/* Returns true if a release covers accesses of a warp's lanes at a time: its view includes them, or
 * the lanes are among the releasing lanes or visible to one of them. */
static bool release_covers(const grid_release *r, unsigned w, uint32_t lanes, uint32_t time)
{
    if (time < r->view->seen[w])
        return true;
    if (w != r->warp)
        return false;
    if (r->lanes & lanes && time <= r->time)
        return true;
    for (unsigned i = 0; r->view->lanes && i < WARP_LANES; i++)
        for (unsigned other = 0; r->lanes >> i & 1 && other < WARP_LANES; other++)
            if (lanes >> other & 1 && time < (*r->view->lanes)[i][other])
                return true;
    return false;
}

static bool covers_store(const grid_release *r, const grid_store *s)
{
    return release_covers(r, s->thread / WARP_LANES, UINT32_C(1) << s->thread % WARP_LANES,
                          s->time);
}

/* Adds a release of the running block to a sequence. It replaces an older release of the same warp
 * with a subset of its lanes: lanes 0x3 at time 9 replace lanes 0x1 at time 6. */
static void add_release(arena *a, release_sequence *s, const grid_release *r)
{
    uint32_t count = (uint32_t)s->releases.count, at = count;
    for (uint32_t i = count; i-- > 0 && s->releases.items[i].block == r->block;) {
        const grid_release *known = &s->releases.items[i];
        if (known->warp != r->warp)
            continue;
        if (known->time >= r->time && !(r->lanes & ~known->lanes))
            return;
        if (known->time == r->time)
            at = i;
    }
    if (at == count)
        *VEC_PUSH(a, &s->releases) = *r;
    grid_release *items = s->releases.items, new = items[at];
    new.lanes |= r->lanes;
    items[at] = new;
    for (uint32_t i = count; i-- > 0 && items[i].block == r->block;) {
        if (items[i].warp != new.warp || items[i].time >= new.time || items[i].lanes & ~new.lanes)
            continue;
        /* The lower index of the two: acquires that count the older release include the new. */
        uint32_t first = i < at ? i : at, last = i < at ? at : i;
        items[first] = new;
        items[last] = items[--s->releases.count];
        at = first;
    }
}

/* Returns the release that lanes of a warp would perform now. */
static grid_release release_now(grid_order *g, unsigned w, uint32_t lanes)
{
    const shared_memory *t = g->times;
    if (!g->views[w] || g->views[w]->time != t->sync_time[w]) {
        grid_view *view = arena_alloc(g->arena, sizeof *view);
        view->time = t->sync_time[w];
        memcpy(view->seen, t->seen[w], sizeof view->seen);
        static const lanes_seen nothing;
        const lanes_seen *lanes_have = (const lanes_seen *)t->seen_lanes[w];
        bool any = lanes_have && memcmp(lanes_have, nothing, sizeof nothing) != 0;
        view->lanes =
            any ? (const lanes_seen *)(const void *)arena_copy(g->arena, lanes_have, sizeof nothing)
                : NULL;
        g->views[w] = view;
    }
    return (grid_release){ .block = running_block(g),
                           .view = g->views[w],
                           .time = t->warp_time[w],
                           .lanes = lanes,
                           .warp = w };
}

/* Adds an acquire to the running block, unless an earlier acquire includes it. */
static void note_acquire(grid_order *g, const grid_acquire *new)
{
    grid_block *b = running_block(g);
    release_sequence *from = new->from;
    if (from->acquirer != g->block)
        from->acquire = 0;
    from->acquirer = g->block;
    for (uint32_t i = from->acquire; i; i = b->acquires.items[i - 1].previous) {
        grid_acquire *a = &b->acquires.items[i - 1];
        if (a->warp != new->warp)
            continue;
        if (!(new->lanes & ~a->lanes) && a->count >= new->count && a->complete >= new->complete)
            return;
        if (a->time == new->time && a->complete == new->complete) {
            a->lanes |= new->lanes;
            a->count = new->count;
            g->changed |= UINT32_C(1) << a->warp;
            return;
        }
    }
    grid_acquire *a = VEC_PUSH(g->arena, &b->acquires);
    *a = *new;
    a->previous = from->acquire;
    from->acquire = (uint32_t)b->acquires.count;
    g->changed |= UINT32_C(1) << a->warp;
}

static bool knows_acquire(const grid_order *g, unsigned thread, const grid_acquire *a)
{
    return shared_seen(g->times, thread, a->warp, a->lanes, a->time);
}

/* Turns earlier strong loads that are visible to the fencing lanes into acquires. */
static void complete_acquires(grid_order *g, unsigned w, uint32_t lanes)
{
    for (size_t i = 0, count = g->running ? g->running->acquires.count : 0; i < count; i++) {
        grid_acquire a = g->running->acquires.items[i];
        if (a.complete)
            continue;
        uint32_t know = 0;
        for (unsigned lane = 0; lane < WARP_LANES; lane++)
            if (lanes >> lane & 1 && knows_acquire(g, w * WARP_LANES + lane, &a))
                know |= UINT32_C(1) << lane;
        a.lanes = know;
        a.warp = (uint16_t)w;
        a.time = g->times->warp_time[w];
        a.complete = true;
        if (know)
            note_acquire(g, &a);
    }
}

void order_fence(grid_order *g, unsigned w, uint32_t lanes, bool acquires, bool releases)
{
    if (acquires)
        complete_acquires(g, w, lanes);
    grid_release *f = g->fences[w].items;
    size_t count = g->fences[w].count, kept = count;
    uint32_t since = g->times->sync_time[w];
    /* a polling loop repeats the same fence */
    bool same = count && !(g->changed >> w & 1) && f[count - 1].lanes == lanes &&
                f[count - 1].time >= since;
    if (!releases || same)
        return;
    /* Removes older fences of these lanes since the last synchronisation. */
    while (kept > 0 && f[kept - 1].time >= since)
        kept--;
    for (size_t i = kept; i < count; i++) {
        f[i].lanes &= ~lanes;
        if (f[i].lanes)
            f[kept++] = f[i];
    }
    g->fences[w].count = kept;
    grid_release now = release_now(g, w, lanes);
    *VEC_PUSH(g->arena, &g->fences[w]) = now;
    g->fenced[w] |= lanes;
    g->fenced_warps |= UINT32_C(1) << w;
    g->changed &= ~(UINT32_C(1) << w);
    shared_tick(g->times, w);
}

void order_read(grid_order *g, unsigned thread, release_sequence *from, bool acquires)
{
    unsigned w = thread / WARP_LANES;
    note_acquire(g, &(grid_acquire){ .from = from,
                                     .count = (uint32_t)from->releases.count,
                                     .time = g->times->warp_time[w],
                                     .lanes = UINT32_C(1) << thread % WARP_LANES,
                                     .warp = (uint16_t)w,
                                     .complete = acquires });
}

void order_write(grid_order *g, unsigned thread, release_sequence *to, bool releases)
{
    unsigned w = thread / WARP_LANES;
    uint32_t lane = UINT32_C(1) << thread % WARP_LANES, time = g->times->warp_time[w];
    bool same_warp =
        to->writer_block == g->block && to->writer_warp == w && to->writer_time == time;
    uint32_t writers = same_warp ? to->writer_lanes : 0;
    if (!(writers & lane)) {
        /* Adds the newest visible fence of each lane. Once a lane of this warp has written, the
         * sequence has the other warps' fences, which all lanes see alike. */
        for (unsigned other = 0; other < MAX_WARPS; other++) {
            uint32_t left = !writers || other == w ? g->fenced[other] : 0;
            for (size_t i = g->fences[other].count; left && i-- > 0;) {
                grid_release f = g->fences[other].items[i];
                f.lanes = shared_seen(g->times, thread, other, f.lanes & left, f.time);
                left &= ~f.lanes;
                if (f.lanes)
                    add_release(g->arena, to, &f);
            }
        }
        to->writer_block = g->block;
        to->writer_warp = w;
        to->writer_time = time;
        to->writer_lanes = writers | lane;
    }
    if (releases) {
        grid_release r = release_now(g, w, lane);
        add_release(g->arena, to, &r);
    }
}

/* Returns the index of the first release whose block is not older than a block. */
static uint32_t first_of_block(const grid_order *g, const release_sequence *s, uint32_t from,
                               uint32_t to, uint32_t block)
{
    while (from < to && !g->interleaved) {
        uint32_t middle = from + (to - from) / 2;
        if (s->releases.items[middle].block->number < block)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Queues the releases that an acquire covers and that the search has not visited. */
static void reach_releases(grid_order *g, const grid_acquire *a, uint32_t root)
{
    release_sequence *s = a->from;
    uint32_t count = (uint32_t)s->releases.count;
    count = a->count < count ? a->count : count;
    if (s->search != g->searches)
        s->searched = 0;
    s->search = g->searches;
    if (s->searched >= count)
        return;
    *VEC_PUSH(g->arena, &g->pending) =
        (grid_reach){ .sequence = s, .from = s->searched, .to = count, .root = root };
    s->searched = count;
}

/* Returns true if the release that the last search found covers a store. */
static bool has_found(const grid_block *b, const grid_store *s)
{
    return b->found.lanes && b->found.block->number == s->block && covers_store(&b->found, s);
}

/* Returns the release that covers a store: r, or the result of the last search through r's block.
 * Otherwise queues the releases acquired before r and returns NULL. */
static const grid_release *follow_release(grid_order *g, const grid_release *r, const grid_store *s,
                                          uint32_t root)
{
    const grid_block *b = r->block;
    const grid_acquire *acquires = b->acquires.items;
    if (b->number == s->block)
        return covers_store(r, s) ? r : NULL;
    if (has_found(b, s)) {
        const grid_acquire *a = &acquires[b->found_root];
        if (release_covers(r, a->warp, a->lanes, a->time))
            return &b->found;
    }
    for (size_t i = 0; i < b->acquires.count; i++)
        if (acquires[i].complete &&
            release_covers(r, acquires[i].warp, acquires[i].lanes, acquires[i].time))
            reach_releases(g, &acquires[i], root);
    return NULL;
}

typedef enum searched { BY_THREAD, BY_BLOCK, AND_INCOMPLETE } searched;

/* Returns true if a release that covers a store was acquired: BY_THREAD visibly to the thread,
 * BY_BLOCK by any thread of the block, AND_INCOMPLETE also by strong loads that lack a fence. */
static bool search_releases(grid_order *g, unsigned thread, const grid_store *s, searched how)
{
    g->searches++;
    g->pending.count = 0;
    for (uint32_t i = 0; i < g->running->acquires.count; i++) {
        const grid_acquire *a = &g->running->acquires.items[i];
        if ((a->complete || how == AND_INCOMPLETE) &&
            (how != BY_THREAD || knows_acquire(g, thread, a)))
            reach_releases(g, a, i);
    }
    while (g->pending.count) {
        grid_reach p = g->pending.items[--g->pending.count];
        for (uint32_t i = first_of_block(g, p.sequence, p.from, p.to, s->block); i < p.to; i++) {
            const grid_release *found =
                follow_release(g, &p.sequence->releases.items[i], s, p.root);
            if (!found)
                continue;
            g->running->found = *found;
            g->running->found_root = p.root;
            return true;
        }
    }
    return false;
}

order_gap order_find_gap(grid_order *g, unsigned thread, const grid_store *s)
{
    const grid_block *b = g->running;
    if (!b || !b->acquires.count)
        return GAP_NO_RELEASE;
    if ((has_found(b, s) && knows_acquire(g, thread, &b->acquires.items[b->found_root])) ||
        search_releases(g, thread, s, BY_THREAD))
        return GAP_NONE;
    return search_releases(g, thread, s, BY_BLOCK)         ? GAP_NO_BARRIER
           : search_releases(g, thread, s, AND_INCOMPLETE) ? GAP_NOT_ACQUIRED
                                                           : GAP_NOT_RELEASED;
}
