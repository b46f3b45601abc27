/* Device memory: allocations in a fake 64-bit address space.
 *
 * Every allocation starts in a 4 GiB slot of its own and has at least 1 GiB of nothing on either
 * side, and slots are never used twice. So an address formed by wrong arithmetic, an offset that
 * wrapped at 2^32 or an address that was freed never lands in a live allocation, and finding the
 * allocation of an address is one lookup.
 */
#ifndef PTXGEN_EMU_MEMORY_MEMORY_H
#define PTXGEN_EMU_MEMORY_MEMORY_H

#include "emu/emu.h"
#include "emu/memory/allocation.h"

/* The allocation, live or freed, whose slots address lies in; or NULL. */
allocation *memory_find(const emu_memory *m, uint64_t address);

/* Returns the addresses of a module's variables, which are made on first use. */
const uint64_t *memory_variables(emu_memory *m, const emu_module *module);

/* malloc and free of kernels: 0 without memory, false for an address that is no live start. */
uint64_t memory_heap_alloc(emu_memory *m, uint64_t size);
bool memory_heap_free(emu_memory *m, uint64_t address);

struct entry;

/* Returns, for each line of an entry, a bit for each check that has warned there. */
uint8_t *memory_warned(emu_memory *m, const struct entry *e);

/* Returns the number of a new launch, from 1. */
uint32_t memory_begin_launch(emu_memory *m);

arena *memory_arena(emu_memory *m);

#endif
