/* Device memory: allocations in a fake 64-bit address space.
 *
 * Each allocation starts in its own 4 GiB slot with at least 1 GiB of guard zone on either side.
 * Slots are never reused. So a wrong address, an offset that overflowed at 2^32 or the address of
 * freed memory never hits a live allocation, and a lookup by address is one table access. */
#pragma once

#include <stdatomic.h>

#include "emu/module.h"

/* allocation.c: the bytes of an allocation and their state */

/* The last store to some bytes of global memory. */
typedef struct grid_store {
    uint32_t block; /* 1 for the first block that ran; 0 = no store in this launch */
    uint32_t time;
    uint32_t line; /* line of the PTX text */
    uint16_t thread;
    bool strong;
} grid_store;

typedef struct allocation {
    arena *arena; /* the memory's arena, which fails when the allocation cannot grow */
    uint64_t address, size;
    uint8_t *bytes;       /* NULL: a pattern */
    uint8_t *initialised; /* one bit per byte; NULL = all are */
    uint8_t *written;     /* one bit per byte written since emu_clear_written; NULL = none */
    const uint8_t *pattern;
    uint64_t pattern_size;
    struct page_group **groups; /* of a pattern: groups with written pages */
    struct grid_shadow *shadow; /* of the running launch, see grid_race.c; NULL = no store yet */
    uint64_t loaded;            /* bytes, see emu_loaded */
    /* Launch numbers (memory_begin_launch): the last launch whose speculative blocks noted their
     * loads by byte, and the last one whose speculative blocks loaded without noting. */
    uint32_t tracked;
    _Atomic uint32_t loaded_in;
    uint8_t *rights; /* of a reservation: an emu_access_right per granule */
    bool read_only, freed, owned, variable;
    bool aliased;  /* other allocations share some of its bytes */
    bool heap;     /* from a kernel's malloc; counts as a variable for the host */
    bool changing; /* see emu_set_changing */
} allocation;

enum { PAGE_BYTES = 1 << 16 };

typedef struct page {
    uint8_t bytes[PAGE_BYTES], written[PAGE_BYTES / 8];
} page;

enum { PAGES_A_GROUP = 1 << 14 };

typedef struct page_group {
    page *pages[PAGES_A_GROUP]; /* NULL: not written */
} page_group;

/* Returns true if size bytes inside a reservation may be loaded or stored. */
bool allocation_permits(const allocation *a, uint64_t address, uint64_t size, bool stores);

/* Returns true if size bytes at address lie inside a and are accessible. */
static inline bool allocation_holds(const allocation *a, uint64_t address, uint64_t size)
{
    return address - a->address <= a->size && size <= a->size - (address - a->address) &&
           (!a->rights || allocation_permits(a, address, size, false));
}

/* Frees the contents of an allocation. Its addresses stay known as freed. */
void allocation_release(allocation *a);

/* Returns a pointer to bytes of an allocation if they are contiguous in host memory, or NULL. */
const uint8_t *allocation_piece(const allocation *a, uint64_t address, uint64_t size);

void allocation_read(const allocation *a, uint64_t address, void *bytes, size_t size);
void allocation_write(allocation *a, uint64_t address, const void *bytes, size_t size);
bool allocation_is_initialised(const allocation *a, uint64_t address, size_t size);

/* Prepares for concurrent writes to different multiples of 8 bytes. Returns false for a pattern. */
bool allocation_share(allocation *a);

/* Copies bytes and their initialised bits, which to must have. Ranges may overlap. */
void allocation_copy(allocation *to, uint64_t address, const allocation *from,
                     uint64_t from_address, size_t size);

bool allocation_is_written(const allocation *a, uint64_t address, size_t size);
void allocation_clear_written(allocation *a);

/* See emu_next_written. */
uint64_t allocation_next_written(const allocation *a, uint64_t offset);

/* Copy an allocation with its contents, and restore the contents. */
allocation *allocation_save(arena *a, const allocation *of);
void allocation_restore(allocation *to, const allocation *saved);

/* Returns the first offset whose contents have changed, or the allocation's size. */
uint64_t allocation_first_change(const allocation *now, const allocation *saved);

/* Returns a bitmap of one zero bit per byte, or NULL if out of memory. */
uint8_t *allocation_bitmap(uint64_t size);

/* Returns the page table of a pattern. */
page_group **allocation_groups(const allocation *a);

/* memory.c */

/* Returns the live or freed allocation whose slots contain an address, or NULL. */
allocation *memory_find(const emu_memory *m, uint64_t address);

/* Returns the addresses of a module's variables, which are created on first use. */
const uint64_t *memory_variables(emu_memory *m, const emu_module *module);

/* Implements malloc of kernels. Returns 0 if size is 0 or out of memory. */
uint64_t memory_heap_alloc(emu_memory *m, uint64_t size);

/* Implements free of kernels. Returns false unless address is a live allocation of malloc. */
bool memory_heap_free(emu_memory *m, uint64_t address);

/* Returns, per PTX line of an entry, a mask of checks that have warned. */
uint8_t *memory_warned(emu_memory *m, const entry *e);

/* Returns the number of a new launch, from 1. */
uint32_t memory_begin_launch(emu_memory *m);

arena *memory_arena(emu_memory *m);
