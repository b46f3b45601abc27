#include "emu/run/access.h"

#include "emu/check/grid_race.h"
#include "emu/check/overlap_race.h"
#include "emu/memory/speculation.h"

/* Overlays memory with the block's stores. Returns false if the block is abandoned. */
static bool read_ahead(speculation *s, const access *x, allocation *of, uint8_t *bytes)
{
    machine *m = x->warp->machine;
    speculation_load(s, of, x->address, x->size);
    if (speculation_sees_memory(s, of, x->address, x->size))
        return true;
    speculation_overlay(s, of, x->address, bytes, x->size);
    if ((x->op->non_coherent && m->grid->enabled) ||
        speculation_updates(s, of, x->address, x->size))
        speculation_end_block(m);
    return !has_fault(m);
}

bool global_read(const access *x, void *bytes)
{
    speculation *s = x->warp->machine->speculation;
    allocation *a = access_global(x);
    if (!a || !grid_race_load(x, a) || !overlap_lane(x, a))
        return false;
    allocation_read(a, x->address, bytes, x->size);
    return !s || read_ahead(s, x, a, bytes);
}

/* Returns true if the block finds a value there already. */
static bool is_there(const access *x, const allocation *a, const void *bytes)
{
    uint8_t there[64];
    allocation_read(a, x->address, there, x->size);
    speculation_overlay(x->warp->machine->speculation, a, x->address, there, x->size);
    return memcmp(there, bytes, x->size) == 0;
}

/* Notes who has stored. Returns false after a race with another thread of the block. */
static bool note_stores(const access *x, const allocation *a, const void *bytes, page_stores *t,
                        unsigned at)
{
    const machine *m = x->warp->machine;
    grid_store new = { .block = m->grid->order.block,
                       .time = m->shared.warp_time[x->warp->index],
                       .line = x->op->line,
                       .thread = (uint16_t)thread_of(x->warp, x->lane) };
    for (unsigned i = at >> t->shift; i < (at + x->size) >> t->shift; i++) {
        const grid_store *s = &t->records[i];
        if (s->block && !grid_race_has_seen(x, s) && !is_there(x, a, bytes) &&
            !grid_race_passes_overwriting(x, s))
            return false;
        t->records[i] = new;
    }
    return true;
}

/* Returns true if a store changes bytes that the block has stored before. */
static bool changes(const page_stores *t, unsigned at, const uint8_t *bytes, unsigned size)
{
    bool changed = false;
    for (unsigned i = 0; i < size; i++)
        changed |= byte_set_has(&t->bytes, at + i) && t->values[at + i] != bytes[i];
    return changed;
}

/* Stores to the block's log. Returns false if the block is abandoned. */
static bool store_ahead(const access *x, allocation *a, const void *bytes)
{
    speculation *s = x->warp->machine->speculation;
    uint64_t offset = x->address - a->address;
    unsigned at = (unsigned)(offset % BLOCK_PAGE_BYTES);
    bool may_be_elsewhere = a->rights || a->aliased; /* under other addresses, too */
    if (x->op->order || may_be_elsewhere || at + x->size > BLOCK_PAGE_BYTES) {
        speculation_abandon(x->warp);
        return false;
    }
    if (speculation_updates(s, a, x->address, x->size)) {
        speculation_end_block(x->warp->machine);
        return false;
    }
    page_stores *t = speculation_stores(s, a, offset, x->size, x->warp->machine->grid->enabled);
    if (t->records && !note_stores(x, a, bytes, t, at))
        return false;
    t->changed |= byte_set_has_some(&t->bytes, at, x->size) && changes(t, at, bytes, x->size);
    byte_set_add(&t->bytes, at, x->size);
    memcpy(t->values + at, bytes, x->size);
    return true;
}

bool access_write(const access *x, allocation *to, const uint8_t *bytes)
{
    const machine *m = x->warp->machine;
    uint64_t watch = m->config->watch;
    if (!to && (!(to = access_global(x)) || !overlap_lane(x, to)))
        return false;
    if (m->speculation ? !store_ahead(x, to, bytes) : !grid_race_store(x, to, bytes))
        return false;
    if (!m->speculation)
        allocation_write(to, x->address, bytes, x->size);
    if (watch && m->stats && x->address <= watch && watch - x->address < x->size)
        m->stats->watched_line = x->op->line;
    return true;
}
