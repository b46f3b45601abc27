/* The cost model: predicts on paper how long a kernel takes on a GPU. A launch has three parts.
 *
 * start   Memory idles until the first weights arrive. The launch makes dependent round trips: for
 *         the lengths and addresses that its first loads need, for x where blocks keep it in shared
 *         memory, and for the first loads. All blocks take x through the ports of their SMs. A
 * kernel that prefetches its first weights into the L2 keeps memory busy while x is staged.
 *
 * middle  The largest of these times, or more where others are nearly as large. Products on tensor
 *         cores and of several vectors take nearly the sum (see time_together in predict.c).
 *
 *         memory   Every byte of inputs and outputs once, at the bandwidth that reads reach, or at
 *                  the target's share of it where each warp reads rows of its own.
 *         issue    The instructions of the busiest SM, through its schedulers.
 *         latency  Each lane asks for some bytes and waits for them: bytes in flight per round trip
 *                  in the slot that has most blocks; and what one SM takes from the L2.
 *         balance  Memory's time until all but the busiest SMs are done, then the rest of the
 *                  busiest, where these alone cannot keep memory busy.
 *         tensor   The products of the busiest SM on its tensor cores.
 *         shared   The bytes that lanes of the busiest SM load from and store to shared memory, in
 *                  lines of all banks.
 *
 * end     The round trips of a last block that merges the results of the others.
 *
 * Where launches overlap, a kernel with a settled state makes its round trips for lengths and
 * addresses before its wait, and prefetches rows of K and V. That is free while the launch ahead
 * leaves room for its blocks and leaves memory idle. Weights that other kernels prefetch there are
 * part of the measured cost of overlapped steps: see plan_cost.c.
 *
 * What a launch prefetches for the next one (KEY_NEXT) arrives from its last loads on: while it
 * ends, while the next one is launched, and during the start of that. Memory's time is shorter by
 * as much.
 *
 * The model leaves out what stays in caches, how many misses a cache can have pending, and clocks
 * that fall under load. plan_cost.h adds what a launch costs in a graph.
 */
#ifndef PTXGEN_COST_COST_H
#define PTXGEN_COST_COST_H

#include "base/strbuf.h"
#include "kernel/family.h"
#include "kernel/target.h"

/* Figures that were counted in the machine code of a kernel for one target. A unit of work is a
 * weight or an element of a cache, for all vectors that it is loaded for, as the mark of the hot
 * loop says in the PTX. Kernels without a loop do one value a thread. */
typedef struct cost_figures {
    unsigned sm;
    bool specific;       /* the kernel runs on its target alone; its products are by wgmma */
    unsigned registers;  /* of a thread */
    unsigned shared;     /* static bytes of a block */
    double instructions; /* of a lane, a unit */
    double beside;       /* instructions of a warp outside its loop, where blocks do not stay */
    double load_bytes;   /* average of a load of device memory in the loop */
    double unit_bytes;   /* of device memory, a unit, each counted once */
    double turn;         /* units of a lane in a turn of the loop */
    double in_flight; /* bytes that a lane waits for at a time, each counted once; of kernels with
                         stages a chunk's, of which all stages but one are waited for */
    /* Of kernels on tensor cores, a unit; else 0. */
    double products;     /* of a warp, 16 x 8 x 16 */
    double shared_bytes; /* that a lane loads from and stores to shared memory */
    double x_bytes;      /* of x that a lane loads */
} cost_figures;

/* The figures of one kernel: the first of its family, weights and number of vectors. */
typedef struct cost_row {
    const char *family;          /* NULL ends the table */
    format weights;              /* FORMAT_NONE: the family has none */
    unsigned m;                  /* see cost_vectors; 0: the family has no m */
    const cost_figures *figures; /* oldest target first, sm_90a after sm_90; sm = 0 ends them */
} cost_row;

/* costs.tsv, which embed_costs.c turns into C while building. */
extern const cost_row cost_table[];
extern const char cost_table_ptxas[]; /* the version of ptxas: "13.0.88" */

/* Returns the number of vectors that a kernel loads a weight for: the key m, or of experts'
 * products on tensor cores the rows of a tile. For a value of a cache: the number of query heads.
 */
unsigned cost_vectors(const instance *in);

/* Finds the figures of an instance for a target, or for the newest counted target before it.
 * Between two counted numbers of vectors they are interpolated. A kernel of several matrices that
 * was not counted, or whose matrices differ in format, gets the average of its matrices by their
 * rows, from the family that streams one matrix (family.each_matrix). Returns false if nothing was
 * counted. */
bool cost_find(const instance *in, const target *t, cost_figures *found);

/* The work of a launch at the sizes of its instance; all positions of caches are valid. */
typedef struct cost_work {
    double units;      /* of all lanes */
    double unit_bytes; /* of memory, a unit that shares them with none */
    double bytes;      /* of inputs and outputs */
    double
        trips_ahead; /* dependent round trips before the first units: their number and addresses */
    double trips_behind; /* and of a last block after all others */
    double early;        /* seconds of the launch ahead in which this one can work: see cost_room */
    double fetched; /* bytes of its first reads that a launch ahead has prefetched into the L2 */
    double idle;    /* seconds before its start in which memory has only that to do */
    int64_t rows;   /* of x, of which a block has as many as the key m says */
} cost_work;
cost_work cost_work_of(arena *a, const instance *in);

/* The same for a kernel of any number of rows, with this number. */
cost_work cost_work_of_rows(arena *a, const instance *in, int64_t rows);

/* Returns the values of a parameter that a launch reads or writes: all of them; of an embedding the
 * rows of m tokens; of experts those that m rows use (see cost_experts); of caches that it writes m
 * positions. */
double cost_touched(const instance *in, const param *p);

/* Positions of a cache that predictions assume where there may be more. */
enum { COST_USUAL_POSITIONS = 4096 };

/* Returns the number of experts that m rows use together, on average where each row chooses its own
 * with equal chances. */
double cost_experts(const problem_shape *s);

/* Returns true if a kernel multiplies experts' rows by tiles; and the average number of these
 * tiles, of all experts together, with a partial tile counted as one. */
bool cost_has_expert_tiles(const instance *in);
double cost_expert_tiles(const instance *in);

/* A GPU as the model sees it. */
typedef struct cost_gpu {
    const target *target;
    double sm_count;
    double clock;       /* Hz */
    double bandwidth;   /* bytes a second that reads reach */
    double tensor_fmas; /* of an SM in a clock */
    double wgmma_fmas;  /* the same by wgmma, or 0 */
} cost_gpu;

/* Returns the GPU of a part of a target's architecture; without a part the one of the target's row,
 * or of the newest row before it that has one. */
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
    unsigned warps_sm;   /* that registers and shared memory allow on an SM */
    double in_flight_sm; /* bytes that these wait for */
    double start;        /* seconds until weights arrive */
    double ahead;        /* seconds of the start in which memory already works on the first reads */
    double times[BOUND_COUNT]; /* of a grid that may be too small to fill the SMs */
    cost_bound bound;          /* the largest of the times */
    double end;                /* seconds of a last block after all others */
    double total;              /* of the launch; HUGE_VAL if a block has no room on an SM */
} cost_prediction;

/* Predicts a launch. The sizes of the instance must be known. */
cost_prediction cost_predict(const cost_figures *f, const instance *in, const cost_work *work,
                             const cost_gpu *gpu);

typedef struct cost_kernel {
    const cost_figures *figures;
    const instance *in;
    const cost_work *work;
} cost_kernel;

/* Returns the seconds of a launch in which the next one can do what comes before its wait for free:
 * all but memory's time if an SM has room for blocks of both, as many of each as alone; else 0. */
double cost_room(const cost_kernel *ahead, double seconds, const cost_kernel *behind,
                 const cost_gpu *gpu);

/* Returns the bytes that a launch prefetches for the next one: see KEY_NEXT. */
double cost_fetches(const cost_kernel *k, const cost_gpu *gpu);

/* Returns the seconds of a kernel of which only its bytes are known: a round trip and the reads. */
double cost_of_bytes(double bytes, const cost_gpu *gpu);

/* Returns a lower bound for all kernels of a family that costs no formula. */
double cost_least(const cost_figures *f, const family *of, const cost_work *work,
                  const cost_gpu *gpu);

/* Appends the table of ptxgen --list -v: the families on the part of one architecture, at a usual
 * shape of each: the feed-forward matrix of an 8B model, 8192 positions of its cache, 8 sequences
 * where a batch is left to the run. Returns false if the architecture has no part. */
bool cost_list(strbuf *out, const target *t);

/* Appends the same families on all architectures that have a part: the time of each, and the first
 * letter of its bound. */
void cost_summary(strbuf *out);

/* Returns the instance that a target gets for one with variant = auto, chosen for this target and
 * excluding all others, that fits the shared memory of some GPUs (0: of the target). Candidates are
 * the families of the same operation that take the same parameters, with all their numbers of warps
 * and rows; none that rounds x where precision = f32, and none that has not been counted. Keys that
 * only the chosen family has are at their defaults. Sizes that are left to the run count as those
 * of an 8B model. Where no candidate has been counted it is the asked family itself.
 *
 * Its name is not made yet. Predicted: the model's figures for what is chosen, or NULL. */
instance cost_choose(const instance *asked, const target *t, target_set gpus,
                     cost_prediction *predicted);

/* Settings of a kernel that are slower by less than this factor are no worse: the model cannot
 * tell. */
#define COST_WORTH_IT 1.01

/* Calls attempt with each combination of the keys that change how a kernel computes and not what:
 * warps, rows at once. The candidate ends with the last of them. */
typedef void cost_attempt(const instance *candidate, void *context);
void cost_try_settings(instance *candidate, cost_attempt *attempt, void *context);

#endif
