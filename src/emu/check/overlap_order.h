/* The order between the launches of a stream that may run at the same time.
 *
 * A launch may begin before earlier ones have ended, and griddepcontrol.wait is the only
 * thing that orders the two. So of each launch it is known which launches ahead need not have
 * finished (their memory operations performed and visible) when it begins, and which when a thread
 * of it has waited. By an example of four launches, all but A programmatic:
 *
 *     A  triggers                nothing is before it
 *     B  triggers, then waits    begins beside A; a thread that has waited comes after A
 *     C  never waits             begins beside B, and beside A: B had triggered before it waited
 *     D  waits                   begins beside A, B and C; having waited, it comes after C, but
 *                                A and B may still run: C has not waited for them
 *
 * Had B waited before it triggered, C would have begun after A. That all blocks of a launch have
 * triggered or ended orders nothing else: neither says that what they have stored is visible.
 *
 * A thread has waited where it has executed griddepcontrol.wait, or one has that it has met at a
 * barrier since.
 */
#ifndef PTXGEN_EMU_CHECK_OVERLAP_ORDER_H
#define PTXGEN_EMU_CHECK_OVERLAP_ORDER_H

#include "emu/memory/allocation.h"
#include "emu/machine.h"

/* Launches that are remembered at a time. Older ones are taken to have finished. */
enum { OVERLAP_LAUNCHES = 64 };

typedef uint64_t overlap_set; /* of launches, a bit each */

typedef struct overlap overlap;

/* Phases of a launch's threads. */
enum { BEFORE_WAIT, AFTER_WAIT, WAIT_PHASES };

typedef struct overlap_launch {
    overlap *all;
    arena *arena; /* of the records */
    const char *name;
    size_t number; /* in the stream */
    unsigned bit;  /* in an overlap_set */
    overlap_set unfinished[WAIT_PHASES];
    overlap_set followers; /* later launches that began when this one was unfinished */
    bool leads;            /* there may be more of these */
    bool waited;           /* some thread has */
    bool ended;
    uint64_t late_triggers; /* blocks whose trigger, or end, comes after a wait */
    struct overlap_page **pages;
    size_t page_count, page_room; /* a power of two */
} overlap_launch;

/* A griddepcontrol.wait by lanes of a warp. */
typedef struct overlap_passed {
    unsigned warp;
    uint32_t lanes, time; /* as shared_race.h counts it */
} overlap_passed;

/* What is known of a block. */
typedef struct overlap_block {
    overlap_launch *launch;
    arena *arena; /* of waits */
    VEC(overlap_passed) waits;
    lane_mask behind[MAX_WARPS]; /* lanes that are known to have waited */
    bool late_trigger;           /* it is among the launch's */
} overlap_block;

struct overlap {
    arena *arena; /* of messages */
    const emu_range *ranges;
    size_t range_count;
    overlap_launch *launches[OVERLAP_LAUNCHES];
    overlap_launch *newest;  /* the launch that began last, or NULL: it cannot be beside another */
    overlap_launch *unknown; /* represents all launches that are not known; NULL: there are none */
    emu_report doubt;        /* memory without content, read before a wait: see overlap_excuses */
};

static inline overlap_set overlap_set_of(const overlap_launch *l)
{
    return l ? UINT64_C(1) << l->bit : 0;
}

/* Begins a launch, beside the newest one or after all. leads: another one may begin beside it.
 * NULL: there is nothing to track. */
overlap_launch *overlap_begin(overlap *all, arena *parent, const char *name, size_t number,
                              bool beside, bool leads);

/* The launch has ended; next is the one right after it, or NULL where that has not begun. */
void overlap_end(overlap_launch *l, overlap_launch *next);

/* Forgets launches that cannot race any more: all except a set and what these have not finished. */
void overlap_forget(overlap *all, overlap_set kept);

/* Lanes execute griddepcontrol.launch_dependents or griddepcontrol.wait. */
void overlap_trigger(warp *w, lane_mask mask);
void overlap_wait(warp *w, lane_mask mask);

/* Returns the lanes that have waited. */
lane_mask overlap_behind(const warp *w, lane_mask lanes);

/* Takes back a report of reading bytes without content, if a launch ahead may store them later and
 * so race. The report is kept in case that none does. */
bool overlap_excuses(const warp *w, int lane);

/* overlap_race.c */

/* Check accesses by lanes, or one, inside of an allocation. Return false and a fault if one races.
 */
bool overlap_lanes(const access *x, const addresses *a, lane_mask mask, const allocation *of);
bool overlap_lane(const access *x, const allocation *of);

#endif
