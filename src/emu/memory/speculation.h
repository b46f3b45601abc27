/* Blocks that run before their turn, on threads beside one another.
 *
 * While blocks run ahead, nothing changes device memory: a block keeps what it stores in pages of
 * its own, notes which bytes it has loaded, and all that it would tell others goes to its log.
 * When its turn comes, with all blocks before it done, rounds.c compares what it has loaded and
 * stored with what these have stored meanwhile. Where nothing of it depends on them the log is made
 * good, and memory, statistics and output are then what running the block at its turn would have
 * given. Atomic operations of which nobody reads what they found are done then. A block of which
 * this is not known, or that has met anything else than these and plain accesses (a fault, a
 * warning, another atomic operation on global memory, a fence), is abandoned, and runs again at
 * its turn with all checks. So what comes out never depends on the number of threads.
 *
 * Loads are noted byte by byte only in allocations that this launch stores to. The first store to
 * an allocation that blocks have loaded from abandons the storing block and makes it a tracked one.
 */
#ifndef PTXGEN_EMU_MEMORY_SPECULATION_H
#define PTXGEN_EMU_MEMORY_SPECULATION_H

#include "emu/machine.h"
#include "emu/memory/allocation.h"

enum { BLOCK_PAGE_BYTES = 256, BLOCK_PAGE_WORDS = BLOCK_PAGE_BYTES / 64 };

/* A bit for each byte of a page. */
typedef struct byte_set {
    uint64_t bits[BLOCK_PAGE_WORDS];
} byte_set;

/* The bits of a range that lies inside of one word of a set. */
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
    byte_set bytes;      /* that it has stored to */
    bool changed;        /* some of them more than once, with different values */
    unsigned shift;      /* a record is of 1 << shift bytes */
    grid_store *records; /* the last store to each record's bytes; NULL without a race check */
    uint8_t values[BLOCK_PAGE_BYTES];
} page_stores;

/* A page of an allocation that a block has touched. */
typedef struct block_page {
    allocation *of;
    uint64_t index; /* in units of BLOCK_PAGE_BYTES */
    byte_set loaded;
    page_stores *stores; /* NULL: none */
    byte_set *updates;   /* bytes of atomic operations; NULL: none */
} block_page;

/* Pages by allocation and index: of one block, or of all that a round of them has stored. */
typedef struct page_table {
    arena *arena, *slots_arena; /* of pages, and of slots */
    struct page_slot {
        uint64_t generation; /* any but the table's: empty */
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
    BLOCK_RUN_AHEAD, /* to its end */
} block_fate;

/* An atomic operation that is done when the block's turn comes; b and c: its operands. */
typedef struct atomic_update {
    const op *op;
    allocation *of;
    uint64_t address, b, c;
    grid_store store;
} atomic_update;

/* What a block that ran ahead has done. */
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

/* A region of an allocation that blocks have stored to. */
enum { STORED_REGION_BYTES = 4 << 20 };
typedef struct stored_region {
    allocation *of;
    uint64_t offset;
} stored_region;

/* Of a machine whose blocks run ahead. */
typedef struct speculation {
    arena *arena;    /* of logs: of a round of blocks */
    uint32_t launch; /* see allocation.tracked */
    page_table pages;
    block_page *recent;         /* the page that was asked for last, or NULL */
    block_log *log;             /* of the block that runs */
    VEC(stored_region) regions; /* of the round; a region may be there more than once */
    size_t bytes;               /* in the arena, about */
} speculation;

/* The arena has been reset. */
void speculation_begin_round(speculation *s);
void speculation_begin_block(speculation *s, block_log *log);

/* Notes loads inside of an allocation, by lanes or of one range. */
void speculation_load_lanes(speculation *s, allocation *of, const uint64_t *at, lane_mask mask,
                            unsigned size);
void speculation_load(speculation *s, allocation *of, uint64_t address, uint64_t size);

/* Defers an atomic operation. From now on the block may neither load nor store its bytes. */
void speculation_update(speculation *s, const atomic_update *u, unsigned size);

/* Returns true if a deferred operation concerns some of these bytes. */
bool speculation_updates(const speculation *s, const allocation *of, uint64_t address,
                         uint64_t size);

/* Returns true if the block has not stored to these bytes. */
bool speculation_sees_memory(const speculation *s, const allocation *of, uint64_t address,
                             uint64_t size);

/* Overlays bytes of memory with the block's stores. */
void speculation_overlay(const speculation *s, const allocation *of, uint64_t address,
                         uint8_t *bytes, unsigned size);

/* Returns true if all bytes have content, by the block's own stores or before. */
bool speculation_is_initialised(const speculation *s, const allocation *of, uint64_t address,
                                unsigned size);

/* Returns the block's stores to the page of an offset, with records of at most size bytes. */
page_stores *speculation_stores(speculation *s, allocation *of, uint64_t offset, unsigned size,
                                bool race_check);

void speculation_count_loaded(speculation *s, allocation *of, uint64_t bytes);
void speculation_print(speculation *s, const char *text, size_t length);

/* Abandons the running block, which is to run again at its turn. */
void speculation_end_block(machine *m);

/* The same at an instruction that depends on the order of blocks, as other blocks will reach it. */
void speculation_abandon(warp *w);

#endif
