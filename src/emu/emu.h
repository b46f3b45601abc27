/* A CPU emulator for PTX text: a GPU that checks everything it is asked to do.
 *
 * It parses PTX (PTX ISA 9.0, the instructions listed in emu_ops.def) into a form of its own and
 * runs kernels with 32-lane warps in lockstep, reconverging at immediate post-dominators. Blocks of
 * a grid run one after the other. Device memory is a fake 64-bit address space in which every
 * allocation has guard zones around it, so that an address formed by wrong arithmetic never lands
 * in another allocation.
 *
 * Where the PTX ISA leaves room, the emulator is strict: all lanes that a member mask names must
 * take part, ended ones too; all threads of a block must reach a barrier that names no thread
 * count; lanes of a warp do not see each other's shared memory before they synchronise. Calls are
 * not supported, nor are cp.async, mbarrier, clusters and tensor instructions.
 *
 * A kernel that breaks a rule stops at once with a report that names the rule, the PTX line, the
 * block and the thread: see emu_fault. The emulator knows nothing of how the PTX was made.
 */
#ifndef PTXGEN_EMU_EMU_H
#define PTXGEN_EMU_EMU_H

#include <stdbool.h>
#include <stddef.h>
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
    EMU_UNINITIALISED, /* memory (shared, local, or global allocated without content) read before
                          written */
    EMU_RACE, /* two threads touch one shared-memory byte, one writing, with no barrier between */
    EMU_BARRIER, /* some threads of the block never reach a barrier others wait at, or divergent */
    EMU_INACTIVE_LANE, /* a shuffle or vote names a lane that does not take part */
    EMU_STACK,         /* call depth, or trap instruction reached */
    EMU_LIMIT,         /* the instruction limit was reached: the kernel hangs */
} emu_fault;

/* What went wrong. message is one sentence with all the figures and ends without a full stop. */
typedef struct emu_report {
    emu_fault fault;
    const char *message;
    unsigned line; /* of the PTX text, from 1; 0 where no line is to blame */
    unsigned block[3], thread[3];
    uint64_t address;
} emu_report;

const char *emu_fault_name(emu_fault fault);

/* Parses a PTX module. NULL and a report on an error. The module lives in the arena. */
emu_module *emu_load(arena *a, const char *text, size_t length, emu_report *report);

/* What a loaded kernel declares; false when there is no entry of that name. */
typedef struct emu_entry_info {
    unsigned param_count;
    size_t param_bytes;
    unsigned reqntid[3]; /* zeros where not declared */
    size_t shared_bytes; /* static */
} emu_entry_info;
bool emu_entry(const emu_module *m, const char *name, emu_entry_info *info);

/* Device memory. Addresses are aligned to 256 bytes as cudaMalloc's are. A memory is used by one
 * launch at a time; give each thread its own. */
emu_memory *emu_memory_new(void);
void emu_memory_free(emu_memory *m);

/* size bytes without content: reading them before a write is a fault. */
uint64_t emu_alloc(emu_memory *m, size_t size);

/* An allocation over memory of the caller's, not copied, all initialised; read-only where so said.
 */
uint64_t emu_map(emu_memory *m, void *bytes, size_t size, bool read_only);

/* An allocation of any size whose bytes come into being when first written, and hold bytes[offset %
 * size] before, offset counted from the start of the allocation: for caches too large to exist.
 * bytes are copied. */
uint64_t emu_map_pattern(emu_memory *m, uint64_t virtual_size, const void *bytes, size_t size);

bool emu_free(emu_memory *m, uint64_t address);
bool emu_write(emu_memory *m, uint64_t address, const void *bytes, size_t size);
bool emu_read(const emu_memory *m, uint64_t address, void *bytes, size_t size);

/* Whether a kernel (or emu_write) has written all of these bytes since emu_alloc or
 * emu_clear_written. */
bool emu_written(const emu_memory *m, uint64_t address, size_t size);
void emu_clear_written(emu_memory *m, uint64_t address);

typedef struct emu_launch_config {
    const emu_module *module;
    const char *entry;
    unsigned grid[3], block[3];
    size_t dynamic_shared;
    const void *const *params; /* one pointer a parameter, as cuLaunchKernel takes them */
    size_t param_count;
    const uint64_t *blocks; /* linear indices of the blocks to run; NULL: the whole grid */
    size_t block_count;
    uint64_t instruction_limit; /* of one block's threads together; 0: 2^36 */
    bool no_race_check;
} emu_launch_config;

typedef struct emu_stats {
    uint64_t thread_instructions, warp_instructions;
    uint64_t global_load_bytes, global_store_bytes; /* as asked for by the lanes */
    uint64_t global_load_sectors;                   /* 32-byte sectors touched by warp-wide loads */
    uint64_t shared_bank_conflicts;                 /* extra passes over 32 banks of 4 bytes */
} emu_stats;

/* Runs a kernel to its end. False and a report on a fault; what blocks wrote before stays written.
 * stats may be NULL; figures are added to it. */
bool emu_launch(emu_memory *m, const emu_launch_config *config, emu_stats *stats,
                emu_report *report);

#endif
