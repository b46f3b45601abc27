#include "emu/memory/speculation.h"

enum { LEAST_SLOTS = 64, WORD_LOG2 = 2 };

/* Returns the slot of a page, or the free slot where it belongs. */
static struct page_slot *find_slot(const page_table *t, const allocation *of, uint64_t index)
{
    uint64_t key = (of->address / BLOCK_PAGE_BYTES + index) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = (size_t)(key >> 32) & (t->capacity - 1);; i = (i + 1) & (t->capacity - 1)) {
        struct page_slot *s = &t->slots[i];
        if (s->generation != t->generation || (s->page->of == of && s->page->index == index))
            return s;
    }
}

void page_table_clear(page_table *t)
{
    t->generation++;
    t->count = 0;
}

block_page *page_table_find(const page_table *t, const allocation *of, uint64_t index)
{
    const struct page_slot *s = t->count ? find_slot(t, of, index) : NULL;
    return s && s->generation == t->generation ? s->page : NULL;
}

block_page *page_table_get(page_table *t, allocation *of, uint64_t index)
{
    block_page *known = page_table_find(t, of, index);
    if (known)
        return known;
    if (2 * t->count >= t->capacity) {
        page_table old = *t;
        t->capacity = old.capacity ? 2 * old.capacity : LEAST_SLOTS;
        t->slots = arena_zalloc(t->slots_arena, t->capacity * sizeof *t->slots);
        t->generation = 1;
        for (size_t i = 0; i < old.capacity; i++)
            if (old.slots[i].generation == old.generation) {
                block_page *p = old.slots[i].page;
                *find_slot(t, p->of, p->index) = (struct page_slot){ 1, p };
            }
    }
    block_page *new = arena_zalloc(t->arena, sizeof *new);
    new->of = of;
    new->index = index;
    *find_slot(t, of, index) = (struct page_slot){ t->generation, new };
    t->count++;
    return new;
}

void speculation_begin_round(speculation *s)
{
    memset(&s->regions, 0, sizeof s->regions);
    s->bytes = 0;
}

void speculation_begin_block(speculation *s, block_log *log)
{
    page_table_clear(&s->pages);
    s->recent = NULL;
    s->log = log;
}

static block_page *get_page(speculation *s, allocation *of, uint64_t index)
{
    size_t known = s->pages.count;
    if (s->recent && s->recent->of == of && s->recent->index == index)
        return s->recent;
    block_page *p = s->recent = page_table_get(&s->pages, of, index);
    if (s->pages.count != known) {
        *VEC_PUSH(s->arena, &s->log->pages) = p;
        s->bytes += sizeof *p;
    }
    return p;
}

/* Returns the number of bytes of a range in its first page. */
static unsigned part_in_page(uint64_t offset, uint64_t size)
{
    unsigned room = BLOCK_PAGE_BYTES - (unsigned)(offset % BLOCK_PAGE_BYTES);
    return size < room ? (unsigned)size : room;
}

/* Returns true if an allocation's loads are noted by byte. Otherwise notes that there are some. */
static bool is_tracked(const speculation *s, allocation *of)
{
    if (of->read_only)
        return false;
    if (of->tracked == s->launch)
        return true;
    if (atomic_load_explicit(&of->loaded_in, memory_order_relaxed) != s->launch)
        atomic_store_explicit(&of->loaded_in, s->launch, memory_order_relaxed);
    return false;
}

static void note_loaded(speculation *s, allocation *of, uint64_t address, uint64_t size)
{
    uint64_t offset = address - of->address;
    for (unsigned part; size; offset += part, size -= part) {
        part = part_in_page(offset, size);
        byte_set_add(&get_page(s, of, offset / BLOCK_PAGE_BYTES)->loaded,
                     (unsigned)(offset % BLOCK_PAGE_BYTES), part);
    }
}

void speculation_load(speculation *s, allocation *of, uint64_t address, uint64_t size)
{
    if (is_tracked(s, of))
        note_loaded(s, of, address, size);
}

/* Notes the lanes of a dense load as one range. */
void speculation_load_lanes(speculation *s, allocation *of, const uint64_t *at, lane_mask mask,
                            unsigned size)
{
    if (!is_tracked(s, of))
        return;
    const address_span span = span_of(at);
    if (span.highest - span.lowest + size <= (uint64_t)size * count_lanes(mask)) {
        note_loaded(s, of, span.lowest, span.highest - span.lowest + size);
        return;
    }
    EACH_LANE (i, mask)
        note_loaded(s, of, at[i], size);
}

void speculation_update(speculation *s, const atomic_update *u, unsigned size)
{
    uint64_t offset = u->address - u->of->address;
    unsigned at = (unsigned)(offset % BLOCK_PAGE_BYTES);
    block_page *p = get_page(s, u->of, offset / BLOCK_PAGE_BYTES);
    if (!p->updates) {
        p->updates = arena_zalloc(s->arena, sizeof *p->updates);
        s->bytes += sizeof *p->updates;
    }
    byte_set_add(p->updates, at, size);
    *VEC_PUSH(s->arena, &s->log->updates) = *u;
    s->bytes += sizeof *u;
}

/* Returns true if the block has updated, or stored to, some of these bytes. */
static bool touches(const speculation *s, const allocation *of, uint64_t address, uint64_t size,
                    bool stores)
{
    uint64_t offset = address - of->address;
    for (unsigned part; size; offset += part, size -= part) {
        part = part_in_page(offset, size);
        const block_page *p = page_table_find(&s->pages, of, offset / BLOCK_PAGE_BYTES);
        const byte_set *touched = !p          ? NULL
                                  : !stores   ? p->updates
                                  : p->stores ? &p->stores->bytes
                                              : NULL;
        if (touched && byte_set_has_some(touched, (unsigned)(offset % BLOCK_PAGE_BYTES), part))
            return true;
    }
    return false;
}

bool speculation_updates(const speculation *s, const allocation *of, uint64_t address,
                         uint64_t size)
{
    return s->log->updates.count && touches(s, of, address, size, false);
}

bool speculation_sees_memory(const speculation *s, const allocation *of, uint64_t address,
                             uint64_t size)
{
    return !speculation_updates(s, of, address, size) && !touches(s, of, address, size, true);
}

void speculation_overlay(const speculation *s, const allocation *of, uint64_t address,
                         uint8_t *bytes, unsigned size)
{
    uint64_t offset = address - of->address;
    for (unsigned i = 0; i < size; i++) {
        const block_page *p = page_table_find(&s->pages, of, (offset + i) / BLOCK_PAGE_BYTES);
        unsigned at = (unsigned)((offset + i) % BLOCK_PAGE_BYTES);
        if (p && p->stores && byte_set_has(&p->stores->bytes, at))
            bytes[i] = p->stores->values[at];
    }
}

bool speculation_is_initialised(const speculation *s, const allocation *of, uint64_t address,
                                unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        if (!touches(s, of, address + i, 1, true) && !allocation_is_initialised(of, address + i, 1))
            return false;
    return true;
}

static grid_store *new_records(speculation *s, unsigned shift)
{
    size_t bytes = (BLOCK_PAGE_BYTES >> shift) * sizeof(grid_store);
    s->bytes += bytes;
    return arena_zalloc(s->arena, bytes);
}

page_stores *speculation_stores(speculation *s, allocation *of, uint64_t offset, unsigned size,
                                bool race_check)
{
    block_page *p = get_page(s, of, offset / BLOCK_PAGE_BYTES);
    page_stores *t = p->stores;
    if (!t) {
        t = p->stores = arena_zalloc(s->arena, sizeof *t);
        t->shift = size == 1 ? 0 : size == 2 ? 1 : WORD_LOG2;
        t->records = race_check ? new_records(s, t->shift) : NULL;
        s->bytes += sizeof *t;
        const stored_region r = { of, offset - offset % STORED_REGION_BYTES };
        const stored_region *last =
            s->regions.count ? &s->regions.items[s->regions.count - 1] : NULL;
        if (!last || last->of != of || last->offset != r.offset)
            *VEC_PUSH(s->arena, &s->regions) = r;
    }
    if (!t->records || size >= 1u << t->shift)
        return t;
    unsigned shift = size == 1 ? 0 : 1;
    grid_store *finer = new_records(s, shift);
    for (unsigned i = 0, count = BLOCK_PAGE_BYTES >> shift; i < count; i++)
        finer[i] = t->records[i >> (t->shift - shift)];
    t->shift = shift;
    t->records = finer;
    return t;
}

void speculation_count_loaded(speculation *s, allocation *of, uint64_t bytes)
{
    block_log *log = s->log;
    for (size_t i = 0; i < log->loaded.count; i++)
        if (log->loaded.items[i].of == of) {
            log->loaded.items[i].bytes += bytes;
            return;
        }
    *VEC_PUSH(s->arena, &log->loaded) = (loaded_bytes){ of, bytes };
}

void speculation_print(speculation *s, const char *text, size_t length)
{
    *VEC_PUSH(s->arena, &s->log->prints) =
        (printed_text){ arena_copy(s->arena, text, length), length };
    s->bytes += length;
}

void speculation_end_block(machine *m)
{
    m->report->fault = EMU_RACE; /* never shown */
}

void speculation_abandon(warp *w)
{
    w->machine->speculation->log->ordered = true;
    speculation_end_block(w->machine);
}
