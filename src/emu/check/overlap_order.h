/* The order between launches of a stream that may run at the same time.
 *
 * A launch may begin before its predecessors have ended, and only griddepcontrol.wait orders it
 * after them. For each launch we track the predecessors that may be unfinished (memory operations
 * not performed and visible) when it begins, and those that may be unfinished when one of its
 * threads has waited. An example with four launches, all but A programmatic:
 *
 *     A  triggers                no predecessors
 *     B  triggers, then waits    begins beside A; a thread that has waited comes after A
 *     C  never waits             begins beside B, and beside A: B triggered before it waited
 *     D  waits                   begins beside A, B and C; after its wait it comes after C, but
 *                                A and B may still run: C has not waited for them
 *
 * If B waited before its trigger, C would begin after A. That all blocks of a launch have triggered
 * or ended orders nothing else: neither makes their stores visible.
 *
 * A thread has waited if it has executed griddepcontrol.wait, or is synchronised by a barrier with
 * a thread that has. */
#pragma once

#include "emu/memory/allocation.h"
#include "emu/machine.h"

/* Maximum number of launches that are tracked. Older launches count as finished. */
enum { OVERLAP_LAUNCHES = 64 };

typedef uint64_t overlap_set; /* bit mask of launches */

typedef struct overlap overlap;

/* Phases of a launch's threads: before and after the wait. */
enum { BEFORE_WAIT, AFTER_WAIT, WAIT_PHASES };

typedef struct overlap_launch {
    overlap *all;
    arena *arena; /* of the records */
    const char *name;
    size_t number; /* number in the stream */
    unsigned bit;  /* its bit in an overlap_set */
    overlap_set unfinished[WAIT_PHASES];
    overlap_set followers; /* later launches that began while this one was unfinished */
    bool leads;            /* a later launch may overlap it */
    bool waited;           /* some thread has waited */
    bool ended;
    uint64_t late_triggers; /* number of blocks whose trigger, or end, follows a wait */
    struct overlap_page **pages;
    size_t page_count, page_room; /* page_room: a power of two */
} overlap_launch;

/* An executed griddepcontrol.wait by lanes of a warp. */
typedef struct overlap_passed {
    unsigned warp;
    uint32_t lanes, time; /* time as in shared_race.h */
} overlap_passed;

typedef struct overlap_block {
    overlap_launch *launch;
    arena *arena; /* of waits */
    VEC(overlap_passed) waits;
    lane_mask waited_lanes[MAX_WARPS]; /* lanes known to have waited */
    bool late_trigger;                 /* counted in the launch's late_triggers */
} overlap_block;

struct overlap {
    arena *arena; /* of messages */
    const emu_range *ranges;
    size_t range_count;
    overlap_launch *launches[OVERLAP_LAUNCHES];
    overlap_launch *newest;  /* launch that began last; NULL if nothing can overlap it */
    overlap_launch *unknown; /* stands in for all unknown launches; NULL = none */
    emu_report doubt;        /* read of uninitialised memory before a wait: see overlap_excuses */
};

static inline overlap_set overlap_set_of(const overlap_launch *l)
{
    return l ? UINT64_C(1) << l->bit : 0;
}

/* Begins a launch. leads: a later one may overlap it. NULL: there is nothing to track. */
overlap_launch *overlap_begin(overlap *all, arena *parent, const char *name, size_t number,
                              bool beside, bool leads);

/* Ends a launch. next: its successor, or NULL if that has not begun. */
void overlap_end(overlap_launch *l, overlap_launch *next);

/* Drops launches that cannot race any more: all except a set and its unfinished predecessors. */
void overlap_forget(overlap *all, overlap_set kept);

/* Note that lanes execute griddepcontrol.launch_dependents or griddepcontrol.wait. */
void overlap_trigger(warp *w, lane_mask mask);
void overlap_wait(warp *w, lane_mask mask);

lane_mask overlap_waited_lanes(const warp *w, lane_mask lanes);

/* Withdraws a report of an uninitialised read if an unfinished predecessor may still store the
 * bytes, which would be a race. The report is kept as doubt in case no race follows. */
bool overlap_excuses(const warp *w, int lane);

/* overlap_race.c */

/* Check accesses by lanes, or one lane, to an allocation. Return false and a fault on a race. */
bool overlap_lanes(const access *x, const addresses *a, lane_mask mask, const allocation *of);
bool overlap_lane(const access *x, const allocation *of);
