/* The order between the blocks of a launch: what a block has released and another acquired.
 *
 * This is causality order as in the PTX ISA's memory consistency model, as far as blocks make it
 * with global memory at .gpu or .sys scope:
 * - a release is a store or an atomic operation of .release or .acq_rel, or any strong one (atomic,
 *   .relaxed or .volatile) that a fence precedes. The release covers what its thread has done
 *   before, and what other threads of the block had before a barrier between; with a fence, before
 *   the fence.
 * - an acquire is a load or an atomic operation of .acquire or .acq_rel, or a strong one that a
 *   fence follows. The acquire counts for its thread, and for other threads after a barrier.
 * - release and acquire meet in a word of memory: the acquire loads what the release has stored, or
 *   what atomic operations have made of that since. The release and these operations are a release
 *   sequence.
 * - a release passes on what its thread has acquired before.
 *
 * In three points this takes more for order than the PTX ISA does. CUDA's own examples of counting
 * blocks need the first two:
 * - the fence of a release or of an acquire may be that of another thread of the block, with a
 *   barrier between the two threads.
 * - an atomic operation with a fence of the same thread ahead is an acquire, too.
 * - release and acquire may be of different sizes, where their bytes overlap.
 *
 * In one point this is as strict as the PTX ISA where CUDA's examples are not: the plain load ahead
 * of a loop of atom.cas, which fetches the first value to try, races with the atomic operations of
 * other blocks. .relaxed or .volatile makes the load right.
 *
 * What is kept, by an example: two blocks of 64 threads. Thread 40 of each stores to
 * partial[block], all threads meet at a barrier, and thread 0 passes a fence and adds 1 to done.
 * The second block's threads meet again, and its thread 40 loads partial[0]. By the times of
 * shared_race.h the first block begins at 5, the barrier makes it 6, and the fence 7.
 *
 *     block 1, thread 40 stores     grid_store of partial[0]: block 1, thread 40, time 5
 *              thread 0's fence     grid_release F: warp 0, lanes 0x1, time 6; the grid_view says
 *                                   that all before 6 of warps 0 and 1 is seen
 *              thread 0 adds        release_sequence S of done: [F]
 *     block 2, thread 0's fence     grid_release G, as F
 *              thread 0 adds        grid_acquire A: the first 1 releases of S; S becomes [F, G]
 *              thread 40 loads      does the store to partial[0] come first?
 *
 * The barrier has made A known to thread 40. A leads to F, F is by the store's block, and F's view
 * covers the store: 5 is before 6. So the store comes first. Were the store after the barrier, its
 * time would be 6, F would not cover it, and the load would be a race.
 *
 * A release does not hold what its block had acquired before. If the second block goes on to
 * release H into another word and a third block acquires H, a store of the first block is found so:
 * H is by another block than the store; of the acquires of H's block, H covers A; A leads to F. For
 * that an acquire is no more than the length that a sequence had: releases are added behind, or
 * take the place of one that they cover.
 *
 * A block runs to its end before the next one starts, so that no block loads what a later one
 * stores. In a stream of launches blocks may be held up, and others run meanwhile: what is kept of
 * the block that runs is put aside then (order_switch), and the releases of a sequence are not in
 * the order of blocks. In both an acquire is of all releases that a sequence has by then.
 */
#ifndef PTXGEN_EMU_CHECK_GRID_ORDER_H
#define PTXGEN_EMU_CHECK_GRID_ORDER_H

#include "emu/check/shared_race.h"
#include "emu/memory/speculation.h"

typedef struct release_sequence release_sequence;
typedef struct grid_block grid_block;

/* Some lanes of a warp have acquired the first releases of a sequence. */
typedef struct grid_acquire {
    release_sequence *from;
    uint32_t count; /* of the releases */
    uint32_t time, lanes;
    uint32_t previous; /* 1 + the index of the block's last acquire of the sequence; 0: none */
    uint16_t warp;
    bool complete; /* false: a strong load that no fence follows as yet */
} grid_acquire;

/* What a warp has seen of its block since a synchronisation. */
typedef struct grid_view {
    uint32_t time;
    uint32_t seen[MAX_WARPS]; /* [warp]: what that warp did before this time */
    const lanes_seen *lanes;  /* what single lanes have seen of the warp beyond it, or NULL */
} grid_view;

/* What some lanes of a warp release: what the lanes have done up to a time, and the view. */
typedef struct grid_release {
    const grid_block *block;
    const grid_view *view;
    uint32_t time, lanes;
    unsigned warp;
} grid_release;

/* A block that has released or acquired something. */
struct grid_block {
    uint32_t number; /* as in grid_store */
    VEC(grid_acquire) acquires;
    /* the release that the last search has found by way of the block's acquires, of lanes 0 before
     * the first, and the index of the acquire that leads there */
    grid_release found;
    uint32_t found_root;
};

/* The releases that have gone into some bytes of memory, in the order of time. */
struct release_sequence {
    VEC(grid_release) releases;
    uint32_t acquirer, acquire; /* the block that acquired last, and 1 + its newest acquire here */
    uint64_t search; /* the last search that has come here, and how many releases it took */
    uint32_t searched;
    /* the lanes of a warp whose fences up to a time are among the releases */
    uint32_t writer_block, writer_time, writer_lanes;
    unsigned writer_warp;
};

/* Releases of a sequence that a search has still to look at. */
typedef struct grid_reach {
    const release_sequence *sequence;
    uint32_t from, to;
    uint32_t root; /* the acquire of the running block that leads there */
} grid_reach;

typedef struct grid_order {
    arena *arena;
    shared_memory *times;
    uint32_t block;      /* that runs, as in grid_store */
    grid_block *running; /* NULL before the block releases or acquires something */
    /* fences of each warp, without those that a newer one of the same lanes makes up for */
    VEC(grid_release) fences[MAX_WARPS];
    uint32_t fenced[MAX_WARPS]; /* lanes that have passed a fence */
    uint32_t fenced_warps;      /* a bit each */
    uint32_t changed;           /* warps that have stored or acquired since their last fence */
    const grid_view *views[MAX_WARPS];
    uint64_t searches;
    VEC(grid_reach) pending;
    bool interleaved; /* blocks are held up */
} grid_order;

void order_begin_block(grid_order *g, uint32_t block);

/* Exchanges what is kept of the block that runs for what was put aside of another one. */
void order_switch(grid_order *g, grid_order *aside);

/* A fence by lanes of a warp. */
void order_fence(grid_order *g, unsigned w, uint32_t lanes, bool acquires, bool releases);

/* A strong load of bytes that a sequence has gone into. acquires: it is an acquire by itself; else
 * the next fence makes it one. */
void order_read(grid_order *g, unsigned thread, release_sequence *from, bool acquires);

/* A strong store or atomic operation that goes on with a sequence: the fences that the thread knows
 * of go into it and, where the write itself releases, what the thread has done. */
void order_write(grid_order *g, unsigned thread, release_sequence *to, bool releases);

typedef enum order_gap {
    GAP_NONE,         /* the store comes before what the thread does now */
    GAP_NO_BARRIER,   /* between the acquire of a release of the store and the thread */
    GAP_NOT_ACQUIRED, /* a strong load has met a release of the store, and is no acquire */
    GAP_NOT_RELEASED, /* the block has acquired releases, none of which covers the store */
    GAP_NO_RELEASE,   /* the block has acquired nothing */
} order_gap;

/* What lacks for another block's store to come before what a thread does now. */
order_gap order_find_gap(grid_order *g, unsigned thread, const grid_store *s);

/* grid_race.c */

typedef struct grid_shadow grid_shadow;

typedef struct grid_race {
    bool enabled;
    grid_order order;
    grid_shadow *shadows;       /* of all allocations that were stored to */
    struct shadow_page *recent; /* the page that was asked for last, or NULL, and where it is */
    const allocation *recent_of;
    uint64_t recent_index;
} grid_race;

grid_race *grid_race_new(arena *a, bool enabled);

/* Puts the shadows on their allocations, or takes them off while blocks of another launch run. */
void grid_race_put(const grid_race *g, bool there);

/* An access that is known to be inside of an allocation and aligned: false and a fault when it
 * races. Called before bytes are stored, and for an atomic operation as a load and then as a store.
 */
bool grid_race_load(const access *x, const allocation *a);
bool grid_race_store(const access *x, allocation *a, const void *bytes);

/* For a store to bytes that another thread of the block has stored to: return true if it has seen
 * that store, and if it passes otherwise. */
bool grid_race_has_seen(const access *x, const grid_store *s);
bool grid_race_passes_overwriting(const access *x, const grid_store *s);

/* Stores of a block that ran before its turn, to a page or by a deferred atomic operation. may:
 * returns true if nothing is in the way, so that they need no closer look. */
bool grid_race_may_store_page(grid_race *g, const block_page *p);
void grid_race_store_page(grid_race *g, const block_page *p);
bool grid_race_may_update(grid_race *g, const atomic_update *u);
void grid_race_update(grid_race *g, const atomic_update *u);

/* Prepares a region (STORED_REGION_BYTES) for threads that note stores to different pages of
 * GRID_PAGE_BYTES at the same time, each with a grid_race of its own. */
enum { GRID_PAGE_BYTES = 4096 };
void grid_race_share(grid_race *g, allocation *a, uint64_t offset);

/* Marks all allocations that the launch has stored to as tracked by it. */
void grid_race_track(const grid_race *g, uint32_t launch);

/* Called when all lanes have stored. */
void grid_race_stored(warp *w, const op *o);

#endif
