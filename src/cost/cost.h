/* The cost model: how long a kernel should take on a GPU, on paper.
 *
 * Three things may hold a kernel that reads its weights once, and the slowest is the bound:
 *
 *   memory   every byte of inputs and outputs once, at the speed of a copy;
 *   issue    the instructions of all warps, by the schedulers of the SMs in use;
 *   latency  each lane asks for some bytes and waits for them: bytes in flight a round trip.
 *
 * Blocks that keep x in shared memory put it there first, while no weights stream: their start is
 * added to the bound. Where blocks that stay for many rows have one turn more than others, all wait
 * for it; where the lanes of others have half a turn's work, they wait for a whole one.
 *
 * It is a model. It leaves out the launch, the last wave of blocks that don't stay, caches and how
 * many misses they can have pending, and clocks that fall under load.
 */
#ifndef PTXGEN_COST_COST_H
#define PTXGEN_COST_COST_H

#include "base/strbuf.h"
#include "family/family.h"
#include "target.h"

/* What ptxas makes of a kernel. A unit of work is a weight or an element of a cache for one
 * query head, as the mark of the hot loop says in the PTX; kernels without a loop do one value a
 * thread. */
typedef struct cost_figures {
    const char *family;
    format weights; /* FORMAT_NONE: the family has none */
    unsigned m;     /* vectors of the counted kernel; 0: the family has no m */
    unsigned sm;
    unsigned registers, shared; /* of a thread; static bytes of a block */
    double instructions;        /* of a lane, a unit of work; */
    double beside;              /* and of a warp that does not stay, beside its loop */
    double load_bytes;          /* of a load of device memory in the loop, on average */
    double unit_bytes;          /* that a unit needs of memory, each counted once */
    double turn;                /* units that a lane does in a turn of the loop */
    double in_flight;           /* bytes that a lane waits for at a time, each counted once */
} cost_figures;

/* The figures that were counted for one kernel of each family, weights, m and target, embedded. */
extern const cost_figures cost_table[];
extern const size_t cost_table_size;
extern const char cost_table_ptxas[]; /* the version of ptxas: "13.0.88" */

/* Those of an instance for a target, or for the newest one before it: between the numbers of
 * vectors that were counted, in proportion. Where a kernel has several matrices, and was not
 * counted or has them of different formats, those of each matrix by its share, from the family that
 * streams one (family.each_matrix). False: nothing was counted. */
bool cost_find(const instance *in, unsigned sm, cost_figures *found);

/* What a kernel has to do at the sizes of its instance, positions of caches all valid. */
typedef struct cost_work {
    double units;      /* of work, of all lanes */
    double unit_bytes; /* of memory, a unit that shares them with none */
    double bytes;      /* of inputs and outputs */
} cost_work;
cost_work cost_work_of(arena *a, const instance *in);

/* Values of a parameter that a launch reads or writes: all, but of an embedding the rows of m
 * tokens, of experts those that m rows use between them (each its own, with equal chances), and of
 * caches that it writes m positions. */
double cost_touched(const instance *in, const param *p);

/* A GPU as the model sees it. */
typedef struct cost_gpu {
    const target *target;
    double sm_count;
    double clock;     /* Hz */
    double bandwidth; /* bytes of a second that a copy reads and writes */
} cost_gpu;

/* The part of a target's architecture, or of the newest one before it that has one. */
cost_gpu cost_gpu_of(const target *t);

typedef enum cost_bound { BOUND_MEMORY, BOUND_ISSUE, BOUND_LATENCY, BOUND_COUNT } cost_bound;
extern const char *const cost_bound_names[BOUND_COUNT];

typedef struct cost_prediction {
    unsigned warps_sm;         /* that registers and shared memory allow an SM */
    double in_flight_sm;       /* bytes that so many wait for */
    double times[BOUND_COUNT]; /* seconds; of a grid that may be too small to fill the SMs */
    cost_bound bound;          /* the largest of them */
    double start;              /* seconds until blocks have x in shared memory */
    double total;              /* the start and the bound's time */
} cost_prediction;

/* The sizes of the instance must be known. A total of infinity: the kernel does not fit an SM. */
cost_prediction cost_predict(const cost_figures *f, const instance *in, const cost_work *work,
                             const cost_gpu *gpu);

/* What a kernel takes of which nothing is known but its bytes: one wait for memory, and the time of
 * a copy. */
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
