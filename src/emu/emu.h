/* A GPU in software for PTX text, which checks every rule that a kernel has to keep.
 *
 * The emulator parses PTX (PTX ISA 9.0, the instructions of emu_ops.def) and runs warps of 32 lanes
 * in lockstep. Diverged lanes reconverge at immediate post-dominators. The blocks of a grid run one
 * after another, in ascending or descending order. In a stream, launches may overlap and blocks may
 * wait for one another (see emu_stream). Device memory is a fake 64-bit address space with guard
 * zones around every allocation. The emulator shares no code with the generator of the PTX.
 *
 * A kernel that breaks a rule stops at once. The report names the rule, the PTX line, the block and
 * the thread. Where the PTX ISA leaves a choice, the emulator takes the strict one unless
 * emu_checks says otherwise:
 * - Member masks: all lanes of a member mask must reach the same instruction with the same mask,
 *   except lanes that have ended or do not exist. Any two bar.warp.sync with the same mask match.
 * - Barriers: all threads of the block must reach a barrier without a thread count. The lanes of a
 *   warp must arrive converged, even at barrier.sync without .aligned.
 * - Shared memory: two threads that access a byte race if one writes and nothing orders them. A
 *   barrier orders the threads of all participating warps, bar.warp.sync the lanes of its mask.
 *   shfl, vote, match and redux order no memory accesses. Atomic operations do not race with each
 *   other, nor do lanes that store the same value in one instruction.
 * - Global memory: a block may access what another block of the launch stored only after a release
 *   by the writer and an acquire by the reader, as in the PTX ISA's memory consistency model
 *   (check/grid_order.h lists three relaxations). Strong accesses at .gpu scope do not race with
 *   each other, nor does a store of the value that memory holds already. A plain load of the result
 *   of another block's atomic operation is a race, even before a loop of atom.cas. Two threads of a
 *   block must not store different values to an address unordered. The report blames the block that
 *   runs later, when it loads or overwrites. A store after an earlier block's load is found by a
 *   launch in the opposite block order.
 * - ld.global.nc must not read memory that its own launch has stored, even from the same thread.
 * - cp.async: the issuing thread may access the destination after its wait, other threads after a
 *   barrier that follows the wait. If the copy completes at an mbarrier, only threads that observed
 *   the completed phase, or were synchronised with one of them, may access the destination.
 * - Bulk copies: a proxy fence must precede a bulk copy of bytes stored by threads. The mbarrier at
 *   which the copy completes must be fenced after its init. The shared source of a store must not
 *   change before the thread has waited for it, and the thread must wait before it ends. Copies
 *   complete as late as the rules permit (see run/async.h).
 * - wgmma: a proxy fence must precede a wgmma that reads shared memory stored by threads. Its
 *   inputs and accumulators must not change before the warp has waited, and the warp must wait
 *   before it ends.
 *
 * Supported beyond plain instructions:
 * - Calls, including assert(), printf(), malloc() and free(). A recursive function must have its
 *   parameters in .param variables, not in registers.
 * - Tensor instructions: dense mma.sync and wmma (run/matrix.h), wgmma of f16 and bf16 with f32
 *   accumulators and no transposed matrices (run/wgmma.c), ldmatrix, stmatrix, movmatrix.
 * - Asynchronous copies: cp.async, and cp.async.bulk without tensor maps and reductions.
 *
 * Clusters of more than one block are not supported.
 *
 * Threads: the emulator has no global state. A loaded module is immutable, so any number of threads
 * may launch from it at the same time. An emu_memory must be used by one thread at a time.
 *
 * Out of host memory: emu_load fails as its arena does. Functions that take an emu_memory fail as
 * the parent arena of that memory does (see arena_try). Discard the arena of a module whose load
 * failed. Everything else keeps its state, except memory that a kernel had written. */
#pragma once

#include <stdint.h>

#include "base/arena.h"

typedef struct emu_module emu_module;
typedef struct emu_memory emu_memory;

typedef enum emu_fault {
    EMU_OK,
    EMU_SYNTAX,        /* invalid PTX text, or an unknown instruction */
    EMU_BAD_LAUNCH,    /* no such entry, wrong parameter size, block differs from .reqntid, … */
    EMU_OUT_OF_BOUNDS, /* access outside every live allocation, array, parameter or stack */
    EMU_MISALIGNED,    /* address is not a multiple of the access size */
    EMU_READ_ONLY,     /* write to parameters, constants or read-only memory */
    EMU_UNDEFINED_REGISTER, /* read of a register in a lane that never wrote it */
    EMU_UNINITIALISED,      /* read of memory that was never written */
    EMU_RACE,          /* unordered accesses of two threads or blocks to one byte, one a write */
    EMU_BARRIER,       /* threads that miss a barrier or reach it diverged; a misused mbarrier */
    EMU_INACTIVE_LANE, /* a lane that must participate, as in shfl or mma.sync, does not */
    EMU_TRAP,          /* a trap instruction */
    EMU_ASSERT,        /* failed assert(); the message has one line per thread */
    EMU_UNKNOWN,       /* execution of something that the emulator does not know */
    EMU_LIMIT,         /* instruction limit exceeded: the kernel hangs */
} emu_fault;

/* A fault. message is one sentence with all figures and no full stop. */
typedef struct emu_report {
    emu_fault fault;
    const char *message;
    unsigned line; /* line of the PTX text, from 1; 0 if no line is to blame */
    unsigned block[3], thread[3];
    uint64_t address;
    size_t launch; /* in a stream: number of the launch since emu_stream_finish, from 0 */
    /* race between launches: the other launch, and the PTX line of its access */
    size_t other_launch;
    unsigned other_line;
} emu_report;

const char *emu_fault_name(emu_fault fault);

/* Checks that are stricter than a device. A check that does not stop the kernel has these effects:
 * - race: the kernel sees the values of this run's order
 * - uninit, undefined: unwritten memory and registers read as whatever they hold
 * - lanes: a shuffle from a lane that does not participate gives 0
 * - barrier: threads that have ended no longer count at barriers
 */
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
    EMU_STOPS, /* stops the kernel with a fault */
    EMU_WARNS, /* warns once per PTX line of a kernel, for the life of the memory */
    EMU_PASSES,
} emu_action;

struct emu_launch_config;

/* The action of each check. All zero stops the kernel at every finding. */
typedef struct emu_checks {
    emu_action actions[EMU_CHECK_COUNT];
    /* Undefined registers may be read. Their values are tracked through the kernel and reported
     * where one has an effect: as an address, a guard, or data stored to global memory. */
    bool carries;
    /* Called for EMU_WARNS with the report that the fault would have had. */
    void (*warn)(void *context, const struct emu_launch_config *launch, const emu_report *report);
    void *context;
} emu_checks;

/* Parses a PTX module into an arena. Returns NULL and a report on an error. emu_load_any accepts
 * unknown instructions, directives and functions; a kernel that reaches one stops (EMU_UNKNOWN). */
emu_module *emu_load(arena *a, const char *text, size_t length, emu_report *report);
emu_module *emu_load_any(arena *a, const char *text, size_t length, emu_report *report);

/* Returns an unknown item of a module, in text order: line and message. Items of a function body
 * occur once per call of it. Returns false for an index past the last. */
bool emu_unknown(const emu_module *m, size_t index, emu_report *what);

/* Properties that a module's directives declare. */
typedef struct emu_module_info {
    unsigned target; /* 80 for sm_80 */
    bool specific;   /* architecture-specific target, as sm_90a */
    unsigned isa;    /* 70 for .version 7.0 */
    size_t entry_count;
    size_t constant_bytes; /* total size of all .const variables */
} emu_module_info;
void emu_module_describe(const emu_module *m, emu_module_info *info);

/* Returns the name of an entry, in text order, or NULL for an index past the last. */
const char *emu_entry_name(const emu_module *m, size_t index);

/* Properties of a kernel. emu_entry returns false if no entry has that name. */
typedef struct emu_entry_info {
    size_t number; /* index for emu_entry_name */
    unsigned param_count;
    size_t param_bytes;
    unsigned reqntid[3], maxntid[3]; /* zeros if not declared */
    size_t shared_bytes;             /* static shared memory per block */
    size_t local_bytes;              /* local memory per thread */
    /* Maximum number of live 32-bit registers, an estimate of ptxas's allocation. */
    unsigned live_registers;
    bool triggers, waits; /* contains griddepcontrol.launch_dependents, .wait */
} emu_entry_info;
bool emu_entry(const emu_module *m, const char *name, emu_entry_info *info);

/* Finds a parameter's offset and size in the buffer. Returns false if it does not exist. */
bool emu_param(const emu_module *m, const char *entry, size_t index, size_t *offset, size_t *size);

/* Creates device memory. Addresses are aligned to 256 bytes, as cudaMalloc's are. With a parent
 * arena, running out of host memory fails as that arena does; free the memory before the arena. */
emu_memory *emu_memory_new(arena *parent);
void emu_memory_free(emu_memory *m);

/* Allocates uninitialised bytes: a read before a write is a fault. Returns 0 if out of memory. */
uint64_t emu_alloc(emu_memory *m, size_t size);

/* Allocates zeros. Only pages that are written take host memory. */
uint64_t emu_alloc_sparse(emu_memory *m, uint64_t size);

/* Gives a device address to the caller's memory, which is not copied and counts as initialised. */
uint64_t emu_map(emu_memory *m, void *bytes, size_t size, bool read_only);

/* Makes the caller's memory accessible and writable at its host address. */
uint64_t emu_map_here(emu_memory *m, void *bytes, size_t size);

/* Reserves addresses backed by bytes. Kernels and the host can access only granules of EMU_GRANULE
 * bytes that emu_set_access has opened. Returns 0 if out of host memory. */
enum { EMU_GRANULE = 2 << 20 };
typedef enum emu_access_right { EMU_NO_ACCESS, EMU_LOADS, EMU_LOADS_AND_STORES } emu_access_right;
uint64_t emu_reserve(emu_memory *m, void *bytes, size_t size);

/* Sets a range's rights. Returns false without effect unless it is granules of a reservation. */
bool emu_set_access(emu_memory *m, uint64_t address, uint64_t size, emu_access_right right);

/* Allocates virtual_size bytes, e.g. of a large cache: byte i reads as bytes[i % size] until it is
 * written. bytes must outlive the allocation. read_only: kernels cannot write. */
uint64_t emu_map_pattern(emu_memory *m, uint64_t virtual_size, const void *bytes, size_t size,
                         bool read_only);

/* Frees an allocation. Returns false and does nothing unless address is the start of a live
 * allocation that is not a module's variable. emu_find tells whether it was freed before. */
bool emu_free(emu_memory *m, uint64_t address);

/* Host access. Returns false and does nothing unless the range lies in one live allocation. The
 * host may write memory that is read-only to kernels, including .const variables. */
bool emu_write(emu_memory *m, uint64_t address, const void *bytes, size_t size);
bool emu_read(const emu_memory *m, uint64_t address, void *bytes, size_t size);

/* Writes count consecutive copies of an element of 1 to 4096 bytes. */
bool emu_fill(emu_memory *m, uint64_t address, const void *element, size_t element_size,
              uint64_t count);

/* Copies within device memory, with the state of uninitialised bytes. The ranges may overlap. */
bool emu_copy(emu_memory *m, uint64_t to, uint64_t from, size_t size);

/* Returns true if all of these bytes were written since the allocation or emu_clear_written. */
bool emu_written(const emu_memory *m, uint64_t address, size_t size);
void emu_clear_written(emu_memory *m, uint64_t address);

/* Returns an offset from the given one on before which no byte was written, or the size. */
uint64_t emu_next_written(const emu_memory *m, uint64_t address, uint64_t offset);

/* Returns true if all of these bytes are initialised: mapped, or written since emu_alloc. */
bool emu_initialised(const emu_memory *m, uint64_t address, size_t size);

/* Sets whether unknown launches may store to an allocation: see emu_stream_config. */
void emu_set_changing(emu_memory *m, uint64_t address, bool changing);

/* Returns the bytes of an allocation's 32-byte sectors that launches with stats have loaded.
 * Sectors count once per warp, even if the warp loads them again shortly after. */
uint64_t emu_loaded(const emu_memory *m, uint64_t address);

/* A copy of all allocations that kernels can write, except those of emu_map_here. Restore and
 * compare skip freed allocations. emu_snapshot_differs sets address to the first difference. */
typedef struct emu_snapshot emu_snapshot;
emu_snapshot *emu_snapshot_new(arena *a, const emu_memory *m);
void emu_snapshot_restore(const emu_snapshot *s, emu_memory *m);
bool emu_snapshot_differs(const emu_snapshot *s, const emu_memory *m, uint64_t *address);

typedef struct emu_allocation {
    uint64_t address, size;
    bool freed;    /* the memory is gone; its addresses are never reused */
    bool variable; /* a module's variable */
} emu_allocation;

/* Finds the allocation, live or freed, with an address or a guard zone around it, or false. */
bool emu_find(const emu_memory *m, uint64_t address, emu_allocation *found);

/* Lists allocations of emu_alloc and the emu_map functions that are not freed, in order of
 * allocation, emu_map_here last. At the end of a program these are leaks. Fills list up to room and
 * returns the full count. Sets total, unless NULL, to the sum of their bytes. */
size_t emu_live(const emu_memory *m, emu_allocation *list, size_t room, uint64_t *total);

/* Finds a .global or .const variable of a module in this memory. Each memory has its own copy,
 * initialised from the text. Returns false if no variable has that name. */
bool emu_variable(emu_memory *m, const emu_module *module, const char *name, uint64_t *address,
                  size_t *size);

/* Creates a module's variables, which otherwise happens on first use. */
void emu_module_place(emu_memory *m, const emu_module *module);

/* Frees a module's variables. Call it before the module's arena is freed. */
void emu_module_forget(emu_memory *m, const emu_module *module);

enum { EMU_MOST_THREADS = 64 };

typedef struct emu_launch_config {
    const emu_checks *checks; /* NULL: every finding stops the kernel */
    const emu_module *module;
    const char *entry;
    unsigned grid[3], block[3];
    size_t dynamic_shared;
    const void *const *params; /* one pointer per parameter, as for cuLaunchKernel */
    size_t param_count;
    const uint64_t *blocks; /* linear indices of the blocks to run; NULL = the whole grid */
    size_t block_count;
    bool descending;            /* runs blocks from the last to the first; CUDA promises no order */
    size_t stack_size;          /* bytes per thread, at most 512 KiB; 0 = 1024 */
    uint64_t instruction_limit; /* instructions of all threads of one block; 0 = 2^36 */
    bool no_race_check;
    /* Host threads that run independent blocks of an emu_launch, at most EMU_MOST_THREADS; 0 and 1:
     * only the caller. Results are the same for any number. The caller runs all callbacks. */
    unsigned threads;
    uint64_t *speculated_blocks; /* incremented by the committed speculative blocks; may be NULL */
    /* Receives the output of printf, one call per thread's printf. NULL discards it. */
    void (*print)(void *context, const char *text, size_t length);
    void *print_context;
    uint64_t watch; /* global address whose stores emu_stats.watched_line records; 0 = none */
    /* Cooperative launch in a stream: address of 16 zero bytes for the grid barrier, passed to the
     * kernel in %envreg1 (high half) and %envreg2 (low half). All blocks are resident; a block
     * yields to the others after a strong load or an atomic operation. 0 = not cooperative. */
    uint64_t grid_workspace;
} emu_launch_config;

typedef struct emu_stats {
    uint64_t thread_instructions, warp_instructions;
    uint64_t global_load_bytes, global_store_bytes; /* bytes that lanes requested */
    uint64_t global_load_sectors;                   /* 32-byte sectors of warp-wide loads */
    uint64_t global_load_passes;    /* clocks of the L1 cache for warp-wide loads: see traffic.c */
    uint64_t global_prefetches;     /* addresses that lanes prefetch; bulk: one per 128 bytes */
    uint64_t shared_bank_conflicts; /* additional passes over 32 banks of 4 bytes */
    bool waited;                    /* in a stream: the launch executed griddepcontrol.wait */
    unsigned watched_line; /* PTX line of the last store to emu_launch_config.watch; 0 = none */
} emu_stats;

/* Runs a kernel. Returns false and a report on a fault. Adds to stats, which may be NULL. */
bool emu_launch(emu_memory *m, const emu_launch_config *config, emu_stats *stats,
                emu_report *report);

/* A stream: launches that run in order and, if programmatic, overlap as on sm_90 or newer.
 *
 * Rules of the order:
 * - A programmatic launch begins when every block of its predecessor has ended or executed
 *   griddepcontrol.launch_dependents. Its griddepcontrol.wait waits until the predecessor has
 *   ended.
 * - Any other launch begins when all its predecessors have ended.
 * - At most three launches are in flight. A suspended block keeps its registers and shared memory.
 *   A launch suspends blocks of at most 64 MiB together, but always at least two.
 *
 * order chooses which block runs when. It is at most as adverse as a device may be:
 *
 *     0, 3, 6, …   suspends blocks at their trigger; the successor begins and runs to its waits as
 *                  early as possible
 *     1, 4, 7, …   as late as possible: nothing overlaps
 *     2, 5, 8, …   random: suspends blocks at triggers and between rounds of their warps
 *
 * Orders 0 to 2 begin blocks in ascending order, others in a shuffled order. Equal orders give
 * equal runs.
 *
 * Two launches race (EMU_RACE) if both access a byte, one stores, and nothing orders the later
 * launch after the earlier one. The race is found in every order. The message has both kernels,
 * both lines and the name of the memory. Three rules decide the order of launches:
 * - Only griddepcontrol.wait orders a programmatic launch after its predecessor. Neither its begin
 *   does, nor a predecessor without griddepcontrol.launch_dependents.
 * - A wait is not transitive over a predecessor that ends without waiting: launches before that
 *   predecessor may still run.
 * - Memory that ld.global.nc loads must not change while its launch runs. Even after a wait, the
 *   load need not see what a predecessor stored since the launch began.
 *
 * See overlap_order.h and overlap_race.c. */
typedef struct emu_stream emu_stream;

/* A range of device memory and its name in reports. */
typedef struct emu_range {
    const char *name;
    uint64_t address, size;
} emu_range;

typedef struct emu_stream_config {
    uint64_t order;
    const emu_range *ranges; /* may overlap; must outlive the stream */
    size_t range_count;
    /* The first launch, if programmatic, follows unknown launches. Before its wait it must not
     * store, and must not load from allocations that they may change (emu_set_changing). */
    bool has_predecessors;
} emu_stream_config;

emu_stream *emu_stream_new(emu_memory *m, const emu_stream_config *config);

/* Sets the order of launches added from now on. All earlier launches must have run. */
void emu_stream_set_order(emu_stream *s, uint64_t order);

/* Adds a launch, which runs in emu_stream_finish. stats, which may be NULL, must live until then,
 * the module as long as the stream. Returns false and a report if the launch is invalid. */
bool emu_stream_launch(emu_stream *s, const emu_launch_config *config, bool programmatic,
                       emu_stats *stats, emu_report *report);

/* Runs all launches. Returns false and a report on a fault; drops unfinished launches. */
bool emu_stream_finish(emu_stream *s, emu_report *report);

/* Frees a stream and drops launches that have not run. */
void emu_stream_free(emu_stream *s);
