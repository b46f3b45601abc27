/* GPU architectures: one row each, the only place that knows their limits.
 *
 * Source: CUDA C++ Programming Guide, "Compute Capabilities"; PTX ISA, ".target" (the first PTX ISA
 * version that has the architecture); cuda_occupancy.h of CUDA 13.0 for sm_110. Parts: NVIDIA's
 * data sheets of the T4, A100 80GB SXM and H200, and its architecture white papers on GA102, Ada
 * and RTX Blackwell. Data sheets of the H200 and the B200 name no clock, and round the B200's
 * bandwidth up to 8 TB/s: theirs are what the driver says (7680 bits at 2 * 3996 MHz). l2_sm: of
 * the RTX 2080 Ti, A100, RTX 3090, AGX Orin, RTX 4090, H200, B200 and B300, AGX Thor (by its
 * driver), RTX 5090 and GB10. tensor_fmas: those of the peaks that the same sheets and papers have
 * for f16 with f32 sums (half of those with f16 sums on GeForce parts); of an H200 and a B200,
 * whose peaks are those of other instructions, what an A100's mma.sync has; wgmma_fmas: that of
 * the H200's peak. rows_apart: a
 * cycle-level simulation of a full TU102 with GDDR6; of an A100 and an H100 it has no loss, and
 * others were not simulated.
 */
#ifndef PTXGEN_KERNEL_TARGET_H
#define PTXGEN_KERNEL_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

typedef struct target {
    const char *name;             /* "sm_80" */
    unsigned sm;                  /* 80 */
    unsigned isa;                 /* lowest PTX ISA version, times ten: 70 is 7.0 */
    uint32_t shared_static;       /* bytes a block may declare */
    uint32_t shared_block;        /* bytes a block may have, the rest dynamic and opted into */
    uint32_t shared_sm;           /* bytes of an SM */
    uint32_t warps_sm, blocks_sm; /* resident at most */
    unsigned rows_apart; /* percent of the bandwidth that are left where each warp reads rows of its
                            own: more pages of memory at a time than stay open */
    uint32_t l2_sm;      /* bytes of the L2 cache, an SM's share of them, of a usual part */
    bool specific;       /* runs on this architecture alone, with instructions that only it has */
    const char *gpus;    /* whose architecture it is, in a few words */
} target;

/* Bytes that a warp may have fetched into the L2 cache ahead of its loads, a multiple of a line:
 * where an SM has 24 such warps, half of its share, but no more than two lines a lane. */
enum { TARGET_LINE = 128, WARP = 32 /* lanes */ };
unsigned target_bytes_ahead(const target *t);

/* Returns true if launches may start on a target before the launches ahead have finished. */
bool target_overlaps(const target *t);

/* What CUDA allows on all of them; and more SMs than any GPU has. */
enum {
    TARGET_MOST_GRID_X = INT32_MAX,
    TARGET_MOST_GRID_YZ = 65535,
    TARGET_MOST_THREADS = 1024, /* of a block */
    TARGET_REGISTERS = 65536,   /* of 32 bits, of an SM, and of a block */
    TARGET_MOST_SMS = 65536
};

/* The oldest first; of one architecture the one whose kernels run on newer ones, too. */
extern const target targets[];
extern const size_t target_count;

/* NULL for an architecture that is not in the table. */
const target *target_find(const char *name);

/* Some of the targets, a bit each. */
typedef uint32_t target_set;
enum { TARGET_MOST = 32 }; /* targets of a set */
target_set target_bit(const target *t);

/* Writes the names of a set, oldest first: "sm_86, sm_89". */
void target_print_set(strbuf *out, target_set set);

/* Returns true if a GPU of an architecture runs kernels of a target: any older one, and of targets
 * with letters (sm_90a) its own alone. */
bool target_runs(const target *gpu, const target *of);

/* Returns the index of the newest of some targets, oldest first, whose kernels a GPU runs; count
 * if it runs none. */
size_t target_newest_for(const target *gpu, const target *const *of, size_t count);

/* Returns how many warps an SM holds if a thread has that many registers. An SM has four parts with
 * a quarter of the registers each, and every fourth warp goes to the same part. */
unsigned target_warps_with(unsigned registers);

/* Returns the most registers a thread may have if an SM is to hold that many warps. The launch of a
 * block that an SM cannot hold fails. */
unsigned target_registers_for(unsigned warps);

/* Blocks resident on one SM, by registers, shared memory (bytes a block) and the limits of the SM.
 */
unsigned target_blocks_per_sm(const target *t, unsigned threads, unsigned registers, size_t shared);

/* One GPU of an architecture, for the cost model: published figures. */
typedef struct gpu_part {
    const char *name;
    unsigned sm;
    unsigned sm_count;
    unsigned clock_mhz;      /* boost */
    unsigned bandwidth_gbps; /* of device memory, 10^9 bytes a second */
    unsigned tensor_fmas;    /* f16 times f16, added up as f32, of an SM in a clock, by mma.sync; */
    unsigned wgmma_fmas;     /* by wgmma, where the architecture's own target has it, or 0 */
} gpu_part;

/* NULL where the table has none of the architecture. */
const gpu_part *target_part(const target *t);

/* Warp instructions that an SM starts in a clock: one a scheduler, the same on all targets. */
enum { TARGET_ISSUE_SLOTS = 4 };

#endif
