/* GPU architectures, one row each: the only place with their limits.
 *
 * Sources:
 *  - limits: CUDA C++ Programming Guide, "Compute Capabilities"; sm_110: CUDA 13.0 cuda_occupancy.h
 *  - isa: PTX ISA, ".target", the first version with the architecture
 *  - parts: NVIDIA's data sheets of T4, A100 80GB SXM and H200; white papers on GA102, Ada and RTX
 *    Blackwell. The driver gives the clocks of H200 and B200 and the B200's bandwidth (7680 bits at
 *    2 * 3996 MHz): the data sheets have no clock, and round the bandwidth up to 8 TB/s.
 *  - l2_sm: RTX 2080 Ti, A100, RTX 3090, AGX Orin, RTX 4090, H200, B200, B300, AGX Thor (by its
 *    driver), RTX 5090, GB10
 *  - tensor_fmas: peaks of f16 with f32 sums in the same papers (on GeForce half of those with f16
 *    sums); H200 and B200: the A100's mma.sync, since their peaks are for other instructions
 *  - wgmma_fmas: the H200's peak
 *  - byte_fmas: as tensor_fmas, int8 without sparsity: 130 TOPS, 624, 284, 661, and 838 (RTX 5090)
 *  - rows_apart: a cycle-level simulation of a full TU102 with GDDR6; it shows no loss on A100 and
 *    H100; others were not simulated
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

typedef struct target {
    const char *name;             /* "sm_80" */
    unsigned sm;                  /* 80 */
    unsigned isa;                 /* lowest PTX ISA version, times ten: 70 is 7.0 */
    uint32_t shared_static;       /* maximum bytes of static shared memory per block */
    uint32_t shared_block;        /* maximum bytes of shared memory per block, with opt-in */
    uint32_t shared_sm;           /* bytes of shared memory per SM */
    uint32_t warps_sm, blocks_sm; /* maximum resident warps and blocks per SM */
    unsigned rows_apart; /* percent of the bandwidth left if each warp reads rows of its own, which
                            needs more DRAM pages than stay open */
    uint32_t l2_sm;      /* bytes of L2 per SM, of a typical part */
    bool specific;       /* runs only on this architecture, with instructions that only it has */
    const char *gpus;    /* well-known GPUs of the architecture */
} target;

enum { TARGET_LINE = 128, WARP = 32 /* lanes per warp */ };

/* Returns the bytes that a warp may prefetch into L2 before its loads, a multiple of a line: half
 * of its share with 24 warps per SM, at most two lines per lane. */
unsigned target_bytes_ahead(const target *t);

/* Returns true if launches on a target may start before their predecessors have finished. */
bool target_overlaps(const target *t);

/* CUDA's limits on all targets, and an upper bound of the SMs of any GPU. */
enum {
    TARGET_MOST_GRID_X = INT32_MAX,
    TARGET_MOST_GRID_YZ = 65535,
    TARGET_MOST_THREADS = 1024, /* threads per block */
    TARGET_REGISTERS = 65536,   /* 32-bit registers per SM, and per block */
    TARGET_MOST_SMS = 65536
};

/* All targets, oldest first. Of one architecture, the general target precedes the specific one. */
extern const target targets[];
extern const size_t target_count;

/* Returns the target with a name, or NULL. */
const target *target_find(const char *name);

typedef uint32_t target_set;
enum { TARGET_MOST = 32 }; /* maximum targets of a set */
target_set target_bit(const target *t);

/* Writes the names of a set's targets, oldest first: "sm_86, sm_89". */
void target_print_set(strbuf *out, target_set set);

/* Returns true if a GPU runs kernels of a target: an older one, or its own letter (sm_90a). */
bool target_runs(const target *gpu, const target *of);

/* Returns the index of the newest target, oldest first, whose kernels a GPU runs, or count. */
size_t target_newest_for(const target *gpu, const target *const *of, size_t count);

/* Returns the warps that an SM holds with a number of registers per thread. An SM has four
 * partitions with a quarter of the registers each, and every fourth warp. */
unsigned target_warps_with(unsigned registers);

/* Returns the most registers per thread for a number of warps on an SM. */
unsigned target_registers_for(unsigned warps);

/* Returns the resident blocks per SM. registers 0: not counted. */
unsigned target_blocks_per_sm(const target *t, unsigned threads, unsigned registers, size_t shared);

/* A GPU for the cost model, with published figures. */
typedef struct gpu_part {
    const char *name;
    unsigned sm;
    unsigned sm_count;
    unsigned clock_mhz;      /* boost clock */
    unsigned bandwidth_gbps; /* device memory bandwidth, 10^9 bytes per second */
    unsigned tensor_fmas;    /* f16 multiply-adds with f32 sums per SM and clock, by mma.sync */
    unsigned wgmma_fmas;     /* the same by wgmma; 0: not on this architecture */
    unsigned byte_fmas;      /* the same of 8-bit integers, by mma.sync */
} gpu_part;

/* Returns the part of a target's architecture, or NULL. */
const gpu_part *target_part(const target *t);

/* Warp instructions that an SM issues per clock on all targets: one per scheduler. */
enum { TARGET_ISSUE_SLOTS = 4 };
