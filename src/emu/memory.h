/* Device memory: allocations in a fake 64-bit address space.
 *
 * Every allocation starts in a 4 GiB slot of its own and has at least 1 GiB of nothing on either
 * side, and slots are never used twice. So an address formed by wrong arithmetic, an offset that
 * wrapped at 2^32 or an address that was freed never lands in a live allocation, and finding the
 * allocation of an address is one lookup.
 */
#ifndef PTXGEN_EMU_MEMORY_H
#define PTXGEN_EMU_MEMORY_H

#include "emu/emu.h"

typedef struct allocation {
    uint64_t address, size;
    uint8_t *bytes;       /* NULL: a pattern */
    uint8_t *initialised; /* a bit a byte, or NULL: all are */
    uint8_t *written;     /* a bit a byte since emu_clear_written; NULL before the first */
    const uint8_t *pattern;
    uint64_t pattern_size;
    struct page **pages;        /* of a pattern: those that were written */
    struct grid_shadow *shadow; /* of the launch that runs, see grid_race.h; NULL: no store yet */
    bool read_only, freed, owned, variable;
} allocation;

enum { PAGE_BYTES = 1 << 16 };

typedef struct page {
    uint8_t bytes[PAGE_BYTES], written[PAGE_BYTES / 8];
} page;

/* The allocation whose slots address lies in, freed ones too, or NULL. The address need not be
 * inside of it. */
allocation *memory_find(const emu_memory *m, uint64_t address);

/* Whether size bytes at address are inside of a. */
static inline bool allocation_holds(const allocation *a, uint64_t address, uint64_t size)
{
    return address - a->address <= a->size && size <= a->size - (address - a->address);
}

/* Gives back what an allocation holds; its addresses stay known as freed. */
void allocation_release(allocation *a);

/* Reads and writes that are known to be inside. */
void allocation_read(const allocation *a, uint64_t address, void *bytes, size_t size);
void allocation_write(allocation *a, uint64_t address, const void *bytes, size_t size);
bool allocation_is_initialised(const allocation *a, uint64_t address, size_t size);

/* Copies bytes together with which of them are initialised, which not all of from are; to keeps
 * account of its own. The two may overlap. */
void allocation_copy(allocation *to, uint64_t address, const allocation *from,
                     uint64_t from_address, size_t size);

bool allocation_is_written(const allocation *a, uint64_t address, size_t size);
void allocation_clear_written(allocation *a);

/* Room for a bit a byte, all 0, and for the pages of a pattern, none of them there yet. */
uint8_t *allocation_bitmap(uint64_t size);
struct page **allocation_pages(uint64_t size);

/* The addresses of a module's variables of global and constant memory, which come into being when
 * they are first asked for. */
const uint64_t *memory_variables(emu_memory *m, const emu_module *module);

arena *memory_arena(emu_memory *m);

#endif
