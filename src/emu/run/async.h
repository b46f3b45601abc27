/* Asynchronous operations: mbarriers, and copies that complete at them or in groups.
 *
 * A phase of an mbarrier completes when all expected threads have arrived and all expected bytes
 * have been copied. Copies complete as late as the rules permit: at an mbarrier when a test has
 * failed, in bulk groups when their thread waits. So a program that does not wait, or ignores the
 * result of a test, reads bytes that have not arrived. */
#pragma once

#include "emu/run/access.h"

typedef struct mbarrier {
    size_t offset; /* offset in shared memory */
    bool live;
    bool fenced;                /* a fence after its init makes it visible to copies */
    unsigned copier;            /* copier that writes the copies that complete here */
    uint32_t expected, pending; /* arrivals per phase, and arrivals left in this phase */
    int32_t bytes;              /* tx-count: bytes expected and not yet copied */
    uint32_t phase;             /* number of completed phases */
    unsigned maker;             /* thread that initialised it, and the time */
    uint32_t made;
    shared_view arrived, complete; /* visibility released in this phase, and in all phases before */
    /* lanes of each warp that have arrived in this phase, and in the previous one */
    lane_mask lanes[MAX_WARPS], lanes_before[MAX_WARPS];
} mbarrier;

/* A pending cp.async. */
typedef struct async_copy {
    struct async_copy *next;
    size_t offset;          /* offset in shared memory */
    uint32_t group, number; /* number: counts the block's copies */
    uint8_t lane, size;
    uint8_t bytes[16];
} async_copy;

/* A pending cp.async.mbarrier.arrive: arrives after a lane's copies up to a number. */
typedef struct late_arrival {
    struct late_arrival *next;
    warp *warp;
    int lane;
    uint32_t number;
    unsigned barrier; /* index in barriers */
} late_arrival;

/* A pending cp.async.bulk. */
typedef struct bulk_copy {
    struct bulk_copy *next;
    warp *warp;
    const op *op;
    int lane;
    bool loads;       /* global to shared; false: shared to global */
    bool has_read;    /* a store whose thread has waited for the read of shared memory */
    unsigned barrier; /* load: index in barriers */
    uint32_t group;   /* store: its bulk group */
    size_t offset;    /* offset in shared memory */
    u64 address;      /* address in global memory */
    size_t size, room;
    uint8_t *bytes;
} bulk_copy;

typedef struct async_state {
    VEC(mbarrier) barriers;
    late_arrival *late, *spare_late;
    bulk_copy *bulk, *spare_bulk;           /* bulk: oldest first */
    uint32_t groups[MAX_WARPS][WARP_LANES]; /* bulk groups committed per lane */
    uint32_t failed_looks; /* failed tests of mbarriers since the last progress at one */
} async_state;

/* Drops the pending copies of a warp of the previous block. */
void async_begin_block(machine *m, warp *w);

/* Returns the block's state, which is created on first use. */
async_state *async_state_of(machine *m);

/* Completes a copy to shared memory. Returns the time of the copier's write. */
uint32_t async_write(machine *m, size_t offset, const uint8_t *bytes, size_t size, unsigned copier);

/* Completes a lane's cp.async up to a number, as writes of a copier, and adds them to the view. */
void async_finish_at(warp *w, int lane, uint32_t number, unsigned copier, shared_view *view);

/* Returns the initialised mbarrier at a lane's address, or NULL and a fault. In mbarrier.c. */
mbarrier *mbarrier_at(warp *w, const op *o, int lane, u64 address);

/* Completes the bulk stores of lanes that end. In bulk.c. */
void bulk_exit(warp *w, const op *o, lane_mask mask);

/* Drops the pending products of the previous block. In wgmma.c. */
void wgmma_begin_block(machine *m, const warp *w);

/* Reports a fault if lanes end while a wgmma is in flight. */
void wgmma_exit(warp *w, const op *o, lane_mask mask);
