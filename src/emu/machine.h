/* A machine runs a block: its warps, memory and state. An emu_launch has one machine per host
 * thread, which runs blocks one after another. In a stream, each block in flight has a machine. */
#pragma once

#include "emu/module.h"

enum { MAX_WARPS = 32, BARRIERS = 16 };

/* Copiers write to shared memory for asynchronous copies. Their numbers follow those of threads. */
enum { SHARED_COPIERS = 64, FIRST_COPIER = MAX_WARPS * WARP_LANES };

/* The history of some bytes of shared memory: see check/shared_race.h. */
typedef struct shared_record {
    uint32_t written, read;  /* times; 0 = not since the launch began */
    uint32_t readers;        /* bit mask of warps that read at that time */
    uint32_t reader_lanes;   /* union of these warps' lanes that read */
    uint16_t writer, reader; /* threads; MANY_READERS = more than one */
    uint16_t atomic;         /* true if the last write was atomic */
} shared_record;

/* Per lane and other lane of a warp: the time before which the other's accesses are visible. */
typedef uint32_t lanes_seen[WARP_LANES][WARP_LANES];

/* A vector clock: times before which a warp's accesses are visible and its writes fenced. */
typedef struct shared_view {
    uint32_t seen[MAX_WARPS], copiers[SHARED_COPIERS], fenced[MAX_WARPS];
} shared_view;

/* For each observing warp, the parts of its view on copiers and fences. */
typedef struct shared_copiers {
    uint32_t seen[MAX_WARPS][SHARED_COPIERS];
    uint32_t fenced[MAX_WARPS][MAX_WARPS];
} shared_copiers;

typedef struct shared_memory {
    uint8_t *bytes;
    size_t size;
    arena *arena;
    shared_record *records; /* one per word; describes only the first byte of a split word */
    shared_record *others;  /* of the other three bytes; NULL before any word is split */
    uint8_t *split;         /* per word: true if its bytes have separate records */
    uint32_t now, began;    /* current time, and time of the block's start */
    uint32_t warp_time[MAX_WARPS];
    uint32_t sync_time[MAX_WARPS];       /* of the last synchronisation; not of shared_tick */
    uint32_t seen[MAX_WARPS][MAX_WARPS]; /* [warp][other]: accesses before this are visible */
    uint32_t seen_of_all[MAX_WARPS];     /* minimum of seen[warp] over the block's warps */
    lanes_seen *seen_lanes[MAX_WARPS];   /* additional visibility between its lanes, or NULL */
    /* per byte: 1 + the thread that copies to it, or a PENDING_ mark; NULL before the first copy */
    uint16_t *pending;
    uint16_t *readers;       /* per byte: number of asynchronous readers; NULL before the first */
    shared_copiers *copiers; /* NULL before the first mbarrier or proxy fence */
    unsigned warps;          /* number of warps of the block */
    bool race_check;
} shared_memory;

typedef struct machine machine;

/* Suspended lanes of a warp: they resume at pc and run until they reach reconverge. */
typedef struct frame {
    uint32_t pc, reconverge;
    lane_mask mask;
    const op *waits_at; /* the instruction where they wait for members; NULL = runnable */
    lane_mask members;  /* the member mask */
} frame;

enum { SECTOR_BYTES = 32, RECENT_SECTORS = 256 };

/* Moves the item at a list position to the front of another list, and sets item to it. */
#define LIST_MOVE(item, at, to) \
    ((item) = *(at), *(at) = (item)->next, (item)->next = (to), (to) = (item))

typedef enum warp_status {
    WARP_RUNS,
    WARP_WAITS,   /* at a barrier */
    WARP_DEPENDS, /* at griddepcontrol.wait, for preceding launches */
    WARP_YIELDS,  /* lets the other warps run, since it may poll what they store */
    WARP_PAUSED,  /* by dependence.pauses or dependence.yields */
    WARP_ENDED,
} warp_status;

struct warp {
    machine *machine;
    uint8_t *file;         /* registers, see op.dst */
    lane_mask *predicates; /* one bit per lane */
    lane_mask *defined;    /* lanes that wrote a tracked register, or in which a carried register is
                              defined */
    uint32_t pc, reconverge;
    lane_mask active;  /* lanes that run now */
    lane_mask alive;   /* lanes that have not ended */
    lane_mask present; /* lanes that exist: fewer than 32 in the last warp of some blocks */
    lane_mask carry;   /* CC.CF, the carry flag, per lane */
    unsigned active_count;
    unsigned polls; /* strong loads and atomic operations since its last yield */
    unsigned index;
    warp_status status;
    unsigned barrier; /* index of the barrier where it waits */
    const op *waits;  /* instruction where it waits */
    frame *frames;
    uint32_t depth;
    uint32_t waiting_frames;         /* number of frames that wait for members */
    struct async_copy *copies;       /* oldest first, see async.h */
    struct call_record *records;     /* newest first, see stack.c */
    uint32_t groups[WARP_LANES];     /* cp.async groups committed per lane */
    uint64_t recent[RECENT_SECTORS]; /* 1 + sector numbers of recent global loads */
};

typedef struct barrier {
    unsigned arrived, expected; /* number of threads */
    uint32_t warps;             /* bit mask of warps that have arrived */
    lane_mask any, all;         /* results of bar.red .or and .and */
    unsigned popc;
} barrier;

/* How other launches of the stream suspend a block; see stream.c. */
typedef struct dependence {
    bool waits;     /* griddepcontrol.wait blocks: the preceding launch has not ended */
    bool pauses;    /* griddepcontrol.launch_dependents suspends the block */
    bool yields;    /* a strong access suspends the block after a round of its warps */
    unsigned turns; /* warp runs until the block is suspended; 0 = never */
    bool triggered; /* the block has executed griddepcontrol.launch_dependents */
    struct overlap_block *overlap; /* NULL: no other launch runs at the same time */
} dependence;

struct machine {
    arena *arena, *messages; /* messages: holds the texts of reports and warnings */
    emu_memory *memory;
    const entry *entry;
    const emu_launch_config *config;
    const emu_checks *checks;
    uint8_t *warned;  /* per PTX line, a bit per check that has warned; NULL: no warnings */
    emu_stats *stats; /* may be NULL */
    emu_report *report;
    uint64_t block_count; /* number of blocks that the launch runs */
    uint64_t first, step; /* the i-th block to run is number (first + i * step) mod block_count */
    unsigned block[3];    /* indices of the running block */
    unsigned threads, warp_count;
    warp warps[MAX_WARPS];
    barrier barriers[BARRIERS];
    shared_memory shared;
    struct grid_race *grid;
    uint8_t *local, *local_written; /* local_bytes per thread, consecutive */
    /* Per byte, 1 if its value is undefined; NULL if the entry stores no undefined values. */
    uint8_t *shared_undefined, *local_undefined;
    unsigned watched; /* mask of WATCH_ bits */
    size_t local_bytes;
    const uint8_t *params;
    const uint64_t *globals; /* addresses of the module's variables */
    uint32_t frames;         /* capacity of warp.frames */
    uint32_t own_frames;     /* frames that the kernel needs without recursion */
    size_t stack_size;       /* bytes per thread */
    uint32_t *stack_used;    /* bytes per thread in use; NULL if the entry has no stack */
    struct call_record *spare_records;
    struct async_copy *spare_copies;
    uint32_t copies;           /* cp.async operations begun in the block */
    struct async_state *async; /* mbarriers and bulk copies; NULL before the first use */
    struct wgmma_state *wgmma; /* wgmma in flight; NULL before the first use */
    uint64_t thread_instructions, warp_instructions; /* instructions that the block has run */
    uint64_t limit;
    dependence dependence;
    struct speculation *speculation; /* of a machine that runs blocks speculatively; NULL: in
                                        order */
};

static inline const void *source(const warp *w, const op *o, int which)
{
    return w->file + o->src[which];
}

static inline lane_mask predicate(const warp *w, uint32_t index, bool negated)
{
    return negated ? ~w->predicates[index] : w->predicates[index];
}

/* Writes a predicate, or nothing if index is UINT32_MAX. */
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

/* Suspends the warp after a strong access in a cooperative launch, so that other blocks can run. */
static inline void warp_suspend_cooperative(warp *w, const op *o)
{
    if (o->order && w->machine->dependence.yields)
        w->status = WARP_PAUSED;
}

static inline unsigned thread_of(const warp *w, int lane)
{
    return w->index * WARP_LANES + (unsigned)lane;
}

/* Reports a fault of a lane and returns false. Only the first fault of a launch is kept. */
bool warp_fault(warp *w, const op *o, int lane, emu_fault fault, uint64_t address,
                const char *format, ...) PRINTF_LIKE(6, 7);

/* Reports a finding of a check as a fault or a warning. Returns true if the lane continues. */
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

/* The address of each lane's access. Inactive lanes have the address of the first active lane. */
typedef struct addresses {
    uint64_t at[WARP_LANES];
} addresses;

/* The lowest and the highest address, and the OR of all. */
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

/* Reports a fault if the block has exceeded its instruction limit. Called at backward jumps. */
void warp_check_limit(warp *w, const op *o, lane_mask mask);

/* Returns why a lane does not participate: "has ended", "is inactive", … */
const char *warp_absence(const warp *w, int lane);

/* Lets other warps run, and other lanes if may_wait_for_own or barriers count live threads. */
void warp_yield(warp *w, bool may_wait_for_own);

/* Resumes suspended lanes or ends the warp. Faults if all wait for members that cannot come. */
void warp_resume(warp *w);

/* Reports the lanes that have waited longest for members. now: instruction of the active lanes. */
void warp_report_missing(warp *w, const op *now);

/* Blocks lanes until all live lanes arrive. Returns these, or 0 until then or on a fault. */
lane_mask warp_converge(warp *w, const op *o, lane_mask mask);

/* Resumes all warps that wait at a barrier. */
void machine_release_barrier(machine *m, unsigned id);

/* Returns the indices of the number-th block to run. */
void machine_block(const machine *m, uint64_t number, unsigned block[3]);

/* Drops the call records and stacks of the previous block. In stack.c. */
void stack_begin_block(machine *m);

/* block.c */

typedef enum block_status {
    BLOCK_ENDED,   /* or met a fault */
    BLOCK_DEPENDS, /* waits for preceding launches */
    BLOCK_PAUSED,  /* suspended, see dependence */
} block_status;

/* Resets the machine to the start of block machine.block. */
void block_begin(machine *m);

/* Runs the block until it ends or is suspended. */
block_status block_run(machine *m);
