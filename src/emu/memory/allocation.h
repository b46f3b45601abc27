/* Device memory: allocations in a fake 64-bit address space.
 *
 * Every allocation starts in a 4 GiB slot of its own and has at least 1 GiB of nothing on either
 * side, and slots are never used twice. So an address formed by wrong arithmetic, an offset that
 * wrapped at 2^32 or an address that was freed never lands in a live allocation, and finding the
 * allocation of an address is one lookup.
 */
#ifndef PTXGEN_EMU_MEMORY_ALLOCATION_H
#define PTXGEN_EMU_MEMORY_ALLOCATION_H

#include <stdatomic.h>

#include "emu/module.h"

/* allocation.c: the bytes of an allocation, and which of them have been written */

/* The last store to some bytes of global memory. */
typedef struct grid_store {
    uint32_t block; /* 1 for the first block that ran; 0: no store in this launch */
    uint32_t time;
    uint32_t line; /* of the PTX text */
    uint16_t thread;
    bool strong;
} grid_store;

typedef struct allocation {
    arena *arena; /* of the memory, which fails when this cannot grow */
    uint64_t address, size;
    uint8_t *bytes;       /* NULL: a pattern */
    uint8_t *initialised; /* a bit a byte, or NULL: all are */
    uint8_t *written;     /* a bit a byte since emu_clear_written; NULL: none */
    const uint8_t *pattern;
    uint64_t pattern_size;
    struct page_group **groups; /* of a pattern: those with pages that were written */
    struct grid_shadow *shadow; /* of the launch that runs, see grid_race.c; NULL: no store yet */
    uint64_t loaded;            /* bytes, see emu_loaded */
    /* Numbers of launches, see memory_begin_launch: the last one that blocks ran before their
     * turn in which noted what they load of it, and which loaded from it without that. */
    uint32_t tracked;
    _Atomic uint32_t loaded_in;
    uint8_t *rights; /* of a reservation: an emu_access_right for each granule */
    bool read_only, freed, owned, variable;
    bool aliased;  /* other allocations have some of its bytes, too */
    bool heap;     /* a kernel's own; it counts as a variable for everybody else */
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

/* Returns true if size bytes inside of a reservation may be loaded or stored. */
bool allocation_permits(const allocation *a, uint64_t address, uint64_t size, bool stores);

/* Returns true if size bytes at address are inside of a, and there. */
static inline bool allocation_holds(const allocation *a, uint64_t address, uint64_t size)
{
    return address - a->address <= a->size && size <= a->size - (address - a->address) &&
           (!a->rights || allocation_permits(a, address, size, false));
}

/* Frees what an allocation holds; its addresses stay known as freed. */
void allocation_release(allocation *a);

/* Returns bytes inside if they are in one piece, else NULL. */
const uint8_t *allocation_piece(const allocation *a, uint64_t address, uint64_t size);

/* Read and write inside. */
void allocation_read(const allocation *a, uint64_t address, void *bytes, size_t size);
void allocation_write(allocation *a, uint64_t address, const void *bytes, size_t size);
bool allocation_is_initialised(const allocation *a, uint64_t address, size_t size);

/* Prepares for threads that write to different multiples of 8 bytes at the same time. False: the
 * allocation is a pattern. */
bool allocation_share(allocation *a);

/* Copies bytes, and which are initialised. to has initialised bits. The two may overlap. */
void allocation_copy(allocation *to, uint64_t address, const allocation *from,
                     uint64_t from_address, size_t size);

bool allocation_is_written(const allocation *a, uint64_t address, size_t size);
void allocation_clear_written(allocation *a);

/* See emu_next_written. */
uint64_t allocation_next_written(const allocation *a, uint64_t offset);

/* Copies an allocation with its content, and puts the content back. */
allocation *allocation_save(arena *a, const allocation *of);
void allocation_restore(allocation *to, const allocation *saved);

/* The first offset at which its content has changed, or the allocation's size. */
uint64_t allocation_first_change(const allocation *now, const allocation *saved);

/* Returns a bit a byte, all 0, or NULL if there is no memory. */
uint8_t *allocation_bitmap(uint64_t size);

/* Returns room for the pages of a pattern. */
page_group **allocation_groups(const allocation *a);

/* memory.c */

/* The allocation, live or freed, whose slots address lies in; or NULL. */
allocation *memory_find(const emu_memory *m, uint64_t address);

/* Returns the addresses of a module's variables, which are made on first use. */
const uint64_t *memory_variables(emu_memory *m, const emu_module *module);

/* malloc and free of kernels: 0 without memory, false for an address that is no live start. */
uint64_t memory_heap_alloc(emu_memory *m, uint64_t size);
bool memory_heap_free(emu_memory *m, uint64_t address);

/* Returns, for each line of an entry, a bit for each check that has warned there. */
uint8_t *memory_warned(emu_memory *m, const entry *e);

/* Returns the number of a new launch, from 1. */
uint32_t memory_begin_launch(emu_memory *m);

arena *memory_arena(emu_memory *m);

#endif
