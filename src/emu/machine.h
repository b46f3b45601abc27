/* A block of a launch in progress: its warps, and what instructions do to them. A launch by itself
 * has one machine, which runs its blocks one after another; one in a stream has as many as it has
 * blocks that have begun and not ended. */
#ifndef PTXGEN_EMU_MACHINE_H
#define PTXGEN_EMU_MACHINE_H

#include "emu/module.h"

enum { MAX_WARPS = 32, BARRIERS = 16 };

/* Copiers write to shared memory as threads that a block does not have. */
enum { SHARED_COPIERS = 64, FIRST_COPIER = MAX_WARPS * WARP_LANES };

/* The shared memory of a block, and who has touched it when: see check/shared_race.h. */
typedef struct shared_record {
    uint32_t written, read;  /* times; 0: not since the launch began */
    uint32_t readers;        /* warps that read at that time, a bit each */
    uint32_t reader_lanes;   /* the lanes of all of them together */
    uint16_t writer, reader; /* threads; MANY_READERS where there is no single one */
    uint16_t atomic;         /* the last write was atomic */
} shared_record;

/* [lane][other] of one warp: accesses before this. */
typedef uint32_t lanes_seen[WARP_LANES][WARP_LANES];

/* What somebody has seen: what each warp, and each copier, did before these times, and what each
 * warp wrote before one is covered by a proxy fence. */
typedef struct shared_view {
    uint32_t seen[MAX_WARPS], copiers[SHARED_COPIERS], fenced[MAX_WARPS];
} shared_view;

/* [warp]: as above, of its lanes. */
typedef struct shared_copiers {
    uint32_t seen[MAX_WARPS][SHARED_COPIERS];
    uint32_t fenced[MAX_WARPS][MAX_WARPS];
} shared_copiers;

typedef struct shared_memory {
    uint8_t *bytes;
    size_t size;
    arena *arena;
    shared_record *records; /* of words, or of their first bytes where they are split */
    shared_record *others;  /* of the other three bytes; NULL before a word is split */
    uint8_t *split;         /* a byte a word */
    uint32_t now, began;    /* times: the current one, and that of the block's start */
    uint32_t warp_time[MAX_WARPS];
    uint32_t sync_time[MAX_WARPS];       /* of the last synchronisation; warp_time has ticked on */
    uint32_t seen[MAX_WARPS][MAX_WARPS]; /* [warp][other]: accesses before this */
    uint32_t seen_of_all[MAX_WARPS];     /* the earliest of these, of other warps that there are */
    lanes_seen *seen_lanes[MAX_WARPS];   /* what some lanes have seen beyond it, or NULL */
    /* a byte: 1 + the thread that copies to it, or one of these; NULL before the first copy */
    uint16_t *pending;
    uint16_t *readers;       /* of each byte, asynchronous ones; NULL before the first */
    shared_copiers *copiers; /* NULL before the first mbarrier or proxy fence */
    unsigned warps;          /* of the block */
    bool race_check;
} shared_memory;

typedef struct machine machine;

/* Lanes that wait while others run: those in mask go on at pc until they reach reconverge. */
typedef struct frame {
    uint32_t pc, reconverge;
    lane_mask mask;
    const op *meets;   /* waits there for lanes that its member mask names; NULL: for its turn */
    lane_mask members; /* this mask */
} frame;

enum { SECTOR_BYTES = 32, RECENT_SECTORS = 256 };

/* Moves the item at a place of a list to the front of another one; item is set to it. */
#define LIST_MOVE(item, at, to) \
    ((item) = *(at), *(at) = (item)->next, (item)->next = (to), (to) = (item))

typedef enum warp_status {
    WARP_RUNS,
    WARP_WAITS,   /* at a barrier */
    WARP_DEPENDS, /* at griddepcontrol.wait, for the launches ahead */
    WARP_YIELDS,  /* for a turn of the others, as it may be waiting for what they store */
    WARP_PAUSED,  /* as dependence.pauses and dependence.yields say */
    WARP_ENDED,
} warp_status;

struct warp {
    machine *machine;
    uint8_t *file;         /* registers, see op.dst */
    lane_mask *predicates; /* one bit a lane */
    lane_mask *defined;    /* of tracked registers: the lanes that have written it; or of carried
                              ones: those in which it holds what was written */
    uint32_t pc, reconverge;
    lane_mask active;  /* lanes that run now */
    lane_mask alive;   /* lanes that have not ended */
    lane_mask present; /* lanes that exist: fewer than 32 in the last warp of an odd block */
    lane_mask carry;   /* the condition code register */
    unsigned active_count;
    unsigned polls; /* accesses that see what others store meanwhile, since it yielded last */
    unsigned index;
    warp_status status;
    unsigned barrier; /* the one it waits at */
    const op *waits;  /* the instruction it waits at */
    frame *frames;
    uint32_t depth;
    uint32_t meeting;                /* of the frames, those that wait for members */
    struct async_copy *copies;       /* the oldest first, see async.h */
    struct call_record *records;     /* see stack.c; the newest first */
    uint32_t groups[WARP_LANES];     /* that each lane has committed */
    uint64_t recent[RECENT_SECTORS]; /* of global memory that it has loaded, plus 1 */
};

typedef struct barrier {
    unsigned arrived, expected; /* threads */
    uint32_t warps;             /* that have arrived, a bit each */
    lane_mask any, all;         /* of bar.red: whether some and whether all predicates held */
    unsigned popc;
} barrier;

/* How a block in a stream depends on other launches; see stream.c. */
typedef struct dependence {
    bool waits;     /* griddepcontrol.wait waits: a launch ahead has not ended */
    bool pauses;    /* griddepcontrol.launch_dependents pauses the block */
    bool yields;    /* strong loads and atomic operations pause it, after a turn of its warps */
    unsigned turns; /* of its warps, after which the block pauses; 0: it does not */
    bool triggered; /* it has executed griddepcontrol.launch_dependents */
    struct overlap_block *overlap; /* NULL: no other launch runs at the same time */
} dependence;

struct machine {
    arena *arena, *messages; /* messages: of reports and warnings */
    emu_memory *memory;
    const entry *entry;
    const emu_launch_config *config;
    const emu_checks *checks;
    uint8_t *warned;  /* of each line of the entry's: a bit for each check; NULL: no warnings */
    emu_stats *stats; /* NULL: nobody wants them */
    emu_report *report;
    uint64_t block_count; /* that the launch runs */
    uint64_t first, step; /* block number i is block first + i * step, modulo their count */
    unsigned block[3];    /* the indices of this one */
    unsigned threads, warp_count;
    warp warps[MAX_WARPS];
    barrier barriers[BARRIERS];
    shared_memory shared;
    struct grid_race *grid;
    uint8_t *local, *local_written; /* local_bytes a thread, one after another */
    /* 1 for each byte with a value that nothing has written; NULL where none is carried there */
    uint8_t *shared_undefined, *local_undefined;
    unsigned watched; /* of WATCH_READS and so on */
    size_t local_bytes;
    const uint8_t *params;
    const uint64_t *globals; /* addresses of the module's variables */
    uint32_t frames;         /* room for frames in each warp */
    uint32_t own_frames;     /* that the kernel needs where no function calls itself */
    size_t stack_size;       /* of each thread */
    uint32_t *stack_used;    /* of each thread, in bytes; NULL: the entry has no stack */
    struct call_record *spare_records;
    struct async_copy *spare_copies;
    uint32_t copies;           /* that cp.async has begun in the block */
    struct async_state *async; /* mbarriers and what completes at them; NULL: none so far */
    struct wgmma_state *wgmma; /* products that go on; NULL: there was no wgmma so far */
    uint64_t thread_instructions, warp_instructions; /* of the block */
    uint64_t limit;
    dependence dependence;
    struct speculation *speculation; /* of blocks that run before their turn; NULL: they do not */
};

static inline const void *source(const warp *w, const op *o, int which)
{
    return w->file + o->src[which];
}

static inline lane_mask predicate(const warp *w, uint32_t index, bool negated)
{
    return negated ? ~w->predicates[index] : w->predicates[index];
}

/* index UINT32_MAX: nobody wants the result. */
static inline void write_predicate(warp *w, uint32_t index, lane_mask value, lane_mask mask)
{
    if (index != UINT32_MAX)
        w->predicates[index] = (w->predicates[index] & ~mask) | (value & mask);
}

static inline void set_active(warp *w, lane_mask mask)
{
    w->active = mask;
    w->active_count = count_lanes(mask);
}

static inline bool has_fault(const machine *m)
{
    return m->report->fault != EMU_OK;
}

/* After a block may have seen memory of others: where blocks run side by side, these go on. */
static inline void let_others_go_on(warp *w, const op *o)
{
    if (o->order && w->machine->dependence.yields)
        w->status = WARP_PAUSED;
}

static inline unsigned thread_of(const warp *w, int lane)
{
    return w->index * WARP_LANES + (unsigned)lane;
}

/* Reports a fault of a lane and returns false. Only the first of a launch is kept. */
bool warp_fault(warp *w, const op *o, int lane, emu_fault fault, uint64_t address,
                const char *format, ...) PRINTF_LIKE(6, 7);

/* The same for a check of a device's lenience. Returns true if the lane goes on. */
#define WARP_CHECK(w, o, lane, check, ...) \
    (warp_passes(w, o, check) || warp_check(w, o, lane, check, __VA_ARGS__))
bool warp_check(warp *w, const op *o, int lane, emu_check check, uint64_t address,
                const char *format, ...) PRINTF_LIKE(6, 7);

static inline bool warp_passes(const warp *w, const op *o, emu_check check)
{
    const machine *m = w->machine;
    emu_action action = m->checks->actions[check];
    return action == EMU_PASSES || (action == EMU_WARNS && m->warned[o->line] >> check & 1);
}

typedef enum access_kind { ACCESS_LOAD, ACCESS_STORE, ACCESS_ATOMIC, ACCESS_PREFETCH } access_kind;

/* One lane's access to size bytes. */
typedef struct access {
    warp *warp;
    const op *op;
    int lane;
    access_kind kind;
    ptx_space space;
    uint64_t address;
    unsigned size;
} access;

#define ACCESS_FAULT(x, fault, ...) \
    warp_fault((x)->warp, (x)->op, (x)->lane, fault, (x)->address, __VA_ARGS__)

#define ACCESS_CHECK(x, check, ...) \
    WARP_CHECK((x)->warp, (x)->op, (x)->lane, check, (x)->address, __VA_ARGS__)

/* Where each lane's access goes. Inactive lanes have the address of the first active one. */
typedef struct addresses {
    uint64_t at[WARP_LANES];
} addresses;

/* The lowest and the highest of them, and the bits that any has. */
typedef struct address_span {
    uint64_t lowest, highest, any;
} address_span;

static inline address_span span_of(const uint64_t at[WARP_LANES])
{
    address_span s = { .lowest = UINT64_MAX };
    for (int i = 0; i < WARP_LANES; i++) {
        s.lowest = at[i] < s.lowest ? at[i] : s.lowest;
        s.highest = at[i] > s.highest ? at[i] : s.highest;
        s.any |= at[i];
    }
    return s;
}

/* Reports a block that has run too many instructions: called by what jumps back. */
void warp_check_limit(warp *w, const op *o, lane_mask mask);

/* Returns why a lane does not take part, as in "it is inactive". */
const char *warp_absence(const warp *w, int lane);

/* Lets others have a turn: other warps and, where what this one waits for may have to come from
 * lanes of its own, or a barrier waits for lanes that come later, other lanes of this one. */
void warp_yield(warp *w, bool may_wait_for_own);

/* Resumes waiting lanes, those of the topmost frame that has some, or ends the warp. A fault if all
 * wait for members that never come. */
void warp_resume(warp *w);

/* Reports the lanes that have waited longest for members. now: where the active lanes are. */
void warp_report_meeting(warp *w, const op *now);

/* Blocks lanes at an instruction until all live lanes of the warp have come. Returns them then;
 * none: others are to come, or a fault. */
lane_mask warp_meet_all(warp *w, const op *o, lane_mask mask);

/* Resumes all warps that wait at a barrier. */
void machine_release_barrier(machine *m, unsigned id);

/* Finds the indices of the block that runs as number. */
void machine_block(const machine *m, uint64_t number, unsigned block[3]);

/* stack.c: forgets the calls and stacks of the block before. */
void stack_begin_block(machine *m);

/* block.c */

typedef enum block_status {
    BLOCK_ENDED,   /* or has met a fault */
    BLOCK_DEPENDS, /* waits for launches ahead */
    BLOCK_PAUSED,  /* as machine.dependence says */
} block_status;

/* Puts the block of indices machine.block to its start. */
void block_begin(machine *m);

/* Runs the block from where it is until it ends or is held up. */
block_status block_run(machine *m);

#endif
