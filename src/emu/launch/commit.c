#include "emu/launch/commit.h"

#include "emu/run/access.h"

enum { SHARE_BYTES = 4 * GRID_PAGE_BYTES };

static bool have_common(const byte_set *a, const byte_set *b)
{
    uint64_t any = 0;
    for (int i = 0; i < BLOCK_PAGE_WORDS; i++)
        any |= a->bits[i] & b->bits[i];
    return any;
}

/* Returns true if a block has loaded what blocks before it have stored since it ran. */
static bool is_outdated(const page_table *t, const block_page *p)
{
    if (!have_common(&p->loaded, &p->loaded))
        return false;
    const block_page *stored = page_table_find(t, p->of, p->index);
    return stored && have_common(&stored->loaded, &p->loaded);
}

/* Returns false, and has the next blocks note loads, if a block may have loaded without that. */
static bool may_change(const commit *c, allocation *a)
{
    if (a->tracked == c->launch || a->loaded_in != c->launch)
        return true;
    a->tracked = c->launch;
    return false;
}

/* Returns the end of a run of bytes that are all in a set, or all not. */
static unsigned run_end(const byte_set *s, unsigned from)
{
    bool in = s->bits[from / 64] >> from % 64 & 1;
    unsigned to = from + 1;
    while (to < BLOCK_PAGE_BYTES && in == (s->bits[to / 64] >> to % 64 & 1))
        to += to % 64 == 0 && s->bits[to / 64] == (in ? UINT64_MAX : 0) ? 64 : 1;
    return to;
}

static void add_stored(page_table *t, const block_page *p)
{
    block_page *known = page_table_get(t, p->of, p->index);
    for (int i = 0; i < BLOCK_PAGE_WORDS; i++)
        known->loaded.bits[i] |=
            (p->stores ? p->stores->bytes.bits[i] : 0) | (p->updates ? p->updates->bits[i] : 0);
}

static void store_page(grid_race *g, const block_page *p)
{
    const page_stores *t = p->stores;
    uint64_t address = p->of->address + p->index * BLOCK_PAGE_BYTES;
    for (unsigned from = 0, to; from < BLOCK_PAGE_BYTES; from = to) {
        to = run_end(&t->bytes, from);
        if (t->bytes.bits[from / 64] >> from % 64 & 1)
            allocation_write(p->of, address + from, t->values + from, to - from);
    }
    grid_race_store_page(g, p);
}

static void add_stats(emu_stats *to, const emu_stats *from)
{
    to->thread_instructions += from->thread_instructions;
    to->warp_instructions += from->warp_instructions;
    to->global_load_bytes += from->global_load_bytes;
    to->global_store_bytes += from->global_store_bytes;
    to->global_load_sectors += from->global_load_sectors;
    to->global_prefetches += from->global_prefetches;
    to->shared_bank_conflicts += from->shared_bank_conflicts;
    to->watched_line = from->watched_line ? from->watched_line : to->watched_line;
}

void commit_others(const commit *c, const block_log *log)
{
    const emu_launch_config *config = c->machine->config;
    for (size_t i = 0; i < log->loaded.count; i++)
        log->loaded.items[i].of->loaded += log->loaded.items[i].bytes;
    for (size_t i = 0; i < log->prints.count; i++)
        config->print(config->print_context, log->prints.items[i].text,
                      log->prints.items[i].length);
    if (c->machine->stats)
        add_stats(c->machine->stats, &log->stats);
}

void commit_note(commit *c, const block_log *log)
{
    for (size_t i = 0; i < log->pages.count; i++) {
        const block_page *p = log->pages.items[i];
        if ((p->stores || p->updates) && p->of->tracked == c->launch)
            add_stored(&c->stored, p);
    }
}

bool commit_block(commit *c, const block_log *log)
{
    grid_race *g = c->machine->grid;
    for (size_t i = 0; i < log->pages.count; i++) {
        const block_page *p = log->pages.items[i];
        if (is_outdated(&c->stored, p) ||
            (p->stores && (!may_change(c, p->of) || !grid_race_may_store_page(g, p))))
            return false;
    }
    for (size_t i = 0; i < log->updates.count; i++) {
        const atomic_update *u = &log->updates.items[i];
        if (!may_change(c, u->of) || !grid_race_may_update(g, u))
            return false;
    }
    for (size_t i = 0; i < log->pages.count; i++)
        if (log->pages.items[i]->stores)
            store_page(g, log->pages.items[i]);
    for (size_t i = 0; i < log->updates.count; i++) {
        const atomic_update *u = &log->updates.items[i];
        atomic_make_good(u);
        grid_race_update(g, u);
    }
    commit_note(c, log);
    commit_others(c, log);
    return true;
}

void commit_prepare(const commit *c, const speculation *s)
{
    for (size_t i = 0; i < s->regions.count; i++) {
        const stored_region *r = &s->regions.items[i];
        if (allocation_share(r->of))
            grid_race_share(c->machine->grid, r->of, r->offset);
    }
}

/* Returns true if neither an allocation nor earlier stores ask for a closer look at a page. */
static bool is_plain(const commit_share *share, const block_page *p)
{
    const commit *c = share->of;
    if (is_outdated(&share->stored, p))
        return false;
    if (!p->stores)
        return true;
    const block_page *stored = page_table_find(&share->stored, p->of, p->index);
    if (!p->of->bytes || (p->of->tracked != c->launch && p->of->loaded_in == c->launch) ||
        (stored && have_common(&stored->loaded, &p->stores->bytes)))
        return false;
    return grid_race_may_store_page(share->grid, p);
}

void commit_check_share(commit_share *share, unsigned number, unsigned shares,
                        const block_log *logs, uint64_t count)
{
    share->pages.count = 0;
    page_table_clear(&share->stored);
    for (share->good = 0; share->good < count; share->good++) {
        const block_log *log = &logs[share->good];
        if (log->updates.count)
            return;
        for (size_t i = 0; i < log->pages.count; i++) {
            const block_page *p = log->pages.items[i];
            if (p->index * BLOCK_PAGE_BYTES / SHARE_BYTES % shares != number)
                continue;
            if (!is_plain(share, p))
                return;
            if (!p->stores)
                continue;
            add_stored(&share->stored, p);
            *VEC_PUSH(share->stored.slots_arena, &share->pages) =
                (struct committed_page){ share->good, p };
        }
    }
}

void commit_store_share(commit_share *share, uint64_t count)
{
    for (size_t i = 0; i < share->pages.count && share->pages.items[i].block < count; i++)
        store_page(share->grid, share->pages.items[i].page);
}
