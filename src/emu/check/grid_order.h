/* Causality order between the blocks of a launch: which stores have been released and acquired.
 *
 * The order is the causality order of the PTX ISA's memory consistency model, restricted to
 * synchronisation of blocks through global memory at .gpu or .sys scope:
 * - A release pattern is a store or an atomic operation with .release or .acq_rel, or a fence
 *   followed by a strong store or atomic operation (atomic, .relaxed or .volatile). It covers what
 *   its thread did before, and what other threads of the block did before a barrier in between.
 *   With a fence, it covers what came before the fence.
 * - An acquire pattern is a load or an atomic operation with .acquire or .acq_rel, or a strong one
 *   followed by a fence. It holds for its thread, and for other threads after a barrier.
 * - A release synchronises with an acquire that reads the word it stored, or a value that atomic
 *   operations have since made of it. The release and these operations are a release sequence.
 * - Causality is transitive: a release also covers what its thread has acquired before.
 *
 * In three points this is more relaxed than the PTX ISA. CUDA's own examples of counting blocks
 * need the first two:
 * - The fence of a pattern may come from another thread of the block, with a barrier in between.
 * - An atomic operation that follows a fence of the same thread is an acquire, too.
 * - Release and acquire may differ in size if their bytes overlap.
 *
 * In one point this is as strict as the PTX ISA, and CUDA's examples are not. The plain load before
 * a loop of atom.cas, which reads the first expected value, races with atomic operations of other
 * blocks. A load with .relaxed or .volatile does not.
 *
 * An example of the records: two blocks of 64 threads. Thread 40 of each block stores to
 * partial[block], all threads meet at a barrier, and thread 0 executes a fence and adds 1 to done.
 * The second block then has another barrier, and its thread 40 loads partial[0]. In the times of
 * shared_race.h, the first block begins at 5, the barrier starts 6, and the fence 7.
 *
 *     block 1, thread 40 stores     grid_store of partial[0]: block 1, thread 40, time 5
 *              thread 0's fence     grid_release F: warp 0, lanes 0x1, time 6; its grid_view covers
 *                                   accesses before 6 of warps 0 and 1
 *              thread 0 adds        release_sequence S of done: [F]
 *     block 2, thread 0's fence     grid_release G, like F
 *              thread 0 adds        grid_acquire A: the first 1 releases of S; S becomes [F, G]
 *              thread 40 loads      is the store to partial[0] ordered before?
 *
 * The barrier makes A visible to thread 40. A leads to F, and F is of the store's block. F's view
 * covers the store, since 5 is before 6, so the store is ordered before the load. A store after the
 * barrier would have time 6. F would not cover it, and the load would be a race.
 *
 * A release does not record what its block had acquired before. Suppose the second block releases H
 * to another word, and a third block acquires H. The search for a store of the first block then
 * goes from H to A, which H covers, and from A to F. For that, an acquire is only a length of a
 * sequence: releases are appended, or replace one that they cover.
 *
 * In a plain launch a block runs to its end before the next one starts, so no block loads what a
 * later block stores. In a stream, blocks may be suspended: order_switch saves the state of the
 * running block, and the releases of a sequence are not in block order. In both cases an acquire
 * includes all releases of the sequence at that time. */
#pragma once

#include "emu/check/shared_race.h"
#include "emu/memory/speculation.h"

typedef struct release_sequence release_sequence;
typedef struct grid_block grid_block;

/* An acquire by lanes of a warp: it includes the first count releases of a sequence. */
typedef struct grid_acquire {
    release_sequence *from;
    uint32_t count; /* number of releases */
    uint32_t time, lanes;
    uint32_t previous; /* 1 + index of the block's previous acquire of the sequence; 0 = none */
    uint16_t warp;
    bool complete; /* false: a strong load that no fence follows yet */
} grid_acquire;

/* The accesses that were visible to a warp since a synchronisation. */
typedef struct grid_view {
    uint32_t time;
    uint32_t seen[MAX_WARPS]; /* [warp]: accesses before this time */
    const lanes_seen *lanes;  /* additional visibility between lanes of the warp, or NULL */
} grid_view;

/* A release by lanes of a warp: it covers their accesses up to a time, and the view. */
typedef struct grid_release {
    const grid_block *block;
    const grid_view *view;
    uint32_t time, lanes;
    unsigned warp;
} grid_release;

/* A block with at least one release or acquire. */
struct grid_block {
    uint32_t number; /* as in grid_store */
    VEC(grid_acquire) acquires;
    /* result of the last search through acquires, and the acquire that led to it; lanes 0: none */
    grid_release found;
    uint32_t found_root;
};

/* The releases that some bytes of memory carry, in order of time. */
struct release_sequence {
    VEC(grid_release) releases;
    uint32_t acquirer, acquire; /* block that acquired last, and 1 + its newest acquire here */
    uint64_t search; /* last search that came here, and the number of releases it visited */
    uint32_t searched;
    /* the warp that wrote last, its time, and the lanes whose fences the sequence has */
    uint32_t writer_block, writer_time, writer_lanes;
    unsigned writer_warp;
};

/* Releases of a sequence that a search has not visited yet. */
typedef struct grid_reach {
    const release_sequence *sequence;
    uint32_t from, to;
    uint32_t root; /* index of the running block's acquire that leads to them */
} grid_reach;

typedef struct grid_order {
    arena *arena;
    shared_memory *times;
    uint32_t block;      /* number of the running block, as in grid_store */
    grid_block *running; /* NULL before its first release or acquire */
    /* fences of each warp that no newer fence of the same lanes supersedes */
    VEC(grid_release) fences[MAX_WARPS];
    uint32_t fenced[MAX_WARPS]; /* lanes that have executed a fence */
    uint32_t fenced_warps;      /* bit mask of warps with a fence */
    uint32_t changed;           /* warps that stored or acquired since their last fence */
    const grid_view *views[MAX_WARPS];
    uint64_t searches;
    VEC(grid_reach) pending;
    bool interleaved; /* blocks may be suspended */
} grid_order;

void order_begin_block(grid_order *g, uint32_t block);

/* Exchanges the state of the running block with the saved state of another block. */
void order_switch(grid_order *g, grid_order *aside);

void order_fence(grid_order *g, unsigned w, uint32_t lanes, bool acquires, bool releases);

/* Notes a strong load with a release sequence. acquires: it needs no fence to acquire. */
void order_read(grid_order *g, unsigned thread, release_sequence *from, bool acquires);

/* Notes a strong store or atomic operation that continues a sequence. Adds the fences visible to
 * the thread and, if the write itself releases, the thread's accesses. */
void order_write(grid_order *g, unsigned thread, release_sequence *to, bool releases);

typedef enum order_gap {
    GAP_NONE,         /* the store is ordered before the access */
    GAP_NO_BARRIER,   /* no barrier between the block's acquire and the thread */
    GAP_NOT_ACQUIRED, /* a strong load read the release, but no fence completes the acquire */
    GAP_NOT_RELEASED, /* the block has acquired releases, but none covers the store */
    GAP_NO_RELEASE,   /* the block has acquired nothing */
} order_gap;

/* Finds the reason why another block's store is not ordered before an access by a thread now. */
order_gap order_find_gap(grid_order *g, unsigned thread, const grid_store *s);

/* grid_race.c */

typedef struct grid_shadow grid_shadow;

typedef struct grid_race {
    bool enabled;
    grid_order order;
    grid_shadow *shadows;       /* of all allocations that the launch has stored to */
    struct shadow_page *recent; /* page of the last lookup, or NULL, and its allocation and index */
    const allocation *recent_of;
    uint64_t recent_index;
} grid_race;

grid_race *grid_race_new(arena *a, bool enabled);

/* Attaches the shadows to their allocations, or detaches them while another launch runs. */
void grid_race_attach(const grid_race *g, bool attached);

/* Check an aligned access inside an allocation. Return false and a fault if it races. Call the
 * second before the bytes are stored; for an atomic operation call both. */
bool grid_race_load(const access *x, const allocation *a);
bool grid_race_store(const access *x, allocation *a, const void *bytes);

/* Returns true if an older store by the block is visible to the thread of an access. */
bool grid_race_has_seen(const access *x, const grid_store *s);

/* Reports an unordered overwrite of an older store by the block. Returns false after a fault. */
bool grid_race_passes_overwriting(const access *x, const grid_store *s);

/* Commits a page of a speculative block; grid_race_may_store_page returns true if that is safe. */
bool grid_race_may_store_page(grid_race *g, const block_page *p);
void grid_race_store_page(grid_race *g, const block_page *p);

/* Commits a deferred atomic operation; grid_race_may_update returns true if that is safe. */
bool grid_race_may_update(grid_race *g, const atomic_update *u);
void grid_race_update(grid_race *g, const atomic_update *u);

/* Prepares a region of STORED_REGION_BYTES for threads that note stores at the same time, in
 * different pages of GRID_PAGE_BYTES and each with its own grid_race. */
enum { GRID_PAGE_BYTES = 4096 };
void grid_race_share(grid_race *g, allocation *a, uint64_t offset);

/* Marks all allocations that the launch has stored to as tracked by it. */
void grid_race_track(const grid_race *g, uint32_t launch);

/* Starts a new time after a releasing store, once all lanes have stored. */
void grid_race_stored(warp *w, const op *o);
