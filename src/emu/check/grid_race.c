/* Detects races over global memory between blocks of a launch, and unordered stores by two threads
 * of a block.
 *
 * Each stored byte remembers its last store of the launch. An access by another block races with
 * that store unless both are strong at .gpu scope or wider, as atomic operations are, or the store
 * comes first in causality order (grid_order.h). A store of the value that memory holds already
 * does not race: kernels set a flag from many blocks. Loads are not recorded. A store that races
 * with the load of an earlier block is found when the blocks run in the opposite order.
 *
 * A non-coherent load (.nc) must not read bytes that its own launch has stored, by any block.
 *
 * Records exist only for stored bytes, in pages that are created by the first store. A record
 * covers a word, or the size of the smallest store to the page if that is less. Loads from
 * allocations without stores cost nothing. */
#include "emu/check/grid_order.h"

enum { GROUP_PAGES = STORED_REGION_BYTES / GRID_PAGE_BYTES, WORD_LOG2 = 2 };

typedef struct shadow_page {
    unsigned shift;               /* log2 of the bytes per record */
    grid_store *stores;           /* last store to each record's bytes */
    release_sequence **sequences; /* one per record; NULL = none yet */
} shadow_page;

typedef struct shadow_group {
    shadow_page *pages[GROUP_PAGES];
} shadow_group;

struct grid_shadow {
    grid_shadow *next;
    allocation *of;
    shadow_group *groups[];
};

grid_race *grid_race_new(arena *a, bool enabled)
{
    grid_race *g = arena_zalloc(a, sizeof *g);
    g->enabled = enabled;
    g->order.arena = a;
    return g;
}

void grid_race_attach(const grid_race *g, bool attached)
{
    for (grid_shadow *s = g->shadows; s; s = s->next)
        s->of->shadow = attached ? s : NULL;
}

/* Returns the page of an offset, or NULL if nothing was stored there. */
static shadow_page *find_page(grid_race *g, const allocation *a, uint64_t offset)
{
    uint64_t index = offset / GRID_PAGE_BYTES;
    if (g->recent && g->recent_of == a && g->recent_index == index)
        return g->recent;
    const shadow_group *group = a->shadow ? a->shadow->groups[index / GROUP_PAGES] : NULL;
    if (!group || !group->pages[index % GROUP_PAGES])
        return NULL;
    g->recent_of = a;
    g->recent_index = index;
    return g->recent = group->pages[index % GROUP_PAGES];
}

static shadow_group *make_group(grid_race *g, allocation *a, uint64_t offset)
{
    arena *memory = g->order.arena;
    if (!a->shadow) {
        uint64_t groups = a->size / GRID_PAGE_BYTES / GROUP_PAGES + 1;
        a->shadow = arena_zalloc(memory, sizeof *a->shadow + groups * sizeof *a->shadow->groups);
        a->shadow->of = a;
        a->shadow->next = g->shadows;
        g->shadows = a->shadow;
    }
    shadow_group **group = &a->shadow->groups[offset / STORED_REGION_BYTES];
    if (!*group)
        *group = arena_zalloc(memory, sizeof **group);
    return *group;
}

/* Returns the page of an offset, with records no larger than the store. */
static shadow_page *page_to_store(grid_race *g, allocation *a, uint64_t offset, unsigned size)
{
    arena *memory = g->order.arena;
    shadow_page *p = find_page(g, a, offset);
    if (!p) {
        p = arena_zalloc(memory, sizeof *p);
        p->shift = size == 1 ? 0 : size == 2 ? 1 : WORD_LOG2;
        p->stores = arena_zalloc(memory, (GRID_PAGE_BYTES >> p->shift) * sizeof *p->stores);
        make_group(g, a, offset)->pages[offset / GRID_PAGE_BYTES % GROUP_PAGES] = p;
    }
    unsigned shift = p->shift;
    if (size >= 1u << shift)
        return p;
    while (size < 1u << p->shift)
        p->shift--;
    unsigned count = GRID_PAGE_BYTES >> p->shift;
    grid_store *stores = arena_alloc(memory, count * sizeof *stores);
    release_sequence **sequences =
        p->sequences ? arena_alloc(memory, count * sizeof *sequences) : NULL;
    for (unsigned i = 0; i < count; i++) {
        stores[i] = p->stores[i >> (shift - p->shift)];
        if (sequences)
            sequences[i] = p->sequences[i >> (shift - p->shift)];
    }
    p->stores = stores;
    p->sequences = sequences;
    return p;
}

static const char *block_name(const machine *m, uint32_t number)
{
    unsigned block[3];
    machine_block(m, number - 1, block);
    return arena_format(m->messages, "block (%u, %u, %u)", block[0], block[1], block[2]);
}

static bool memory_holds(const allocation *a, uint64_t address, const void *bytes, unsigned size)
{
    uint8_t there[64];
    allocation_read(a, address, there, size);
    return memcmp(there, bytes, size) == 0;
}

/* Returns true if an access does not race with a store. bytes: data to store, or NULL. */
static bool check_block_order(const access *x, const allocation *a, const void *bytes,
                              const grid_store *s)
{
    static const char *const gaps[] = {
        [GAP_NO_BARRIER] = "there is no barrier between this block's acquire and this thread",
        [GAP_NOT_ACQUIRED] = "this block read the release with a strong access, but without "
                             ".acquire and with no fence after it",
        [GAP_NOT_RELEASED] = "this block has acquired no release that follows the store in its "
                             "thread or after a barrier",
        [GAP_NO_RELEASE] = "this block has acquired no release",
    };
    const machine *m = x->warp->machine;
    if ((s->strong && x->op->order) ||
        (bytes && !x->op->atomic && memory_holds(a, x->address, bytes, x->size)))
        return true;
    order_gap gap = order_find_gap(&m->grid->order, thread_of(x->warp, x->lane), s);
    const char *does = x->op->atomic ? "updates" : bytes ? "overwrites" : "reads";
    return gap == GAP_NONE ||
           ACCESS_CHECK(x, EMU_CHECK_RACE,
                        "race: %s %s bytes that %s %s at line %u; the two are not ordered: %s",
                        block_name(m, m->grid->order.block), does, block_name(m, s->block),
                        s->strong ? "stored atomically" : "stored", s->line, gaps[gap]);
}

bool grid_race_has_seen(const access *x, const grid_store *s)
{
    return shared_seen(&x->warp->machine->shared, thread_of(x->warp, x->lane),
                       s->thread / WARP_LANES, UINT32_C(1) << s->thread % WARP_LANES, s->time);
}

bool grid_race_passes_overwriting(const access *x, const grid_store *s)
{
    return ACCESS_CHECK(x, EMU_CHECK_RACE,
                        "race: a store overwrites a different value that thread %u of the block "
                        "stored at line %u, with no barrier in between",
                        s->thread, s->line);
}

bool grid_race_load(const access *x, const allocation *a)
{
    grid_race *g = x->warp->machine->grid;
    const op *o = x->op;
    uint64_t offset = x->address - a->address;
    const shadow_page *p = a->shadow ? find_page(g, a, offset) : NULL;
    if (!p)
        return true;
    unsigned at = offset % GRID_PAGE_BYTES;
    unsigned first = at >> p->shift, last = (at + x->size - 1) >> p->shift;
    for (unsigned i = first; i <= last; i++) {
        const grid_store *s = &p->stores[i];
        if (s->block && o->non_coherent &&
            !ACCESS_CHECK(x, EMU_CHECK_RACE,
                          "race: a non-coherent load (.nc) reads bytes that %s stored in this "
                          "launch at line %u; load them without .nc",
                          s->block == g->order.block ? "this block"
                                                     : block_name(x->warp->machine, s->block),
                          s->line))
            return false;
        if (s->block && s->block != g->order.block && !check_block_order(x, a, NULL, s))
            return false;
    }
    unsigned thread = thread_of(x->warp, x->lane);
    bool has_fenced = g->order.fenced[x->warp->index] >> x->lane & 1;
    bool acquires = o->order & ORDER_ACQUIRE || (o->atomic && has_fenced);
    for (unsigned i = first; o->order && p->sequences && i <= last; i++)
        if (p->sequences[i] && (i == first || p->sequences[i] != p->sequences[i - 1]))
            order_read(&g->order, thread, p->sequences[i], acquires);
    return true;
}

/* Updates release sequences: plain stores end, strong stores start, atomics continue them. */
static void note_release(grid_order *order, const op *o, unsigned thread, shadow_page *p,
                         unsigned first, unsigned count)
{
    release_sequence *new = NULL;
    bool releases = o->order & ORDER_RELEASE || (o->order && order->fenced_warps);
    if (!p->sequences && !releases)
        return;
    if (!p->sequences)
        p->sequences =
            arena_zalloc(order->arena, (GRID_PAGE_BYTES >> p->shift) * sizeof *p->sequences);
    for (unsigned i = first; i < first + count; i++) {
        release_sequence **s = &p->sequences[i];
        if (!o->atomic)
            *s = NULL;
        if (!releases)
            continue;
        if (!*s && !new)
            new = arena_zalloc(order->arena, sizeof *new);
        if (!*s)
            *s = new;
        if (i == first || *s != s[-1])
            order_write(order, thread, *s, o->order & ORDER_RELEASE);
    }
}

bool grid_race_store(const access *x, allocation *a, const void *bytes)
{
    const machine *m = x->warp->machine;
    grid_race *g = m->grid;
    uint64_t offset = x->address - a->address;
    if (!g->enabled)
        return true;
    shadow_page *p = page_to_store(g, a, offset, x->size);
    grid_store store = { .block = g->order.block,
                         .time = m->shared.warp_time[x->warp->index],
                         .line = x->op->line,
                         .thread = (uint16_t)thread_of(x->warp, x->lane),
                         .strong = x->op->order };
    unsigned first = offset % GRID_PAGE_BYTES >> p->shift, count = x->size >> p->shift;
    for (unsigned i = first; i < first + count; i++) {
        grid_store *s = &p->stores[i];
        bool own = s->block == store.block;
        /* within a block, the older store must be visible, or have left the same value */
        bool plain = own && !s->strong && !x->op->order && !x->op->atomic;
        if (plain ? !grid_race_has_seen(x, s) && !memory_holds(a, x->address, bytes, x->size) &&
                        !grid_race_passes_overwriting(x, s)
                  : s->block && !own && !check_block_order(x, a, bytes, s))
            return false;
        if (!own || !store.strong || s->strong)
            *s = store; /* a plain store stays recorded under a strong one: others race with it */
    }
    g->order.changed |= UINT32_C(1) << x->warp->index;
    if (x->op->order || p->sequences)
        note_release(&g->order, x->op, store.thread, p, first, count);
    return true;
}

bool grid_race_may_store_page(grid_race *g, const block_page *of)
{
    const page_stores *s = of->stores;
    uint64_t offset = of->index * BLOCK_PAGE_BYTES;
    const shadow_page *p = s->records ? find_page(g, of->of, offset) : NULL;
    unsigned size = 1u << s->shift, count = BLOCK_PAGE_BYTES / size, at = offset % GRID_PAGE_BYTES;
    bool met = false, same = true; /* same: memory already holds the values that the block stores */
    for (unsigned i = 0; p && i < count; i++, at += size)
        for (unsigned r = at >> p->shift; s->records[i].block && r <= (at + size - 1) >> p->shift;
             r++)
            met |= p->stores[r].block != 0;
    for (unsigned i = 0; met && same && i < BLOCK_PAGE_BYTES; i += size)
        same = !s->records[i >> s->shift].block ||
               memory_holds(of->of, of->of->address + offset + i, s->values + i, size);
    return !p || (!p->sequences && (!met || (!s->changed && same)));
}

void grid_race_store_page(grid_race *g, const block_page *of)
{
    const page_stores *s = of->stores;
    uint64_t offset = of->index * BLOCK_PAGE_BYTES;
    unsigned size = 1u << s->shift, count = BLOCK_PAGE_BYTES / size, at = offset % GRID_PAGE_BYTES;
    if (!s->records)
        return;
    shadow_page *p = page_to_store(g, of->of, offset, size);
    grid_store *same = p->shift == s->shift ? &p->stores[at >> p->shift] : NULL;
    for (unsigned i = 0; same && i < count; i++)
        if (s->records[i].block)
            same[i] = s->records[i];
    for (unsigned i = 0; !same && i < count; i++, at += size)
        for (unsigned record = at >> p->shift; record < (at + size) >> p->shift; record++)
            if (s->records[i].block)
                p->stores[record] = s->records[i];
}

bool grid_race_may_update(grid_race *g, const atomic_update *u)
{
    uint64_t offset = u->address - u->of->address;
    unsigned at = offset % GRID_PAGE_BYTES, last = at + emu_type_bytes(u->op->type) - 1;
    const shadow_page *p = g->enabled ? find_page(g, u->of, offset) : NULL;
    bool good = !p || !p->sequences;
    for (unsigned i = p ? at >> p->shift : 0; p && i <= last >> p->shift; i++)
        good &= !p->stores[i].block || p->stores[i].block == u->store.block || p->stores[i].strong;
    return good;
}

void grid_race_update(grid_race *g, const atomic_update *u)
{
    uint64_t offset = u->address - u->of->address;
    unsigned size = emu_type_bytes(u->op->type);
    if (!g->enabled)
        return;
    shadow_page *p = page_to_store(g, u->of, offset, size);
    unsigned first = offset % GRID_PAGE_BYTES >> p->shift, count = size >> p->shift;
    for (unsigned i = first; i < first + count; i++)
        if (p->stores[i].block != u->store.block || p->stores[i].strong)
            p->stores[i] = u->store;
}

void grid_race_share(grid_race *g, allocation *a, uint64_t offset)
{
    if (g->enabled)
        make_group(g, a, offset);
}

void grid_race_track(const grid_race *g, uint32_t launch)
{
    for (const grid_shadow *s = g->shadows; s; s = s->next)
        s->of->tracked = launch;
}

/* Starts a new time after a release, which does not cover later stores of the warp. */
void grid_race_stored(warp *w, const op *o)
{
    if (o->order & ORDER_RELEASE)
        shared_tick(&w->machine->shared, w->index);
}

void exec_fence(warp *w, const op *o, lane_mask mask)
{
    grid_race *g = w->machine->grid;
    if (o->order && g->enabled && w->machine->speculation)
        speculation_abandon(w);
    else if (o->order && g->enabled)
        order_fence(&g->order, w->index, mask, o->order & ORDER_ACQUIRE, o->order & ORDER_RELEASE);
}
