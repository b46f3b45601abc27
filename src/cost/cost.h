/* The cost model: how long a kernel should take on a GPU, on paper. A launch has three parts.
 *
 * The start, until weights come in, while memory idles: round trips one behind the other, of
 * lengths and addresses that the first loads depend on, of x on its way into shared memory, where
 * blocks keep it there, and of the first loads; and x goes to all blocks through the ports of their
 * SMs. Where a kernel has its first weights fetched into the L2 cache ahead of x, memory is at work
 * on them while x is staged.
 *
 * Then the slowest of these, and some more where others are nearly as slow; or nearly their sum, of
 * products on tensor cores and of several vectors (see predict.c):
 *
 *   memory   every byte of inputs and outputs once, at what reads reach, or at the share of it
 *            that a target has where each warp reads rows of its own;
 *   issue    the instructions of the busiest SM, by its schedulers;
 *   latency  of the busiest place for a block: each lane asks for some bytes and waits for them:
 *            bytes in flight a round trip, behind the first one; and what one SM takes from the L2;
 *   balance  where the busiest SMs alone don't keep memory busy: memory, until the others are done,
 *            and then what is left to them;
 *   tensor   the products of the busiest SM on its tensor cores;
 *   shared   the bytes that its lanes load from shared memory and store there, in lines of all
 *            banks.
 *
 * The end, where a last block merges what the others have stored: round trips again.
 *
 * Where launches overlap, a kernel with a settled state makes round trips for lengths and addresses
 * ahead of its wait, and has rows of K and V fetched. That costs nothing as long as the launch
 * ahead leaves room for its blocks, and memory to itself. What other kernels do there, which fetch
 * weights, is in what steps were measured to take that overlap: see plan_cost.c.
 *
 * What a launch fetches for the one behind it (KEY_NEXT) comes in from its last loads on: while it
 * ends, while that one is launched, and during its start. So much of memory's time is spared.
 *
 * It is a model. It leaves out what stays in caches, how many misses these can have pending, and
 * clocks that fall under load. What a launch adds in a graph is plan_cost.h's.
 */
#ifndef PTXGEN_COST_COST_H
#define PTXGEN_COST_COST_H

#include "base/strbuf.h"
#include "kernel/family.h"
#include "kernel/target.h"

/* What ptxas makes of a kernel. A unit of work is a weight or an element of a cache, for all the
 * vectors that it is loaded for, as the mark of the hot loop says in the PTX; kernels without a
 * loop do one value a thread. */
typedef struct cost_figures {
    unsigned sm;
    bool specific; /* of a kernel that runs on its target alone: its products are by wgmma */
    unsigned registers, shared; /* of a thread; static bytes of a block */
    double instructions;        /* of a lane, a unit of work; */
    double beside;              /* and of a warp that does not stay, beside its loop */
    double load_bytes;          /* of a load of device memory in the loop, on average */
    double unit_bytes;          /* that a unit needs of memory, each counted once */
    double turn;                /* units that a lane does in a turn of the loop */
    double in_flight;           /* bytes that a lane waits for at a time, each counted once */
    /* Of kernels that copy weights ahead in stages in_flight is a chunk's, of which all stages but
     * one are waited for. Of kernels on tensor cores, a unit of work: a warp's products of 16 x 8 x
     * 16; bytes of shared memory that a lane loads and stores; and of x that it loads. Of others 0.
     */
    double products, shared_bytes, x_bytes;
} cost_figures;

/* A kernel that was counted: the first one of its family, weights and number of vectors. */
typedef struct cost_row {
    const char *family; /* NULL ends the table */
    format weights;     /* FORMAT_NONE: the family has none */
    unsigned m;         /* see cost_vectors; 0: the family has no m */
    const cost_figures
        *figures; /* by target, oldest first, the specific one behind; sm = 0 ends them */
} cost_row;

/* costs.tsv, as embed_costs.c makes it into C while building. */
extern const cost_row cost_table[];
extern const char cost_table_ptxas[]; /* the version of ptxas: "13.0.88" */

/* Vectors that a kernel loads a weight for: the key m, or of experts' products on tensor cores as
 * many rows as a tile has room for; or a value of a cache: query heads. */
unsigned cost_vectors(const instance *in);

/* Those of an instance for a target, or for the newest one before it: between the numbers of
 * vectors that were counted, in proportion. Where a kernel has several matrices, and was not
 * counted or has them of different formats, those of each matrix by its share, from the family that
 * streams one (family.each_matrix). False: nothing was counted. */
bool cost_find(const instance *in, const target *t, cost_figures *found);

/* What a kernel has to do at the sizes of its instance, positions of caches all valid. */
typedef struct cost_work {
    double units;       /* of work, of all lanes */
    double unit_bytes;  /* of memory, a unit that shares them with none */
    double bytes;       /* of inputs and outputs */
    double trips_ahead; /* of memory, one behind the other, ahead of the first units: what they are,
                           and where */
    double trips_behind; /* and of a last block behind all others */
    double early;        /* seconds that the launch ahead leaves to what this one does ahead of its
                            wait: see cost_room */
    double fetched; /* bytes of what it reads first that a launch ahead has fetched into the L2 */
    double idle;  /* seconds ahead of its start in which memory has nothing else to do than that */
    int64_t rows; /* of x, of which each block has as many as the key m says */
} cost_work;
cost_work cost_work_of(arena *a, const instance *in);

/* The same of a kernel for any number of rows, with so many of them. */
cost_work cost_work_of_rows(arena *a, const instance *in, int64_t rows);

/* Values of a parameter that a launch reads or writes: all, but of an embedding the rows of m
 * tokens, of experts those that m rows use between them (each its own, with equal chances), and of
 * caches that it writes m positions. */
double cost_touched(const instance *in, const param *p);

/* Of a cache, where attention is to so many or more. */
enum { COST_USUAL_POSITIONS = 4096 };

/* Experts that m rows use between them, where each chooses its own with equal chances. */
double cost_experts(const problem_shape *s);

/* Whether a kernel has experts' rows by tiles; and tiles of rows of all experts together, a rest
 * being one as well, on average where each row chooses its own with equal chances. */
bool cost_has_expert_tiles(const instance *in);
double cost_expert_tiles(const instance *in);

/* A GPU as the model sees it. */
typedef struct cost_gpu {
    const target *target;
    double sm_count;
    double clock;       /* Hz */
    double bandwidth;   /* bytes of a second that reads reach */
    double tensor_fmas; /* of an SM in a clock; */
    double wgmma_fmas;  /* by wgmma, or 0 */
} cost_gpu;

/* A part of a target's architecture; the one that its row has, or that of the newest one before it
 * that has one. */
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
    unsigned warps_sm;         /* that registers and shared memory allow an SM */
    double in_flight_sm;       /* bytes that so many wait for */
    double start;              /* seconds until weights come in; */
    double ahead;              /* of those memory is at work on what was asked for first */
    double times[BOUND_COUNT]; /* of a grid that may be too small to fill the SMs */
    cost_bound bound;          /* the largest of them */
    double end;                /* seconds of a last block behind all others */
    double total; /* the start, the bound's time or somewhat more, and the end; memory's
                     time is less by what it was ahead */
} cost_prediction;

/* Seconds of those that a launch takes in which the one behind it may do what comes ahead of its
 * wait, as nothing else would: all but memory's, where blocks of the two fit an SM together, as
 * many of each as it has; else none. */
typedef struct cost_kernel {
    const cost_figures *figures;
    const instance *in;
    const cost_work *work;
} cost_kernel;
double cost_room(const cost_kernel *ahead, double seconds, const cost_kernel *behind,
                 const cost_gpu *gpu);

/* Bytes that a launch has fetched for the one behind it: see KEY_NEXT. */
double cost_fetches(const cost_kernel *k, const cost_gpu *gpu);

/* The sizes of the instance must be known. A total of infinity: the kernel does not fit an SM. */
cost_prediction cost_predict(const cost_figures *f, const instance *in, const cost_work *work,
                             const cost_gpu *gpu);

/* What a kernel takes of which nothing is known but its bytes: one wait for memory, and the time of
 * reads. */
double cost_of_bytes(double bytes, const cost_gpu *gpu);

/* What no launch of the family's kernels can be faster than: a bound that costs no formula. */
double cost_least(const cost_figures *f, const family *of, const cost_work *work,
                  const cost_gpu *gpu);

/* ptxgen --list -v: the families on the part of one architecture, at a usual shape of each: the
 * feed-forward matrix of an 8B model, 8192 positions of its cache, 8 sequences where a batch
 * is left to the run. False where there is no part. */
bool cost_list(strbuf *out, const target *t);

/* The same families on all architectures that have a part: the time of each, and the first letter
 * of its bound. */
void cost_summary(strbuf *out);

#endif
