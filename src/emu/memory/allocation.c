#include "emu/memory/allocation.h"

#include <stdlib.h>

static void *allocate_zeros(const allocation *a, size_t size)
{
    void *bytes = calloc(size, 1);
    if (!bytes)
        arena_exhausted(a->arena, size);
    return bytes;
}

static size_t bitmap_bytes(uint64_t size)
{
    return (size_t)(size / 8 + 1);
}

static void set_bits(uint8_t *bits, uint64_t first, uint64_t count)
{
    for (; count && first % 8; first++, count--)
        bits[first / 8] |= (uint8_t)(1 << first % 8);
    memset(bits + first / 8, 0xff, (size_t)(count / 8));
    first += count / 8 * 8;
    if (count % 8)
        bits[first / 8] |= (uint8_t)((1 << count % 8) - 1);
}

static bool bits_set(const uint8_t *bits, uint64_t first, uint64_t count)
{
    uint64_t end = first + count, word;
    while (first < end) {
        unsigned shift = first % 8, left = end - first < 8 ? (unsigned)(end - first) : 8;
        if (!shift && end - first >= 8 * sizeof word) {
            memcpy(&word, bits + first / 8, sizeof word);
            if (word != UINT64_MAX)
                return false;
            first += 8 * sizeof word;
            continue;
        }
        left = left < 8 - shift ? left : 8 - shift;
        if (~(unsigned)bits[first / 8] >> shift & ((1u << left) - 1))
            return false;
        first += left;
    }
    return true;
}

uint8_t *allocation_bitmap(uint64_t size)
{
    return calloc(bitmap_bytes(size), 1);
}

static uint64_t group_count(const allocation *a)
{
    return a->size / PAGE_BYTES / PAGES_A_GROUP + 1;
}

/* Returns the number of bytes from an offset to the end of its page, or to end if that is less. */
static uint64_t bytes_in_page(uint64_t offset, uint64_t end)
{
    uint64_t left = PAGE_BYTES - offset % PAGE_BYTES;
    return left < end - offset ? left : end - offset;
}

static page *page_at(const allocation *a, uint64_t offset)
{
    const page_group *group = a->groups[offset / PAGE_BYTES / PAGES_A_GROUP];
    return group ? group->pages[offset / PAGE_BYTES % PAGES_A_GROUP] : NULL;
}

/* Returns the next existing page from a number on, or NULL. */
static page *next_page(const allocation *a, uint64_t *number)
{
    uint64_t end = a->groups ? group_count(a) * PAGES_A_GROUP : 0;
    while (*number < end) {
        const page_group *group = a->groups[*number / PAGES_A_GROUP];
        page *p = group ? group->pages[*number % PAGES_A_GROUP] : NULL;
        if (p)
            return p;
        *number = group ? *number + 1 : (*number / PAGES_A_GROUP + 1) * PAGES_A_GROUP;
    }
    return NULL;
}

bool allocation_permits(const allocation *a, uint64_t address, uint64_t size, bool stores)
{
    uint8_t least = stores ? EMU_LOADS_AND_STORES : EMU_LOADS;
    uint64_t first = (address - a->address) / EMU_GRANULE;
    uint64_t end = (address - a->address + size + EMU_GRANULE - 1) / EMU_GRANULE;
    for (uint64_t i = first; i < end; i++)
        if (a->rights[i] < least)
            return false;
    return true;
}

void allocation_release(allocation *a)
{
    if (a->owned)
        free(a->bytes);
    free(a->initialised);
    free(a->written);
    free(a->rights);
    page *p;
    for (uint64_t i = 0; (p = next_page(a, &i)); i++)
        free(p);
    for (uint64_t i = 0; a->groups && i < group_count(a); i++)
        free(a->groups[i]);
    free(a->groups);
    a->bytes = a->initialised = a->written = NULL;
    a->rights = NULL;
    a->groups = NULL;
    a->freed = true;
}

page_group **allocation_groups(const allocation *a)
{
    return allocate_zeros(a, (size_t)group_count(a) * sizeof(page_group *));
}

static page *make_page(allocation *a, uint64_t offset)
{
    uint64_t index = offset / PAGE_BYTES;
    page_group **group = &a->groups[index / PAGES_A_GROUP];
    if (!*group)
        *group = allocate_zeros(a, sizeof **group);
    page **p = &(*group)->pages[index % PAGES_A_GROUP];
    if (!*p) {
        /* one period of the pattern, then doubled repeatedly */
        *p = allocate_zeros(a, sizeof **p);
        uint64_t have = a->pattern_size < PAGE_BYTES ? a->pattern_size : PAGE_BYTES;
        for (uint64_t i = 0; i < have; i++)
            (*p)->bytes[i] = a->pattern[(index * PAGE_BYTES + i) % a->pattern_size];
        for (uint64_t more; have < PAGE_BYTES; have += more) {
            more = have < PAGE_BYTES - have ? have : PAGE_BYTES - have;
            memcpy((*p)->bytes + have, (*p)->bytes, more);
        }
    }
    return *p;
}

const uint8_t *allocation_piece(const allocation *a, uint64_t address, uint64_t size)
{
    uint64_t offset = address - a->address, last = offset + size - 1;
    if (a->bytes)
        return a->bytes + offset;
    const page *first = page_at(a, offset);
    uint64_t pages = last / PAGE_BYTES - offset / PAGE_BYTES;
    if (first && !pages)
        return first->bytes + offset % PAGE_BYTES;
    uint64_t start = offset % a->pattern_size;
    bool written = first || pages > 1 || (pages && page_at(a, last));
    return written || start + size > a->pattern_size ? NULL : a->pattern + start;
}

void allocation_read(const allocation *a, uint64_t address, void *bytes, size_t size)
{
    uint64_t offset = address - a->address;
    if (a->bytes) {
        memcpy(bytes, a->bytes + offset, size);
        return;
    }
    uint8_t *to = bytes;
    for (uint64_t i = offset, run; i < offset + size; i += run, to += run) {
        const page *p = page_at(a, i);
        run = bytes_in_page(i, offset + size);
        if (p)
            memcpy(to, p->bytes + i % PAGE_BYTES, run);
        for (uint64_t j = 0; !p && j < run; j++)
            to[j] = a->pattern[(i + j) % a->pattern_size];
    }
}

static void begin_marks(allocation *a)
{
    if (!a->written)
        a->written = allocate_zeros(a, bitmap_bytes(a->size));
}

bool allocation_share(allocation *a)
{
    if (a->bytes)
        begin_marks(a);
    return a->bytes;
}

void allocation_write(allocation *a, uint64_t address, const void *bytes, size_t size)
{
    uint64_t offset = address - a->address;
    if (a->bytes) {
        memmove(a->bytes + offset, bytes, size);
        begin_marks(a);
        set_bits(a->written, offset, size);
        if (a->initialised)
            set_bits(a->initialised, offset, size);
        return;
    }
    const uint8_t *from = bytes;
    for (uint64_t i = offset, run; i < offset + size; i += run, from += run) {
        page *p = make_page(a, i);
        run = bytes_in_page(i, offset + size);
        memcpy(p->bytes + i % PAGE_BYTES, from, run);
        set_bits(p->written, i % PAGE_BYTES, run);
    }
}

bool allocation_is_initialised(const allocation *a, uint64_t address, size_t size)
{
    return !a->initialised || bits_set(a->initialised, address - a->address, size);
}

void allocation_copy(allocation *to, uint64_t address, const allocation *from,
                     uint64_t from_address, size_t size)
{
    uint64_t start = address - to->address;
    uint8_t *have = allocate_zeros(to, bitmap_bytes(size));
    for (size_t i = 0; i < size; i++)
        if (allocation_is_initialised(from, from_address + i, 1))
            set_bits(have, i, 1);
    allocation_write(to, address, from->bytes + (from_address - from->address), size);
    for (size_t i = 0; i < size; i++)
        if (!bits_set(have, i, 1))
            to->initialised[(start + i) / 8] &= (uint8_t) ~(1 << (start + i) % 8);
    free(have);
}

bool allocation_is_written(const allocation *a, uint64_t address, size_t size)
{
    uint64_t offset = address - a->address;
    if (!a->groups)
        return size == 0 || (a->written && bits_set(a->written, offset, size));
    for (uint64_t i = offset, run; i < offset + size; i += run) {
        const page *p = page_at(a, i);
        run = bytes_in_page(i, offset + size);
        if (!p || !bits_set(p->written, i % PAGE_BYTES, run))
            return false;
    }
    return true;
}

/* Returns the first set bit at or after bit, or count. */
static uint64_t next_bit(const uint8_t *bits, uint64_t bit, uint64_t count)
{
    for (uint64_t word; bit < count; bit++) {
        while (bit % 8 == 0 && bit + 8 * sizeof word <= count) {
            memcpy(&word, bits + bit / 8, sizeof word);
            if (word)
                break;
            bit += 8 * sizeof word;
        }
        if (bit < count && bits[bit / 8] >> bit % 8 & 1)
            return bit;
    }
    return count;
}

uint64_t allocation_next_written(const allocation *a, uint64_t offset)
{
    uint64_t number = offset / PAGE_BYTES, at = offset % PAGE_BYTES;
    if (!a->groups)
        return a->written ? next_bit(a->written, offset, a->size) : a->size;
    for (page *p; (p = next_page(a, &number)); number++) {
        at = next_bit(p->written, number == offset / PAGE_BYTES ? at : 0, PAGE_BYTES);
        if (at < PAGE_BYTES)
            return number * PAGE_BYTES + at;
    }
    return a->size;
}

void allocation_clear_written(allocation *a)
{
    if (a->written)
        memset(a->written, 0, bitmap_bytes(a->size));
    page *p;
    for (uint64_t i = 0; (p = next_page(a, &i)); i++)
        memset(p->written, 0, sizeof p->written);
}

static void *copy_of(arena *a, const void *bytes, size_t size)
{
    return bytes ? arena_copy(a, bytes, size) : NULL;
}

allocation *allocation_save(arena *a, const allocation *of)
{
    allocation *s = arena_alloc(a, sizeof *s);
    size_t bits = bitmap_bytes(of->size), groups = (size_t)group_count(of) * sizeof(page_group *);
    memcpy(s, of, sizeof *s);
    s->bytes = copy_of(a, of->bytes, (size_t)of->size);
    s->initialised = copy_of(a, of->initialised, bits);
    s->written = copy_of(a, of->written, bits);
    s->groups = of->groups ? arena_zalloc(a, groups) : NULL;
    const page *p;
    for (uint64_t i = 0; (p = next_page(of, &i)); i++) {
        page_group **group = &s->groups[i / PAGES_A_GROUP];
        if (!*group)
            *group = arena_zalloc(a, sizeof **group);
        (*group)->pages[i % PAGES_A_GROUP] = copy_of(a, p, sizeof *p);
    }
    return s;
}

void allocation_restore(allocation *to, const allocation *s)
{
    size_t bits = bitmap_bytes(to->size);
    page *p;
    if (s->bytes)
        memcpy(to->bytes, s->bytes, (size_t)to->size);
    if (s->initialised)
        memcpy(to->initialised, s->initialised, bits);
    if (s->written)
        memcpy(to->written, s->written, bits);
    else if (to->written)
        memset(to->written, 0, bits);
    for (uint64_t i = 0; (p = next_page(to, &i)); i++) {
        const page *saved = page_at(s, i * PAGE_BYTES);
        if (saved) {
            *p = *saved;
            continue;
        }
        free(p);
        to->groups[i / PAGES_A_GROUP]->pages[i % PAGES_A_GROUP] = NULL;
    }
}

static uint64_t first_difference(const uint8_t *x, const uint8_t *y, uint64_t size)
{
    uint64_t i = memcmp(x, y, (size_t)size) == 0 ? size : 0;
    while (i < size && x[i] == y[i])
        i++;
    return i;
}

uint64_t allocation_first_change(const allocation *now, const allocation *s)
{
    const page *p;
    for (uint64_t i = 0; (p = next_page(now, &i)); i++) { /* pages of a pattern */
        uint64_t start = i * PAGE_BYTES;
        const page *saved = page_at(s, start);
        for (uint64_t j = 0; j < PAGE_BYTES && start + j < now->size; j++)
            if (p->bytes[j] !=
                (saved ? saved->bytes[j] : now->pattern[(start + j) % now->pattern_size]))
                return start + j;
    }
    uint64_t byte = s->bytes ? first_difference(now->bytes, s->bytes, now->size) : now->size;
    if (byte == now->size && s->initialised) {
        uint64_t bits = bitmap_bytes(now->size);
        uint64_t word = first_difference(now->initialised, s->initialised, bits);
        byte = word == bits || 8 * word > now->size ? now->size : 8 * word;
    }
    return byte;
}
