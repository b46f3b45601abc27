#include "emu/allocation.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(const allocation *a, size_t size)
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
    uint64_t end = first + count;
    while (first < end)
        if (first % 8 == 0 && end - first >= 8) {
            if (bits[first / 8] != 0xff)
                return false;
            first += 8;
        } else {
            if (!(bits[first / 8] >> first % 8 & 1))
                return false;
            first++;
        }
    return true;
}

uint8_t *allocation_bitmap(uint64_t size)
{
    return calloc(bitmap_bytes(size), 1);
}

static uint64_t page_count(const allocation *a)
{
    return a->size / PAGE_BYTES + 1;
}

void allocation_release(allocation *a)
{
    if (a->owned)
        free(a->bytes);
    free(a->initialised);
    free(a->written);
    for (uint64_t i = 0; a->pages && i < page_count(a); i++)
        free(a->pages[i]);
    free(a->pages);
    a->bytes = a->initialised = a->written = NULL;
    a->pages = NULL;
    a->freed = true;
}

struct page **allocation_pages(const allocation *a)
{
    return allocate(a, (size_t)page_count(a) * sizeof(page *));
}

static page *make_page(allocation *a, uint64_t index)
{
    page *p = a->pages[index];
    if (!p) {
        p = a->pages[index] = allocate(a, sizeof *p);
        for (uint64_t i = 0; i < PAGE_BYTES; i++)
            p->bytes[i] = a->pattern[(index * PAGE_BYTES + i) % a->pattern_size];
    }
    return p;
}

void allocation_read(const allocation *a, uint64_t address, void *bytes, size_t size)
{
    uint64_t offset = address - a->address;
    if (a->bytes) {
        memcpy(bytes, a->bytes + offset, size);
        return;
    }
    uint8_t *to = bytes;
    for (uint64_t i = offset; i < offset + size; i++) {
        const page *p = a->pages[i / PAGE_BYTES];
        *to++ = p ? p->bytes[i % PAGE_BYTES] : a->pattern[i % a->pattern_size];
    }
}

static void mark(allocation *a, uint64_t address, size_t size)
{
    if (!a->written)
        a->written = allocate(a, bitmap_bytes(a->size));
    set_bits(a->written, address - a->address, size);
    if (a->initialised)
        set_bits(a->initialised, address - a->address, size);
}

void allocation_write(allocation *a, uint64_t address, const void *bytes, size_t size)
{
    uint64_t offset = address - a->address;
    if (a->bytes) {
        memmove(a->bytes + offset, bytes, size);
        mark(a, address, size);
        return;
    }
    const uint8_t *from = bytes;
    for (uint64_t i = offset; i < offset + size; i++) {
        page *p = make_page(a, i / PAGE_BYTES);
        p->bytes[i % PAGE_BYTES] = *from++;
        set_bits(p->written, i % PAGE_BYTES, 1);
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
    uint8_t *have = allocate(to, bitmap_bytes(size));
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
    if (!a->pages)
        return size == 0 || (a->written && bits_set(a->written, offset, size));
    for (uint64_t i = offset; i < offset + size; i++) {
        const page *p = a->pages[i / PAGE_BYTES];
        if (!p || !bits_set(p->written, i % PAGE_BYTES, 1))
            return false;
    }
    return true;
}

void allocation_clear_written(allocation *a)
{
    if (a->written)
        memset(a->written, 0, bitmap_bytes(a->size));
    for (uint64_t i = 0; a->pages && i < page_count(a); i++)
        if (a->pages[i])
            memset(a->pages[i]->written, 0, sizeof a->pages[i]->written);
}
