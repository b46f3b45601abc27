/* The cost model predicts how long a kernel takes on a GPU. A launch has three parts.
 *
 * start   The time until the first weights arrive, in which memory is idle. The launch makes
 *         dependent round trips: for lengths and addresses, for x if blocks stage it in shared
 *         memory, and for the first loads. All blocks load x through the L2 ports of their SMs.
 *         A kernel that prefetches its first weights into the L2 keeps memory busy while it
 *         stages x.
 *
 * middle  The largest of the times below, or more if others are nearly as large. Tensor-core
 *         products and products of several vectors take nearly the sum (see time_together in
 *         predict.c).
 *
 *         memory   All bytes of inputs and outputs once, at the achievable bandwidth, or at the
 *                  target's fraction of it if each warp reads its own rows.
 *         issue    The instructions of the busiest SM, at its schedulers' rate.
 *         latency  Bytes in flight per round trip, in the slot with the most blocks; and the
 *                  bytes that one SM loads from the L2.
 *         balance  Memory's time until only the busiest SMs have work, then the rest of the
 *                  busiest, if these SMs cannot saturate memory.
 *         tensor   The products of the busiest SM on its tensor cores.
 *         shared   The bytes that the busiest SM loads from and stores to shared memory, in lines
 *                  of all banks, and the clocks of its L1 cache, which is the same memory.
 *
 * end     The round trips of a last block that merges the results of the others.
 *
 * If launches overlap, a kernel with a settled state makes its round trips for lengths and
 * addresses before its wait, and prefetches rows of K and V. That costs nothing while the
 * predecessor leaves memory idle and has room for its blocks. Weights that other kernels prefetch
 * there are part of the measured cost of overlapped steps (see plan_cost.c).
 *
 * Bytes that a launch prefetches for its successor (KEY_NEXT) arrive from its last loads on: during
 * its end, the successor's launch, and the successor's start. Memory's time of the successor is
 * shorter by that.
 *
 * The model ignores cache hits, limits of pending cache misses, and clocks that drop under load.
 * plan_cost.h adds the cost of a launch in a graph. */
#pragma once

#include "base/strbuf.h"
#include "kernel/family.h"
#include "kernel/target.h"

/* Figures counted in the machine code of a kernel for one target. A unit of work is a weight or a
 * cache element, for all vectors that share its load. The hot loop's mark in the PTX gives the
 * number of units. A kernel without a loop processes one value per thread. */
typedef struct cost_figures {
    unsigned sm;
    bool specific;       /* target-specific kernel, whose products use wgmma */
    unsigned registers;  /* registers per thread */
    unsigned shared;     /* bytes of static shared memory per block */
    double instructions; /* instructions per lane and unit */
    double beside;       /* instructions of a warp outside the loop */
    double load_bytes;   /* average bytes of a global load in the loop */
    double unit_bytes;   /* bytes of global memory per unit, without duplicates */
    double turn;         /* units per lane in a loop iteration */
    double in_flight;    /* bytes in flight per lane, without duplicates. With stages: bytes of one
                         chunk, of which all but one are in flight */
    double l1_clocks;    /* clocks of the L1 cache for the loads of 32 lanes, per unit: see
                            emu_stats.global_load_passes. 0: not counted */
    /* Per unit, only for tensor-core kernels; 0 for others. */
    double products;     /* 16 x 8 x 16 products of a warp */
    double shared_bytes; /* bytes of shared memory that a lane loads and stores */
    double x_bytes;      /* bytes of x that a lane loads */
} cost_figures;

/* The figures of one kernel, which represents its family, format and number of vectors. */
typedef struct cost_row {
    const char *family;          /* NULL in the last row */
    format weights;              /* FORMAT_NONE for a family without weights */
    unsigned m;                  /* number of vectors (see cost_vectors); 0 without the key m */
    const cost_figures *figures; /* by target, oldest first; ends with sm = 0 */
} cost_row;

/* Contents of costs.tsv, which embed_costs.c converts to C at build time. */
extern const cost_row cost_table[];
extern const char cost_table_ptxas[]; /* version of the counting ptxas: "13.0.88" */

/* Returns the number of vectors that share the load of a weight: the key m, or as many of them as a
 * block has, or the rows of a tile for tensor-core products of experts. For attention: query heads
 * per cache value. */
unsigned cost_vectors(const instance *in);

/* Returns the number of blocks that load a weight, each for some of a launch's rows of x. */
double cost_row_groups(const instance *in, int64_t rows);

/* Finds the figures of an instance for a target, or for the newest counted target before it.
 * Interpolates between two counted numbers of vectors. If a kernel of several matrices is not
 * counted, or its matrices have different formats, averages the figures of family.each_matrix over
 * the matrices, weighted by rows. Returns false if nothing is counted. */
bool cost_find(const instance *in, const target *t, cost_figures *found);

/* The work of a launch at its instance's sizes, with full caches. */
typedef struct cost_work {
    double units;       /* units of all lanes */
    double unit_bytes;  /* bytes of memory of a unit that shares no bytes with others */
    double bytes;       /* bytes of inputs and outputs */
    double first_trips; /* dependent round trips before the first units, e.g. for addresses */
    double last_trips;  /* dependent round trips of a last block after all others */
    double early;       /* seconds of overlap with the predecessor: see cost_room */
    double fetched; /* bytes of the first reads that the predecessor has prefetched into the L2 */
    double idle;    /* seconds before the start in which memory serves only that prefetch */
    int64_t rows;   /* rows of x; a block has as many as the key m */
} cost_work;
cost_work cost_work_of(arena *a, const instance *in);

/* Returns the work of a kernel for any number of rows, with this number. */
cost_work cost_work_of_rows(arena *a, const instance *in, int64_t rows);

/* Returns the number of values of a parameter that a launch reads or writes. Usually all; for an
 * embedding m rows; for experts the ones that m rows use (see cost_experts); for written caches m
 * positions. */
double cost_touched(const instance *in, const param *p);

/* Number of cache positions that predictions assume if a cache may have more. */
enum { COST_USUAL_POSITIONS = 4096 };

/* Returns the average number of experts that m rows use, with uniformly random choices. */
double cost_experts(const problem_shape *s);

/* Return true if a kernel multiplies experts' rows by tiles, and the average number of tiles of all
 * experts, where a partial tile counts as one. */
bool cost_has_expert_tiles(const instance *in);
double cost_expert_tiles(const instance *in);

/* Maximum bytes per clock that an SM loads from the L2 (of Volta, measured: Jia et al., 2018). */
enum { COST_PORT_BYTES = 64 };

/* Properties of a GPU for the model. */
typedef struct cost_gpu {
    const target *target;
    double sm_count;
    double clock;       /* Hz */
    double bandwidth;   /* achievable bytes per second of reads */
    double tensor_fmas; /* FMAs per clock and SM on tensor cores */
    double wgmma_fmas;  /* the same for wgmma, or 0 */
    double byte_fmas;   /* the same for 8-bit integers */
} cost_gpu;

/* Return the GPU of a part, and of a target's part or the newest older target's. */
cost_gpu cost_gpu_of_part(const target *t, const gpu_part *part);
cost_gpu cost_gpu_of(const target *t);

typedef enum cost_bound {
    BOUND_MEMORY,
    BOUND_ISSUE,
    BOUND_LATENCY,
    BOUND_BALANCE,
    BOUND_TENSOR,
    BOUND_SHARED,
    BOUND_COUNT
} cost_bound;
extern const char *const cost_bound_names[BOUND_COUNT];

typedef struct cost_prediction {
    unsigned warps_sm;   /* resident warps per SM, limited by registers and shared memory */
    double in_flight_sm; /* bytes in flight per SM */
    double start;        /* seconds until the first weights arrive */
    double ahead;        /* seconds of the start in which memory already serves the first reads */
    double times[BOUND_COUNT]; /* seconds by bound */
    cost_bound bound;          /* bound with the largest time */
    double end;                /* seconds of a last block after all others */
    double total;              /* seconds of the launch; HUGE_VAL if a block does not fit an SM */
} cost_prediction;

/* Predicts a launch. All sizes of the instance must be known. */
cost_prediction cost_predict(const cost_figures *f, const instance *in, const cost_work *work,
                             const cost_gpu *gpu);

typedef struct cost_kernel {
    const cost_figures *figures;
    const instance *in;
    const cost_work *work;
} cost_kernel;

/* Returns the seconds of a launch in which its successor can work before its wait at no cost: the
 * time without memory's time if the blocks of both fit an SM together, otherwise 0. */
double cost_room(const cost_kernel *ahead, double seconds, const cost_kernel *behind,
                 const cost_gpu *gpu);

/* Returns the bytes that a launch prefetches for its successor (see KEY_NEXT). */
double cost_fetches(const cost_kernel *k, const cost_gpu *gpu);

/* Returns the seconds of a kernel with only its bytes known: a round trip and the reads. */
double cost_of_bytes(double bytes, const cost_gpu *gpu);

/* Returns a lower bound for all kernels of a family, without evaluating formulas. */
double cost_least(const cost_figures *f, const family *of, const cost_work *work,
                  const cost_gpu *gpu);

/* Appends the table of ptxgen --list -v --target: all families on the part of an architecture, at
 * usual shapes: the feed-forward matrix of an 8B model, 8192 cache positions, 8 sequences for a
 * run-time batch. Returns false if the architecture has no part. */
bool cost_list(strbuf *out, const target *t);

/* Appends the table of ptxgen --list -v: the times of all families on all architectures with a
 * part, and the first letter of each bound. */
void cost_summary(strbuf *out);

/* Returns the instance for a request with variant = auto on one target; all other targets are
 * excluded. It fits the shared memory of gpus (0: of the target). Candidates are families of the
 * same operation with the same parameters, with all numbers of warps and rows. Families that are
 * not counted are excluded, and with precision = f32 families that round x. Keys of only the chosen
 * family have their defaults. Sizes that are known at run time count as those of an 8B model.
 * Without a counted candidate, returns the requested family.
 *
 * The instance has no name yet. predicted receives the prediction, or is NULL. */
instance cost_choose(const instance *asked, const target *t, target_set gpus,
                     cost_prediction *predicted);

/* Settings slower than the best by less than this factor count as equal. */
#define COST_WORTH_IT 1.01

/* Calls attempt for each combination of the keys that change how a kernel computes but not its
 * result: warps, rows at once. The candidate keeps the last combination. */
typedef void cost_attempt(const instance *candidate, void *context);
void cost_try_settings(instance *candidate, cost_attempt *attempt, void *context);
