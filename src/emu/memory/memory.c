#include "emu/memory/allocation.h"

#include <stdlib.h>

/* Slots start above all host addresses, so that no device address is also a host address. */
enum { SLOT_LOG2 = 32, FIRST_SLOT = 0x10000 };
#define GUARD_BYTES (UINT64_C(1) << 30)
#define MOST_BYTES  (UINT64_C(1) << 44)

typedef struct module_variables {
    const emu_module *module; /* NULL: forgotten */
    size_t count;             /* variables that exist; fewer than the module's if memory ran out */
    uint64_t *addresses;
} module_variables;

typedef struct warned_lines {
    const entry *entry; /* NULL: forgotten, or not created because memory ran out */
    arena *arena;       /* NULL: none yet */
    uint8_t *lines;     /* in arena */
} warned_lines;

struct emu_memory {
    arena *arena;
    VEC(allocation *) slots; /* the allocation that owns each slot */
    VEC(allocation *) here;  /* allocations at host addresses; NULL: freed */
    VEC(module_variables) variables;
    VEC(warned_lines) warned;
    uint32_t launches;
};

/* Finds the next live allocation from an index on. Returns false if there is none. */
static bool next_allocation(const emu_memory *m, size_t *at, allocation **found)
{
    for (; *at < m->slots.count + m->here.count; ++*at) {
        bool here = *at >= m->slots.count;
        *found = here ? m->here.items[*at - m->slots.count] : m->slots.items[*at];
        if (*found && !(*found)->freed && (here || !*at || m->slots.items[*at - 1] != *found))
            return true;
    }
    return false;
}

emu_memory *emu_memory_new(arena *parent)
{
    arena *a = arena_new_in(parent);
    emu_memory *m = arena_zalloc(a, sizeof *m);
    m->arena = a;
    return m;
}

void emu_memory_free(emu_memory *m)
{
    if (!m)
        return;
    allocation *a;
    for (size_t i = 0; next_allocation(m, &i, &a); i++)
        allocation_release(a);
    arena_free(m->arena);
}

uint32_t memory_begin_launch(emu_memory *m)
{
    return ++m->launches;
}

arena *memory_arena(emu_memory *m)
{
    return m->arena;
}

/* Adds an allocation, which counts as freed until it has bytes. */
static allocation *add_allocation(emu_memory *m, uint64_t size)
{
    allocation *a = arena_zalloc(m->arena, sizeof *a);
    a->arena = m->arena;
    a->freed = true;
    a->size = size;
    a->address = ((uint64_t)(m->slots.count + FIRST_SLOT) << SLOT_LOG2) + GUARD_BYTES;
    uint64_t slots = ((size + 2 * GUARD_BYTES) >> SLOT_LOG2) + 1;
    for (uint64_t i = 0; i < slots; i++)
        *VEC_PUSH(m->arena, &m->slots) = a;
    return a;
}

uint64_t emu_alloc(emu_memory *m, size_t size)
{
    if (size > MOST_BYTES)
        return 0;
    allocation *a = add_allocation(m, size);
    a->bytes = calloc(size ? size : 1, 1);
    a->initialised = allocation_bitmap(size);
    a->written = allocation_bitmap(size);
    a->owned = true;
    if (!a->bytes || !a->initialised || !a->written) {
        allocation_release(a);
        return 0;
    }
    a->freed = false;
    return a->address;
}

uint64_t emu_alloc_sparse(emu_memory *m, uint64_t size)
{
    static const uint8_t zero = 0;
    return emu_map_pattern(m, size, &zero, sizeof zero, false);
}

static void note_aliases(const emu_memory *m, allocation *a)
{
    uintptr_t first = (uintptr_t)a->bytes;
    allocation *b;
    for (size_t i = 0; next_allocation(m, &i, &b); i++)
        if (b != a && b->bytes && !b->owned && first < (uintptr_t)b->bytes + b->size &&
            (uintptr_t)b->bytes < first + a->size)
            a->aliased = b->aliased = true;
}

uint64_t emu_map(emu_memory *m, void *bytes, size_t size, bool read_only)
{
    allocation *a = add_allocation(m, size);
    a->bytes = bytes;
    a->read_only = read_only;
    a->freed = false;
    note_aliases(m, a);
    return a->address;
}

uint64_t emu_map_here(emu_memory *m, void *bytes, size_t size)
{
    allocation **place = NULL;
    for (size_t i = 0; i < m->here.count && !place; i++)
        place = m->here.items[i] ? NULL : &m->here.items[i];
    if (!place) {
        place = VEC_PUSH(m->arena, &m->here);
        *place = NULL;
    }
    allocation *a = arena_zalloc(m->arena, sizeof *a);
    *a = (allocation){
        .arena = m->arena, .address = (uintptr_t)bytes, .size = size, .bytes = bytes
    };
    *place = a;
    note_aliases(m, a);
    return a->address;
}

uint64_t emu_reserve(emu_memory *m, void *bytes, size_t size)
{
    if (size > MOST_BYTES)
        return 0;
    allocation *a = add_allocation(m, size);
    a->rights = calloc(size / EMU_GRANULE + 1, 1);
    if (!a->rights)
        return 0;
    a->bytes = bytes;
    a->freed = false;
    return a->address;
}

bool emu_set_access(emu_memory *m, uint64_t address, uint64_t size, emu_access_right right)
{
    allocation *a = memory_find(m, address);
    uint64_t offset = a ? address - a->address : 0;
    if (!a || !a->rights || offset > a->size || size > a->size - offset ||
        (offset | size) % EMU_GRANULE)
        return false;
    memset(a->rights + offset / EMU_GRANULE, (int)right, (size_t)(size / EMU_GRANULE));
    return true;
}

uint64_t emu_map_pattern(emu_memory *m, uint64_t virtual_size, const void *bytes, size_t size,
                         bool read_only)
{
    allocation *a = add_allocation(m, virtual_size);
    a->read_only = read_only;
    a->pattern = bytes;
    a->pattern_size = size;
    a->groups = allocation_groups(a);
    a->freed = false;
    return a->address;
}

allocation *memory_find(const emu_memory *m, uint64_t address)
{
    uint64_t slot = (address >> SLOT_LOG2) - FIRST_SLOT;
    if (slot < m->slots.count)
        return m->slots.items[slot];
    for (size_t i = 0; i < m->here.count; i++)
        if (m->here.items[i] && address - m->here.items[i]->address < m->here.items[i]->size)
            return m->here.items[i];
    return NULL;
}

static allocation *find_live(const emu_memory *m, uint64_t address, uint64_t size)
{
    allocation *a = memory_find(m, address);
    return a && !a->freed && allocation_holds(a, address, size) ? a : NULL;
}

bool emu_free(emu_memory *m, uint64_t address)
{
    allocation *a = memory_find(m, address);
    if (!a || a->freed || a->address != address || a->variable)
        return false;
    allocation_release(a);
    for (size_t i = 0; i < m->here.count; i++)
        if (m->here.items[i] == a) /* the host may reuse its address */
            m->here.items[i] = NULL;
    return true;
}

uint64_t memory_heap_alloc(emu_memory *m, uint64_t size)
{
    uint64_t address = size ? emu_alloc(m, size) : 0;
    if (address) {
        allocation *a = memory_find(m, address);
        a->variable = a->heap = true;
    }
    return address;
}

bool memory_heap_free(emu_memory *m, uint64_t address)
{
    allocation *a = find_live(m, address, 0);
    if (!a || a->address != address || !a->heap)
        return false;
    allocation_release(a);
    return true;
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

bool emu_fill(emu_memory *m, uint64_t address, const void *element, size_t element_size,
              uint64_t count)
{
    uint8_t chunk[4096];
    allocation *a = find_live(m, address, 0);
    if (element_size == 0 || element_size > sizeof chunk || !a ||
        count > (a->size - (address - a->address)) / element_size ||
        !allocation_holds(a, address, count * element_size))
        return false;
    size_t whole = sizeof chunk / element_size * element_size;
    for (size_t at = 0; at < whole; at += element_size)
        memcpy(chunk + at, element, element_size);
    for (uint64_t left = count * element_size, part; left; left -= part, address += part) {
        part = left < whole ? left : whole;
        allocation_write(a, address, chunk, (size_t)part);
    }
    return true;
}

bool emu_copy(emu_memory *m, uint64_t to, uint64_t from, size_t size)
{
    const allocation *source = find_live(m, from, size);
    allocation *target = find_live(m, to, size);
    if (!source || !target)
        return false;
    if (target->initialised && !allocation_is_initialised(source, from, size)) {
        allocation_copy(target, to, source, from, size);
        return true;
    }
    arena *a = source->bytes ? NULL : arena_new();
    uint8_t *bytes =
        source->bytes ? source->bytes + (from - source->address) : arena_alloc(a, size);
    if (!source->bytes)
        allocation_read(source, from, bytes, size);
    allocation_write(target, to, bytes, size);
    if (a)
        arena_free(a);
    return true;
}

bool emu_written(const emu_memory *m, uint64_t address, size_t size)
{
    const allocation *a = find_live(m, address, size);
    return a && allocation_is_written(a, address, size);
}

void emu_clear_written(emu_memory *m, uint64_t address)
{
    allocation *a = find_live(m, address, 0);
    if (a)
        allocation_clear_written(a);
}

void emu_set_changing(emu_memory *m, uint64_t address, bool changing)
{
    allocation *a = find_live(m, address, 0);
    if (a)
        a->changing = changing;
}

uint64_t emu_loaded(const emu_memory *m, uint64_t address)
{
    const allocation *a = find_live(m, address, 0);
    return a ? a->loaded : 0;
}

uint64_t emu_next_written(const emu_memory *m, uint64_t address, uint64_t offset)
{
    const allocation *a = find_live(m, address, 0);
    return a ? allocation_next_written(a, offset) : 0;
}

bool emu_initialised(const emu_memory *m, uint64_t address, size_t size)
{
    const allocation *a = find_live(m, address, size);
    return a && allocation_is_initialised(a, address, size);
}

struct emu_snapshot {
    size_t count;        /* number of slots */
    allocation **states; /* copy of the allocation that begins in each slot, or NULL */
};

/* Returns the writable allocation that begins in a slot, or NULL. */
static allocation *writable_at(const emu_memory *m, size_t slot)
{
    allocation *a = m->slots.items[slot];
    bool begins = !slot || m->slots.items[slot - 1] != a;
    return begins && !a->freed && !a->read_only ? a : NULL;
}

emu_snapshot *emu_snapshot_new(arena *a, const emu_memory *m)
{
    emu_snapshot *s = arena_zalloc(a, sizeof *s);
    s->count = m->slots.count;
    s->states = arena_zalloc(a, (s->count + 1) * sizeof *s->states);
    for (size_t i = 0; i < s->count; i++) {
        const allocation *of = writable_at(m, i);
        s->states[i] = of ? allocation_save(a, of) : NULL;
    }
    return s;
}

void emu_snapshot_restore(const emu_snapshot *s, emu_memory *m)
{
    for (size_t i = 0; i < s->count; i++) {
        allocation *to = s->states[i] ? writable_at(m, i) : NULL;
        if (to)
            allocation_restore(to, s->states[i]);
    }
}

bool emu_snapshot_differs(const emu_snapshot *s, const emu_memory *m, uint64_t *address)
{
    for (size_t i = 0; i < s->count; i++) {
        const allocation *a = s->states[i] ? writable_at(m, i) : NULL;
        uint64_t offset = a ? allocation_first_change(a, s->states[i]) : 0;
        if (a && offset < a->size) {
            *address = a->address + offset;
            return true;
        }
    }
    return false;
}

static emu_allocation describe_allocation(const allocation *a)
{
    return (emu_allocation){
        .address = a->address, .size = a->size, .freed = a->freed, .variable = a->variable
    };
}

bool emu_find(const emu_memory *m, uint64_t address, emu_allocation *found)
{
    const allocation *a = memory_find(m, address);
    if (a)
        *found = describe_allocation(a);
    return a;
}

size_t emu_live(const emu_memory *m, emu_allocation *list, size_t room, uint64_t *total)
{
    size_t count = 0;
    uint64_t bytes = 0;
    allocation *a;
    for (size_t i = 0; next_allocation(m, &i, &a); i++) {
        if (a->variable || a->rights)
            continue;
        if (count < room)
            list[count] = describe_allocation(a);
        count++;
        bytes += a->size;
    }
    if (total)
        *total = bytes;
    return count;
}

static module_variables *find_variables(const emu_memory *m, const emu_module *module)
{
    for (size_t i = 0; i < m->variables.count; i++)
        if (m->variables.items[i].module == module)
            return &m->variables.items[i];
    return NULL;
}

const uint64_t *memory_variables(emu_memory *m, const emu_module *module)
{
    size_t count = module->globals.count;
    module_variables *known = find_variables(m, module);
    if (!known) {
        uint64_t *addresses = arena_alloc(m->arena, (count + 1) * sizeof *addresses);
        known = VEC_PUSH(m->arena, &m->variables);
        *known = (module_variables){ module, 0, addresses };
    }
    bool complete = known->count == count;
    for (; known->count < count; known->count++) {
        const variable *v = module->globals.items[known->count];
        uint64_t address = emu_alloc(m, (size_t)v->size);
        if (!address)
            arena_exhausted(m->arena, (size_t)v->size);
        allocation *a = memory_find(m, address);
        allocation_write(a, address, v->bytes, (size_t)v->size);
        a->read_only = v->space == SPACE_CONST;
        a->variable = true;
        known->addresses[known->count] = address;
    }
    for (size_t i = 0; !complete && i < module->relocations.count; i++) {
        const relocation *r = &module->relocations.items[i];
        uint64_t to = known->addresses[r->in->index] + r->offset;
        uint64_t value = (known->addresses[r->base->index] + r->addend) >> r->shift;
        allocation_write(memory_find(m, to), to, &value, r->size);
    }
    return known->addresses;
}

void emu_module_place(emu_memory *m, const emu_module *module)
{
    memory_variables(m, module);
}

bool emu_variable(emu_memory *m, const emu_module *module, const char *name, uint64_t *address,
                  size_t *size)
{
    size_t number = name_map_find(&module->global_numbers, name);
    if (number >= module->globals.count)
        return false;
    *address = memory_variables(m, module)[number];
    *size = (size_t)module->globals.items[number]->size;
    return true;
}

uint8_t *memory_warned(emu_memory *m, const entry *e)
{
    warned_lines *place = NULL;
    uint32_t last = 0;
    for (size_t i = 0; i < m->warned.count; i++)
        if (m->warned.items[i].entry == e)
            return m->warned.items[i].lines;
        else if (!m->warned.items[i].entry)
            place = &m->warned.items[i];
    for (size_t i = 0; i < e->ops.count; i++)
        last = e->ops.items[i].line > last ? e->ops.items[i].line : last;
    if (!place) {
        place = VEC_PUSH(m->arena, &m->warned);
        *place = (warned_lines){ 0 };
    }
    if (!place->arena)
        place->arena = arena_new_in(m->arena);
    place->lines = arena_zalloc(place->arena, last + 1);
    place->entry = e;
    return place->lines;
}

void emu_module_forget(emu_memory *m, const emu_module *module)
{
    for (size_t i = 0; i < m->warned.count; i++)
        for (size_t j = 0; j < module->entries.count; j++)
            if (m->warned.items[i].entry == module->entries.items[j]) {
                arena_free(m->warned.items[i].arena);
                m->warned.items[i] = (warned_lines){ 0 };
            }
    module_variables *known = find_variables(m, module);
    for (size_t i = 0; known && i < known->count; i++)
        allocation_release(memory_find(m, known->addresses[i]));
    if (known)
        known->module = NULL;
}
