/* Speculative blocks: they run on several threads before preceding blocks have finished.
 *
 * Speculative blocks do not change device memory. A block keeps its stores in private pages,
 * records which bytes it loads, and writes all other effects to its log. After all earlier blocks,
 * rounds.c compares these loads and stores with what the earlier blocks stored meanwhile. An
 * independent block commits its log. Memory, statistics and output are then as if the block had run
 * in order. Atomic operations whose results are never read are deferred to the commit.
 *
 * All other blocks are abandoned and run again in order with all checks: blocks that may depend on
 * earlier ones, and blocks that met a fault, a warning, another atomic operation on global memory
 * or a fence. So results never depend on the number of threads.
 *
 * Loads are recorded by byte only in tracked allocations: those that the launch stores to. The
 * first store to an allocation that blocks have loaded abandons the storing block and tracks it. */
#pragma once

#include "emu/machine.h"
#include "emu/memory/allocation.h"

enum { BLOCK_PAGE_BYTES = 256, BLOCK_PAGE_WORDS = BLOCK_PAGE_BYTES / 64 };

/* One bit per byte of a page. */
typedef struct byte_set {
    uint64_t bits[BLOCK_PAGE_WORDS];
} byte_set;

/* Returns the bits of a range inside one word of a set. */
static inline uint64_t byte_set_bits(unsigned first, unsigned count)
{
    return (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << first % 64;
}

static inline void byte_set_add(byte_set *s, unsigned first, unsigned count)
{
    for (unsigned part; count; first += part, count -= part) {
        part = 64 - first % 64 < count ? 64 - first % 64 : count;
        s->bits[first / 64] |= byte_set_bits(first, part);
    }
}

static inline bool byte_set_has(const byte_set *s, unsigned byte)
{
    return s->bits[byte / 64] >> byte % 64 & 1;
}

static inline bool byte_set_has_some(const byte_set *s, unsigned first, unsigned count)
{
    uint64_t found = 0;
    for (unsigned part; count; first += part, count -= part) {
        part = 64 - first % 64 < count ? 64 - first % 64 : count;
        found |= s->bits[first / 64] & byte_set_bits(first, part);
    }
    return found;
}

/* A block's stores to a page. */
typedef struct page_stores {
    byte_set bytes;      /* bytes that it has stored */
    bool changed;        /* some bytes were stored more than once, with different values */
    unsigned shift;      /* log2 of the bytes per record */
    grid_store *records; /* last store to each record's bytes; NULL without a race check */
    uint8_t values[BLOCK_PAGE_BYTES];
} page_stores;

typedef struct block_page {
    allocation *of;
    uint64_t index; /* in units of BLOCK_PAGE_BYTES */
    byte_set loaded;
    page_stores *stores; /* NULL: none */
    byte_set *updates;   /* bytes of deferred atomic operations; NULL: none */
} block_page;

/* A hash table of pages by allocation and index: of one block, or of all stores of a round. */
typedef struct page_table {
    arena *arena, *slots_arena; /* of pages; of slots */
    struct page_slot {
        uint64_t generation; /* empty unless equal to the table's */
        block_page *page;
    } * slots;
    size_t capacity, count;
    uint64_t generation;
} page_table;

void page_table_clear(page_table *t);
block_page *page_table_find(const page_table *t, const allocation *of, uint64_t index);
block_page *page_table_get(page_table *t, allocation *of, uint64_t index);

/* Bytes of an allocation that a block has loaded, as emu_loaded counts them. */
typedef struct loaded_bytes {
    allocation *of;
    uint64_t bytes;
} loaded_bytes;

typedef struct printed_text {
    const char *text;
    size_t length;
} printed_text;

typedef enum block_fate {
    BLOCK_NOT_BEGUN,
    BLOCK_ABANDONED,
    BLOCK_SPECULATED, /* ran to its end */
} block_fate;

/* An atomic operation that is deferred to the block's commit; b and c: its operands. */
typedef struct atomic_update {
    const op *op;
    allocation *of;
    uint64_t address, b, c;
    grid_store store;
} atomic_update;

typedef struct block_log {
    block_fate fate;
    bool ordered; /* abandoned at an instruction that depends on the order of blocks */
    uint64_t instructions;
    emu_stats stats;
    VEC(block_page *) pages;
    VEC(atomic_update) updates;
    VEC(loaded_bytes) loaded;
    VEC(printed_text) prints;
} block_log;

/* A region of an allocation with stores by speculative blocks. */
enum { STORED_REGION_BYTES = 4 << 20 };
typedef struct stored_region {
    allocation *of;
    uint64_t offset;
} stored_region;

typedef struct speculation {
    arena *arena;    /* of logs; reset every round */
    uint32_t launch; /* launch number, see allocation.tracked */
    page_table pages;
    block_page *recent;         /* page of the last lookup, or NULL */
    block_log *log;             /* log of the running block */
    VEC(stored_region) regions; /* of the round; may contain duplicates */
    size_t bytes;               /* approximate bytes in the arena */
} speculation;

/* Begin a round, whose arena has been reset, and a block. */
void speculation_begin_round(speculation *s);
void speculation_begin_block(speculation *s, block_log *log);

/* Note loads inside an allocation: by lanes, or of one range. */
void speculation_load_lanes(speculation *s, allocation *of, const uint64_t *at, lane_mask mask,
                            unsigned size);
void speculation_load(speculation *s, allocation *of, uint64_t address, uint64_t size);

/* Defers an atomic operation. The block may neither load nor store its bytes afterwards. */
void speculation_update(speculation *s, const atomic_update *u, unsigned size);

/* Returns true if a deferred operation touches some of these bytes. */
bool speculation_updates(const speculation *s, const allocation *of, uint64_t address,
                         uint64_t size);

/* Returns true if the block has neither stored nor updated these bytes. */
bool speculation_sees_memory(const speculation *s, const allocation *of, uint64_t address,
                             uint64_t size);

/* Overlays bytes of memory with the block's stores. */
void speculation_overlay(const speculation *s, const allocation *of, uint64_t address,
                         uint8_t *bytes, unsigned size);

/* Returns true if all bytes are initialised, in memory or by the block's own stores. */
bool speculation_is_initialised(const speculation *s, const allocation *of, uint64_t address,
                                unsigned size);

/* Returns the block's stores to the page of an offset, with records of at most size bytes. */
page_stores *speculation_stores(speculation *s, allocation *of, uint64_t offset, unsigned size,
                                bool race_check);

void speculation_count_loaded(speculation *s, allocation *of, uint64_t bytes);
void speculation_print(speculation *s, const char *text, size_t length);

/* Abandons the running block, which then runs again in order. */
void speculation_end_block(machine *m);

/* Abandons a block that depends on the order of blocks. The launch ends its rounds. */
void speculation_abandon(warp *w);
