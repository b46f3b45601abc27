/* The order between the blocks of a launch: what a block has released and another acquired.
 *
 * This is causality order as in the PTX ISA's memory consistency model, as far as blocks make it
 * with global memory at .gpu or .sys scope:
 * - a release is a store or an atomic operation of .release or .acq_rel, or any strong one (atomic,
 *   .relaxed or .volatile) that a fence precedes. It releases what its thread has done before, and
 *   what other threads of the block had before a barrier between. As CUDA programs do it, the fence
 *   may also be that of another thread, with a barrier between the two.
 * - an acquire is a load or an atomic operation of .acquire or .acq_rel, or a strong one that a
 *   fence follows, which again may be another thread's behind a barrier. It counts for its thread,
 *   and behind a barrier for others.
 * - the two meet in a word of memory: the acquire reads what the release has written, or what
 *   atomic operations have made of that since. These together are a release sequence.
 *
 * One thing more is taken for an acquire that the PTX ISA does not have as one: an atomic operation
 * with a fence of the same thread ahead of it. CUDA's own examples of counting blocks have no
 * other.
 *
 * A block runs to its end before the next one starts, so what it acquires is all that the sequence
 * has of other blocks, and a block never reads what a later one stores. Times are those of
 * shared.h, which only mean something within their block.
 */
#ifndef PTXGEN_EMU_GRID_ORDER_H
#define PTXGEN_EMU_GRID_ORDER_H

#include "emu/shared.h"

/* The last store to some bytes of global memory. */
typedef struct grid_store {
    uint32_t block; /* how many had run, and 1; 0: no store in this launch */
    uint32_t time;
    uint32_t line; /* of the PTX text */
    uint16_t thread;
    bool strong;
} grid_store;

/* What some lanes of a warp have done and seen done by others of their block. */
typedef struct grid_release {
    uint32_t block, time, lanes;
    unsigned warp;
    const uint32_t *seen; /* [warp]: stores before this */
    uint32_t *seen_lanes; /* [lane], of the same warp, beyond it; or NULL */
} grid_release;

/* In the order of blocks. */
typedef struct release_sequence {
    VEC(grid_release) releases;
} release_sequence;

typedef struct grid_acquire {
    const release_sequence *from;
    uint32_t time, lanes;
    unsigned warp;
    bool complete; /* false: a strong read that no fence follows as yet */
} grid_acquire;

typedef struct grid_order {
    arena *arena;
    shared_memory *times;
    uint32_t block;             /* that runs, as in grid_store */
    VEC(grid_acquire) acquires; /* of this block */
    VEC(grid_release) fences;   /* of this block */
    uint64_t stores;            /* that were made by this launch */
    uint64_t fence_stores;      /* that the last fence saw */
    uint32_t fence_end;         /* the time that began with it */
} grid_order;

void order_begin_block(grid_order *g, uint32_t block);

/* A fence by lanes of a warp. */
void order_fence(grid_order *g, unsigned warp, uint32_t lanes, bool acquires, bool releases);

/* Whether a thread has passed a fence. */
bool order_has_fenced(const grid_order *g, unsigned thread);

/* A strong read of what the sequence is about. */
void order_read(grid_order *g, unsigned thread, const release_sequence *from, bool acquires);

/* A strong write that goes on with a sequence. */
void order_write(grid_order *g, unsigned thread, release_sequence *to, bool releases);

typedef enum order_gap {
    GAP_NONE,         /* the store comes before what the thread does now */
    GAP_NO_BARRIER,   /* between the acquire and this thread */
    GAP_NOT_ACQUIRED, /* a strong read has met the release, and is no acquire */
    GAP_NOT_RELEASED, /* a release of another store or block was acquired */
    GAP_NO_RELEASE,   /* no release was met */
} order_gap;

/* What lacks for another block's store to come before what a thread does now. */
order_gap order_find_gap(const grid_order *g, unsigned thread, const grid_store *s);

#endif
