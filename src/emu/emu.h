/* A CPU emulator for PTX text: a GPU that checks everything it is asked to do.
 *
 * It parses PTX (PTX ISA 9.0, the instructions listed in emu_ops.def) and runs kernels with 32-lane
 * warps in lockstep, reconverging at immediate post-dominators. Blocks of a grid run one after the
 * other, forwards or backwards. In a stream, launches may overlap where they ask for it, and blocks
 * may wait for one another (emu_stream). Device memory is a fake 64-bit address space with guard
 * zones around every allocation. The emulator knows nothing of how the PTX was made.
 *
 * A kernel that breaks a rule stops at once with a report of the rule, the PTX line, the block and
 * the thread. Where the PTX ISA leaves room, the emulator is strict unless emu_checks say
 * otherwise:
 * - All lanes that a member mask names must reach the same instruction with the same mask, except
 *   lanes that have ended or that the block does not have. bar.warp.sync may meet any other one.
 * - All threads of a block must reach a barrier that names no thread count, and all lanes of a warp
 *   together, at barrier.sync without .aligned as well.
 * - Accesses to shared memory by two threads, one of them a write, race unless something orders
 *   them. A barrier orders all threads of the warps that take part, bar.warp.sync the lanes of its
 *   mask; shfl, vote, match and redux order no memory accesses. Atomic operations do not race with
 *   each other, nor do lanes that store the same value at once.
 * - What a block stores to global memory, other blocks of the launch touch only after one has
 *   released it and the other acquired it: the PTX ISA's memory consistency model, in which three
 *   points are relaxed (see check/grid_order.h). Strong accesses at .gpu scope, such as atomic
 *   operations, do not race with each other, nor do stores of the value that is there already. A
 *   plain load of what another block's atomic operation has left is a race, also before a loop of
 *   atom.cas. Two threads of a block don't store different values to a place unordered. The block
 *   that runs later is at fault, and only where it loads or overwrites: a store after the load of
 *   an earlier block is found in a launch that runs the blocks the other way.
 * - ld.global.nc reads nothing that its launch has stored, not even by the same thread.
 * - The target of a cp.async is not touched before its thread has waited for it, by other threads
 *   not before a barrier after that. A target that completes at an mbarrier is touched only by
 *   threads that have found its phase complete, or met one that has.
 * - A bulk copy touches what a thread has stored only after a proxy fence, and completes only at an
 *   mbarrier whose initialisation a fence follows. What a bulk copy to global memory reads is not
 *   changed before its thread has waited for it, which the thread does before it ends. Copies
 *   complete as late as they may (see run/async.h).
 * - A wgmma reads what threads have stored only after a proxy fence. Nobody changes that, or the
 *   registers that it adds to, before its warp has waited for it, which it does before it ends.
 *
 * Calls are run, also those of assert(), printf(), malloc() and free(). A function that calls
 * itself has its parameters in .param variables, not in registers. The tensor instructions are
 * mma.sync and wmma (see run/matrix.h) but for sparse matrices, wgmma of f16 and bf16 with sums of
 * f32 (see run/wgmma.c) of matrices that are not transposed, ldmatrix, stmatrix and movmatrix;
 * asynchronous copies are cp.async and cp.async.bulk without tensor maps and reductions, with
 * groups and mbarriers. Clusters of several blocks are not supported.
 *
 * Threads: nothing here is global. A loaded module is never changed, and any number of threads may
 * launch from it at the same time. An emu_memory belongs to one thread at a time.
 *
 * When the host's memory runs out, emu_load fails as its arena does, and every function that takes
 * an emu_memory as the arena does that this was made in (see arena_try). A module that was not
 * loaded has to go with its arena. All else is left as it was, except what a kernel had written.
 */
#ifndef PTXGEN_EMU_EMU_H
#define PTXGEN_EMU_EMU_H

#include <stdint.h>

#include "base/arena.h"

typedef struct emu_module emu_module;
typedef struct emu_memory emu_memory;

typedef enum emu_fault {
    EMU_OK,
    EMU_SYNTAX,     /* the PTX text is not what the PTX ISA allows, or an instruction is unknown */
    EMU_BAD_LAUNCH, /* no such entry, wrong parameter size, block differs from .reqntid, … */
    EMU_OUT_OF_BOUNDS,      /* access outside of every live allocation, array or parameter */
    EMU_MISALIGNED,         /* address is not a multiple of the access size */
    EMU_READ_ONLY,          /* write to parameter or constant space */
    EMU_UNDEFINED_REGISTER, /* a register is read in a lane that never wrote it */
    EMU_UNINITIALISED,      /* memory without content is read */
    EMU_RACE,    /* two threads touch one byte of shared memory, or two blocks one of global memory,
                    one writing, with nothing that orders the two */
    EMU_BARRIER, /* some threads of the block never reach a barrier others wait at, or divergent */
    EMU_INACTIVE_LANE, /* a lane that must take part, as in shfl or mma.sync, does not */
    EMU_STACK,         /* a trap instruction was reached */
    EMU_ASSERT,        /* the message has a line for each thread of the warp, as a driver's has */
    EMU_UNKNOWN,       /* an instruction was reached that the emulator does not know */
    EMU_LIMIT,         /* the instruction limit was reached: the kernel hangs */
} emu_fault;

/* What went wrong. message is one sentence with all the figures and ends without a full stop. */
typedef struct emu_report {
    emu_fault fault;
    const char *message;
    unsigned line; /* of the PTX text, from 1; 0 where no line is to blame */
    unsigned block[3], thread[3];
    uint64_t address;
    size_t launch; /* of a stream: which launch since it was last finished, from 0 */
    /* of a race between launches: the other one, and the line of its access */
    size_t other_launch;
    unsigned other_line;
} emu_report;

const char *emu_fault_name(emu_fault fault);

/* Checks for what a device lets pass. Where a check passes, a race gives the values of this run,
 * unwritten memory and registers hold whatever is there, a shuffle from a lane that does not take
 * part gives 0, and a barrier does not wait for threads that have ended. */
typedef enum emu_check {
    EMU_CHECK_RACE,
    EMU_CHECK_UNINIT,
    EMU_CHECK_UNDEFINED,
    EMU_CHECK_LANES,
    EMU_CHECK_BARRIER,
    EMU_CHECK_COUNT,
} emu_check;

const char *emu_check_name(emu_check check);

typedef enum emu_action {
    EMU_STOPS, /* the kernel, with a fault */
    EMU_WARNS, /* once for each line of a kernel as long as the memory lives */
    EMU_PASSES,
} emu_action;

struct emu_launch_config;

/* What is done when a check finds something; all zero: it stops the kernel. */
typedef struct emu_checks {
    emu_action actions[EMU_CHECK_COUNT];
    /* An undefined register may be read: its value is tracked, and found where it decides something
     * (an address, a guard, what is stored to global memory). */
    bool carries;
    /* Called where an action is EMU_WARNS, with what would be the report of a fault. */
    void (*warn)(void *context, const struct emu_launch_config *launch, const emu_report *report);
    void *context;
} emu_checks;

/* Parse a PTX module into an arena. Return NULL and a report on an error, of which emu_load_any
 * makes what is unknown none: a kernel stops where it reaches that (EMU_UNKNOWN). */
emu_module *emu_load(arena *a, const char *text, size_t length, emu_report *report);
emu_module *emu_load_any(arena *a, const char *text, size_t length, emu_report *report);

/* Returns what is unknown in a module, in the order of the text: line and message. A function's are
 * there once for each of its calls. False for an index past the last. */
bool emu_unknown(const emu_module *m, size_t index, emu_report *what);

/* What the head of a module says. */
typedef struct emu_module_info {
    unsigned target; /* 80 for sm_80 */
    bool specific;   /* it runs there alone, as sm_90a */
    unsigned isa;    /* 70 for .version 7.0 */
    size_t entry_count;
    size_t constant_bytes; /* of all .const variables */
} emu_module_info;
void emu_module_describe(const emu_module *m, emu_module_info *info);

/* Returns the name of an entry in the order of the text; NULL for an index past the last. */
const char *emu_entry_name(const emu_module *m, size_t index);

/* What a loaded kernel declares; false when there is no entry of that name. */
typedef struct emu_entry_info {
    size_t number; /* in the order of the text, as emu_entry_name takes it */
    unsigned param_count;
    size_t param_bytes;
    unsigned reqntid[3], maxntid[3]; /* zeros where not declared */
    size_t shared_bytes;             /* static */
    size_t local_bytes;              /* of a thread */
    /* 32-bit registers that hold live values at the same time where most do: about what ptxas
     * allocates, which may spend more to hide latencies or fewer by reordering. */
    unsigned live_registers;
    bool triggers, waits; /* it has griddepcontrol.launch_dependents and .wait */
} emu_entry_info;
bool emu_entry(const emu_module *m, const char *name, emu_entry_info *info);

/* Finds a parameter in the buffer of a launch, in bytes. False: no such entry or parameter. */
bool emu_param(const emu_module *m, const char *entry, size_t index, size_t *offset, size_t *size);

/* Device memory. Addresses are aligned to 256 bytes as cudaMalloc's are. Memory made in an arena,
 * if parent is not NULL, fails as that does, and is freed before that. */
emu_memory *emu_memory_new(arena *parent);
void emu_memory_free(emu_memory *m);

/* Allocates bytes without content: reading them before a write is a fault. 0: no memory. */
uint64_t emu_alloc(emu_memory *m, size_t size);

/* Allocates zeros that cost no more memory than the pages written to. */
uint64_t emu_alloc_sparse(emu_memory *m, uint64_t size);

/* Allocate over memory of the caller's, not copied, all initialised: with an address of its own, or
 * writable at the host's address. */
uint64_t emu_map(emu_memory *m, void *bytes, size_t size, bool read_only);
uint64_t emu_map_here(emu_memory *m, void *bytes, size_t size);

/* Reserves addresses, whose memory is in bytes: kernels and the host reach what emu_set_access
 * gives them, EMU_GRANULE bytes at a time. 0 if the host has no memory. */
enum { EMU_GRANULE = 2 << 20 };
typedef enum emu_access_right { EMU_NO_ACCESS, EMU_LOADS, EMU_LOADS_AND_STORES } emu_access_right;
uint64_t emu_reserve(emu_memory *m, void *bytes, size_t size);

/* False, and nothing done, where the range is not inside of one reservation, in whole granules. */
bool emu_set_access(emu_memory *m, uint64_t address, uint64_t size, emu_access_right right);

/* An allocation of any size whose bytes come into being when first written, and hold bytes[offset %
 * size] before, offset counted from the start of the allocation: for caches too large to exist.
 * bytes must outlive it. Read-only where so said: emu_write alone writes. */
uint64_t emu_map_pattern(emu_memory *m, uint64_t virtual_size, const void *bytes, size_t size,
                         bool read_only);

/* False, and nothing done, when address is not the start of a live allocation: one that was freed
 * before (emu_find tells), an address inside of one, or of a module's variable. */
bool emu_free(emu_memory *m, uint64_t address);

/* The host's own access. False, and nothing done, where the range is not inside of one live
 * allocation. The host may write what is read-only to kernels, .const variables among it. */
bool emu_write(emu_memory *m, uint64_t address, const void *bytes, size_t size);
bool emu_read(const emu_memory *m, uint64_t address, void *bytes, size_t size);

/* count copies of an element (1 to 16 bytes) one behind another. */
bool emu_fill(emu_memory *m, uint64_t address, const void *element, size_t element_size,
              uint64_t count);

/* Copies within device memory, also between overlapping ranges, and which bytes have no content. */
bool emu_copy(emu_memory *m, uint64_t to, uint64_t from, size_t size);

/* Returns true if all of these bytes were written since emu_alloc or emu_clear_written. */
bool emu_written(const emu_memory *m, uint64_t address, size_t size);
void emu_clear_written(emu_memory *m, uint64_t address);

/* Returns the first offset from one on near which something may have been written so: all that lies
 * between the two was not. The allocation's size if there is none. */
uint64_t emu_next_written(const emu_memory *m, uint64_t address, uint64_t offset);

/* Returns true if all of these bytes have content: mapped, or written since emu_alloc. */
bool emu_initialised(const emu_memory *m, uint64_t address, size_t size);

/* Says whether launches that are not known may store to an allocation: see
 * emu_stream_config.behind. */
void emu_set_changing(emu_memory *m, uint64_t address, bool changing);

/* Bytes of an allocation's 32-byte sectors that launches with stats have loaded so far. What a warp
 * loads again a little later counts once; what several warps load counts for each. */
uint64_t emu_loaded(const emu_memory *m, uint64_t address);

/* The content of all allocations that kernels can write to, in an arena. It is put back into, or
 * compared with, the allocations of these that are still live: address is the first that differs.
 */
typedef struct emu_snapshot emu_snapshot;
emu_snapshot *emu_snapshot_new(arena *a, const emu_memory *m);
void emu_snapshot_restore(const emu_snapshot *s, emu_memory *m);
bool emu_snapshot_differs(const emu_snapshot *s, const emu_memory *m, uint64_t *address);

typedef struct emu_allocation {
    uint64_t address, size;
    bool freed;    /* there is nothing any more; no other allocation will get these addresses */
    bool variable; /* of a module */
} emu_allocation;

/* The allocation, live or freed, that address is inside of or, where none is, the one whose guard
 * zone it is in (so that the caller can say by how much it missed). False: far from all. */
bool emu_find(const emu_memory *m, uint64_t address, emu_allocation *found);

/* What emu_alloc and the emu_map functions have given and emu_free has not taken back, in the order
 * of allocation: leaks, when asked at the end. Fills list up to room; returns how many there are.
 * total, where not NULL, is set to their bytes. */
size_t emu_live(const emu_memory *m, emu_allocation *list, size_t room, uint64_t *total);

/* The .global or .const variable of a module in this memory, where each memory has its own copy;
 * its content is what the text says until somebody writes it. False when there is no such name. */
bool emu_variable(emu_memory *m, const emu_module *module, const char *name, uint64_t *address,
                  size_t *size);

/* Brings a module's variables into being, as otherwise what needs them first does. Frees them: call
 * this before the module's arena goes. */
void emu_module_place(emu_memory *m, const emu_module *module);
void emu_module_forget(emu_memory *m, const emu_module *module);

enum { EMU_MOST_THREADS = 64 };

typedef struct emu_launch_config {
    const emu_checks *checks; /* NULL: whatever is found stops the kernel */
    const emu_module *module;
    const char *entry;
    unsigned grid[3], block[3];
    size_t dynamic_shared;
    const void *const *params; /* one pointer a parameter, as cuLaunchKernel takes them */
    size_t param_count;
    const uint64_t *blocks; /* linear indices of the blocks to run; NULL: the whole grid */
    size_t block_count;
    bool descending;            /* from the last block to the first: no order of them is promised */
    size_t stack_size;          /* of a thread, 512 KiB at most; 0: 1024 bytes */
    uint64_t instruction_limit; /* of one block's threads together; 0: 2^36 */
    bool no_race_check;
    /* Blocks of one that is launched by itself run on this many threads, EMU_MOST_THREADS at most,
     * where they do not depend on each other; 0 and 1: on this one. All that comes out is the same
     * for any number. What is called back is so on this thread. */
    unsigned threads;
    uint64_t *ahead; /* how many of them did is added to it; NULL: nobody asks */
    /* What the kernel prints, a call for each thread's printf; NULL: it is not heard. */
    void (*print)(void *context, const char *text, size_t length);
    void *print_context;
    uint64_t watch; /* a global address whose stores are noted in emu_stats; 0: none */
    /* Of a cooperative launch, which runs in a stream: 16 bytes of zeros that its blocks meet at,
     * as %envreg1 (high) and %envreg2 (low) say. All blocks run beside one another, and one that
     * loads strongly or has an atomic operation lets the others go on. 0: one after another. */
    uint64_t grid_workspace;
} emu_launch_config;

typedef struct emu_stats {
    uint64_t thread_instructions, warp_instructions;
    uint64_t global_load_bytes, global_store_bytes; /* as asked for by the lanes */
    uint64_t global_load_sectors;                   /* 32-byte sectors touched by warp-wide loads */
    uint64_t global_prefetches;     /* addresses of lanes; in bulk, of each 128 bytes */
    uint64_t shared_bank_conflicts; /* extra passes over 32 banks of 4 bytes */
    bool waited;           /* of a launch in a stream: it has executed griddepcontrol.wait */
    unsigned watched_line; /* PTX line of the last st to emu_launch_config.watch; 0: none */
} emu_stats;

/* Runs a kernel to its end. False and a report on a fault; what blocks wrote before stays written.
 * stats may be NULL; figures are added to it. */
bool emu_launch(emu_memory *m, const emu_launch_config *config, emu_stats *stats,
                emu_report *report);

/* A stream: launches that run one behind another and, where they are programmatic, beside each
 * other, as a device of sm_90 or newer may run them.
 *
 * A programmatic launch begins as soon as every block of the launch ahead has executed
 * griddepcontrol.launch_dependents or ended, and griddepcontrol.wait waits until the launch ahead
 * has ended. Another launch begins when all launches ahead have ended. Up to three launches run at
 * a time; a block that is held up keeps its registers and its shared memory, and as many blocks are
 * held up as that needs no more than 64 MiB a launch (but at least two).
 *
 * order chooses which block runs when, and is at most as adverse as a device may be:
 *
 *     0, 3, 6, …   blocks are held up where they have triggered, and what is behind begins and runs
 *                  to its waits as early as possible
 *     1, 4, 7, …   as late as possible: nothing overlaps
 *     2, 5, 8, …   at random, held up at triggers and anywhere else between turns of its warps
 *
 * 0 to 2 begin blocks from the first to the last, others in an order of their own. The same order
 * gives the same run.
 *
 * Two launches that touch a byte, one of them storing, with nothing that makes the later one come
 * after the earlier one, are a race: EMU_RACE, whichever order they happen to run in, with both
 * kernels, lines, and the name of what they touch in the message. Nothing but a wait orders a
 * programmatic launch after the one ahead: not that it has begun, nor that the one ahead executes
 * no griddepcontrol.launch_dependents; and where a launch ends without waiting, neither does one
 * that waits for it come after the launch before that. And what ld.global.nc loads must not
 * change while its launch runs: it does not see what a launch ahead stores meanwhile, even after a
 * wait. See overlap_order.h and overlap_race.c. */
typedef struct emu_stream emu_stream;

/* A range of device memory, and what a report calls it. */
typedef struct emu_range {
    const char *name;
    uint64_t address, size;
} emu_range;

typedef struct emu_stream_config {
    uint64_t order;
    const emu_range *ranges; /* may overlap; they outlive the stream */
    size_t range_count;
    /* The first launch, where it is programmatic, is after launches that are not known: before
     * its wait it stores nothing, and loads nothing that they may change (emu_set_changing). */
    bool behind;
} emu_stream_config;

emu_stream *emu_stream_new(emu_memory *m, const emu_stream_config *config);

/* Sets the order of launches that are added from now on. All earlier ones must have run. */
void emu_stream_set_order(emu_stream *s, uint64_t order);

/* Adds a launch, which runs when the stream is finished: until then stats, which may be NULL, must
 * not go, and the module not before the stream does. False and a report where the launch is wrong.
 */
bool emu_stream_launch(emu_stream *s, const emu_launch_config *config, bool programmatic,
                       emu_stats *stats, emu_report *report);

/* Runs all launches to their end. False and a report on a fault; launches that have not ended are
 * dropped, and what they wrote stays written. */
bool emu_stream_finish(emu_stream *s, emu_report *report);

/* With launches that have not run. */
void emu_stream_free(emu_stream *s);

#endif
