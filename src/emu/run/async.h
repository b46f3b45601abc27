/* What goes on while threads do: mbarriers, and copies that complete at them or in groups.
 *
 * A phase of an mbarrier is complete when as many threads have arrived as it expects and as many
 * bytes as they said have been copied. Copies complete as late as they may: those of an mbarrier
 * when somebody has looked for the phase without success, those of bulk groups when their thread
 * waits. So a program that does not wait, or does not look at what a look gave, finds bytes that
 * are not there.
 */
#ifndef PTXGEN_EMU_RUN_ASYNC_H
#define PTXGEN_EMU_RUN_ASYNC_H

#include "emu/run/access.h"

typedef struct mbarrier {
    size_t offset; /* in shared memory */
    bool live;
    bool fenced;                /* a fence since its init lets copies see it */
    unsigned copier;            /* that writes what completes here */
    uint32_t expected, pending; /* arrivals of a phase, and of them those to come */
    int32_t bytes;              /* to come */
    uint32_t phase;             /* how many are complete */
    unsigned maker;             /* the thread that initialised it, and when */
    uint32_t made;
    shared_view arrived, complete; /* of this phase, and of the ones before */
    /* lanes of each warp that have arrived in this phase, and in the one before */
    lane_mask lanes[MAX_WARPS], lanes_before[MAX_WARPS];
} mbarrier;

/* A cp.async that its thread has not waited for. */
typedef struct async_copy {
    struct async_copy *next;
    size_t offset;          /* in shared memory */
    uint32_t group, number; /* number: in the order of the block */
    uint8_t lane, size;
    uint8_t bytes[16];
} async_copy;

/* cp.async.mbarrier.arrive: an arrival that comes after a lane's copies up to a number. */
typedef struct late_arrival {
    struct late_arrival *next;
    warp *warp;
    int lane;
    uint32_t number;
    unsigned barrier; /* index */
} late_arrival;

/* A cp.async.bulk. */
typedef struct bulk_copy {
    struct bulk_copy *next;
    warp *warp;
    const op *op;
    int lane;
    bool loads;       /* from global to shared memory */
    bool has_read;    /* a store: its thread has waited until shared memory was read */
    unsigned barrier; /* of a load: index */
    uint32_t group;   /* of a store */
    size_t offset;    /* in shared memory */
    u64 address;      /* in global memory */
    size_t size, room;
    uint8_t *bytes;
} bulk_copy;

typedef struct async_state {
    VEC(mbarrier) barriers;
    late_arrival *late, *spare_late;
    bulk_copy *bulk, *spare_bulk;           /* bulk: the oldest first */
    uint32_t groups[MAX_WARPS][WARP_LANES]; /* of bulk copies that each lane has committed */
    uint32_t failed_looks; /* failed looks at mbarriers since something last happened at one */
} async_state;

/* Forgets the copies of a warp of the block before. */
void async_begin_block(machine *m, warp *w);

/* Returns the block's state, which is made on first use. */
async_state *async_state_of(machine *m);

/* Ends a copy to shared memory. Returns the time at which the copier writes it. */
uint32_t async_write(machine *m, size_t offset, const uint8_t *bytes, size_t size, unsigned copier);

/* Finishes a lane's cp.async up to a number; a copier writes them, and the view sees it. */
void async_finish_at(warp *w, int lane, uint32_t number, unsigned copier, shared_view *view);

/* mbarrier.c: the initialised mbarrier at a lane's address, or NULL and a fault. */
mbarrier *mbarrier_at(warp *w, const op *o, int lane, u64 address);

/* bulk.c: lanes end, and with them their bulk copies. */
void bulk_exit(warp *w, const op *o, lane_mask mask);

/* wgmma.c: forgets the products of the block before. */
void wgmma_begin_block(machine *m, const warp *w);

/* Lanes end: a fault where products of theirs are under way. */
void wgmma_exit(warp *w, const op *o, lane_mask mask);

#endif
