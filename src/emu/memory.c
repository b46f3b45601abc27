#include "emu/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "emu/module.h"

enum { SLOT_LOG2 = 32, FIRST_SLOT = 0x7f00 };
#define GUARD_BYTES (UINT64_C(1) << 30)

typedef struct module_variables {
    const emu_module *module;
    uint64_t *addresses;
} module_variables;

struct emu_memory {
    arena *arena;
    VEC(allocation *) slots; /* the allocation a slot belongs to */
    VEC(module_variables) variables;
};

static void *allocate(size_t size)
{
    void *bytes = calloc(size ? size : 1, 1);
    if (!bytes)
        os_out_of_memory(size);
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

emu_memory *emu_memory_new(void)
{
    arena *a = arena_new();
    emu_memory *m = arena_zalloc(a, sizeof *m);
    m->arena = a;
    return m;
}

static uint64_t page_count(const allocation *a)
{
    return a->size / PAGE_BYTES + 1;
}

static void release(allocation *a)
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

void emu_memory_free(emu_memory *m)
{
    if (!m)
        return;
    const allocation *last = NULL;
    for (size_t i = 0; i < m->slots.count; i++) {
        allocation *a = m->slots.items[i];
        if (a != last && !a->freed)
            release(a);
        last = a;
    }
    arena_free(m->arena);
}

arena *memory_arena(emu_memory *m)
{
    return m->arena;
}

static allocation *add(emu_memory *m, uint64_t size)
{
    allocation *a = arena_zalloc(m->arena, sizeof *a);
    a->size = size;
    a->address = ((uint64_t)(m->slots.count + FIRST_SLOT) << SLOT_LOG2) + GUARD_BYTES;
    uint64_t slots = ((size + 2 * GUARD_BYTES) >> SLOT_LOG2) + 1;
    for (uint64_t i = 0; i < slots; i++)
        *VEC_PUSH(m->arena, &m->slots) = a;
    return a;
}

uint64_t emu_alloc(emu_memory *m, size_t size)
{
    allocation *a = add(m, size);
    a->bytes = allocate(size);
    a->initialised = allocate(bitmap_bytes(size));
    a->owned = true;
    return a->address;
}

uint64_t emu_map(emu_memory *m, void *bytes, size_t size, bool read_only)
{
    allocation *a = add(m, size);
    a->bytes = bytes;
    a->read_only = read_only;
    return a->address;
}

uint64_t emu_map_pattern(emu_memory *m, uint64_t virtual_size, const void *bytes, size_t size)
{
    allocation *a = add(m, virtual_size);
    a->pattern = (const uint8_t *)arena_copy(m->arena, bytes, size);
    a->pattern_size = size;
    a->pages = allocate((size_t)page_count(a) * sizeof(page *));
    return a->address;
}

allocation *memory_find(const emu_memory *m, uint64_t address)
{
    uint64_t slot = (address >> SLOT_LOG2) - FIRST_SLOT;
    return slot < m->slots.count ? m->slots.items[slot] : NULL;
}

static allocation *find_live(const emu_memory *m, uint64_t address, uint64_t size)
{
    allocation *a = memory_find(m, address);
    return a && !a->freed && allocation_holds(a, address, size) ? a : NULL;
}

bool emu_free(emu_memory *m, uint64_t address)
{
    allocation *a = find_live(m, address, 0);
    if (!a || a->address != address)
        return false;
    release(a);
    return true;
}

static page *make_page(allocation *a, uint64_t index)
{
    page *p = a->pages[index];
    if (!p) {
        p = a->pages[index] = allocate(sizeof *p);
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

void allocation_mark(allocation *a, uint64_t address, size_t size)
{
    if (!a->written)
        a->written = allocate(bitmap_bytes(a->size));
    set_bits(a->written, address - a->address, size);
    if (a->initialised)
        set_bits(a->initialised, address - a->address, size);
}

void allocation_write(allocation *a, uint64_t address, const void *bytes, size_t size)
{
    uint64_t offset = address - a->address;
    if (a->bytes) {
        memcpy(a->bytes + offset, bytes, size);
        allocation_mark(a, address, size);
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

bool emu_write(emu_memory *m, uint64_t address, const void *bytes, size_t size)
{
    allocation *a = find_live(m, address, size);
    if (a)
        allocation_write(a, address, bytes, size);
    return a;
}

bool emu_read(const emu_memory *m, uint64_t address, void *bytes, size_t size)
{
    const allocation *a = find_live(m, address, size);
    if (a)
        allocation_read(a, address, bytes, size);
    return a;
}

bool emu_written(const emu_memory *m, uint64_t address, size_t size)
{
    const allocation *a = find_live(m, address, size);
    if (!a)
        return false;
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

void emu_clear_written(emu_memory *m, uint64_t address)
{
    allocation *a = find_live(m, address, 0);
    if (!a)
        return;
    if (a->written)
        memset(a->written, 0, bitmap_bytes(a->size));
    for (uint64_t i = 0; a->pages && i < page_count(a); i++)
        if (a->pages[i])
            memset(a->pages[i]->written, 0, sizeof a->pages[i]->written);
}

const uint64_t *memory_variables(emu_memory *m, const emu_module *module)
{
    for (size_t i = 0; i < m->variables.count; i++)
        if (m->variables.items[i].module == module)
            return m->variables.items[i].addresses;
    size_t count = module->globals.count;
    uint64_t *addresses = arena_alloc(m->arena, (count + 1) * sizeof *addresses);
    for (size_t i = 0; i < count; i++) {
        const variable *v = module->globals.items[i];
        allocation *a = add(m, v->size);
        a->bytes = allocate((size_t)v->size);
        memcpy(a->bytes, v->bytes, (size_t)v->size);
        a->owned = true;
        a->read_only = v->space == SPACE_CONST;
        addresses[i] = a->address;
    }
    *VEC_PUSH(m->arena, &m->variables) = (module_variables){ module, addresses };
    return addresses;
}
