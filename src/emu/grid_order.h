/* The order between the blocks of a launch: what a block has released and another acquired.
 *
 * This is causality order as in the PTX ISA's memory consistency model, as far as blocks make it
 * with global memory at .gpu or .sys scope:
 * - a release is a store or an atomic operation of .release or .acq_rel, or any strong one (atomic,
 *   .relaxed or .volatile) that a fence precedes. It releases what its thread has done before, and
 *   what other threads of the block had before a barrier between; with a fence, before the fence.
 * - an acquire is a load or an atomic operation of .acquire or .acq_rel, or a strong one that a
 *   fence follows. It counts for its thread, and behind a barrier for others.
 * - the two meet in a word of memory: the acquire reads what the release has written, or what
 *   atomic operations have made of that since. These together are a release sequence.
 * - what a thread has acquired before it releases, it passes on.
 *
 * In three things this takes more for order than the PTX ISA does. CUDA's own examples of counting
 * blocks need the first two:
 * - the fence of a release or of an acquire may be that of another thread of the block, with a
 *   barrier between the two.
 * - an atomic operation with a fence of the same thread ahead of it is an acquire, too.
 * - release and acquire may be of different sizes, where they have bytes in common.
 *
 * In one it is as strict as the PTX ISA, and CUDA's examples are not: the plain load ahead of a
 * loop of atom.cas, which fetches the first value to try, races with the atomic operations of other
 * blocks. A plain load that uses such a value, as of a sum that nobody has acquired, looks the
 * same. .relaxed or .volatile makes the load right.
 *
 * A block runs to its end before the next one starts, so what it acquires is all that the sequence
 * has of other blocks, and a block never reads what a later one stores. Times are those of
 * shared.h, which only mean something within their block.
 *
 * A release does not copy what it passes on: every block keeps a list of its acquires, each with
 * the length that the sequence had, and whoever asks whether a store comes first follows releases
 * to the acquires that they cover.
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

typedef struct release_sequence release_sequence;
typedef struct grid_block grid_block;

/* Lanes of a warp know what the first releases of a sequence are about. */
typedef struct grid_acquire {
    release_sequence *from;
    uint32_t count; /* of its releases */
    uint32_t time, lanes;
    uint32_t previous; /* 1 + the index of the block's acquire from it before; 0: none */
    uint16_t warp;
    bool complete; /* false: a strong read that no fence follows as yet */
} grid_acquire;

/* What a warp has seen of its block since a synchronisation. */
typedef struct grid_view {
    uint32_t time;
    uint32_t seen[SHARED_MAX_WARPS]; /* [warp]: what was done before this */
    const lanes_seen *lanes;         /* beyond it, or NULL */
} grid_view;

/* What some lanes of a warp have done up to a time and seen done by others of their block. */
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
    /* the release that was found last to be behind them, and the acquire that leads there; of lanes
     * 0: none */
    grid_release found;
    uint32_t found_root;
};

struct release_sequence {
    VEC(grid_release) releases; /* in the order of blocks */
    uint32_t acquirer, acquire; /* the block that acquired it last, and 1 + its newest acquire */
    uint64_t search;            /* the last one that has come here, and how many releases it had */
    uint32_t searched;
    /* lanes of a warp that have released here what they have by fences at a time */
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
    grid_block *running; /* NULL before it releases or acquires something */
    /* fences of each warp, without those that a newer one of the same lanes makes up for */
    VEC(grid_release) fences[SHARED_MAX_WARPS];
    uint32_t fenced[SHARED_MAX_WARPS]; /* lanes that have passed a fence */
    uint32_t fenced_warps;             /* a bit each */
    uint32_t changed;                  /* warps that have stored or acquired since their last one */
    const grid_view *views[SHARED_MAX_WARPS];
    uint64_t searches;
    VEC(grid_reach) pending;
} grid_order;

void order_begin_block(grid_order *g, uint32_t block);

/* A fence by lanes of a warp. */
void order_fence(grid_order *g, unsigned warp, uint32_t lanes, bool acquires, bool releases);

/* Whether a thread has passed a fence. */
bool order_has_fenced(const grid_order *g, unsigned thread);

/* A strong read of what the sequence is about. */
void order_read(grid_order *g, unsigned thread, release_sequence *from, bool acquires);

/* A strong write that goes on with a sequence. */
void order_write(grid_order *g, unsigned thread, release_sequence *to, bool releases);

/* A thread has stored to global memory. */
static inline void order_stored(grid_order *g, unsigned thread)
{
    g->changed |= UINT32_C(1) << thread / 32;
}

typedef enum order_gap {
    GAP_NONE,         /* the store comes before what the thread does now */
    GAP_NO_BARRIER,   /* between the acquire and this thread */
    GAP_NOT_ACQUIRED, /* a strong read has met the release, and is no acquire */
    GAP_NOT_RELEASED, /* a release of another store or block was acquired */
    GAP_NO_RELEASE,   /* no release was met */
} order_gap;

/* What lacks for another block's store to come before what a thread does now. */
order_gap order_find_gap(grid_order *g, unsigned thread, const grid_store *s);

#endif
