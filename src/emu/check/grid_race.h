/* Detection of races between the blocks of a launch over global memory, and of stores by two
 * threads of one block with no barrier between.
 *
 * Every byte that the launch stores to remembers its last store. Another block that touches it
 * races with that store unless both accesses are strong at .gpu scope or wider, as atomic
 * operations are, or the store comes first in causality order: see grid_order.h. Stores of the
 * value that is there already are none, as kernels set a flag from many blocks. Loads are not
 * remembered: a store that races with the load of a block that ran before is found when the blocks
 * run the other way round.
 *
 * A load that need not see stores of its own launch (.nc) is at fault where there was one, by
 * whichever block.
 *
 * Records are kept for what is stored only, in pages that come into being with the first store, one
 * a word, or of the size of the smallest store to the page where that is less. So a load costs
 * nothing more in allocations that the launch does not store to.
 */
#ifndef PTXGEN_EMU_CHECK_GRID_RACE_H
#define PTXGEN_EMU_CHECK_GRID_RACE_H

#include "emu/check/grid_order.h"
#include "emu/machine.h"
#include "emu/memory/speculation.h"

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
bool grid_race_check_load(const access *x, const allocation *a);
bool grid_race_store(const access *x, allocation *a, const void *bytes);

static inline bool grid_race_load(const access *x, const allocation *a)
{
    return !a->shadow || grid_race_check_load(x, a);
}

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
