/* The plan of a decoder's steps, as a person reads it, with the time that a launch should take. */
#ifndef PTXGEN_MODEL_PLAN_COST_H
#define PTXGEN_MODEL_PLAN_COST_H

#include "cost/cost.h"
#include "model/plan/plan.h"

/* What a launch takes with some rows (those of the key m, unless they are an argument), and
 * attention to some positions at most: see plan_cost.c. */
typedef struct launch_cost {
    double seconds, bytes;
    /* Seconds of these that it does not take in a step, [overlapped], on average of a kernel's
     * launches: for what it does while the launch ahead of it still runs, where they overlap, and
     * for what has been fetched for it. */
    double spared[2];
    double between[2]; /* see cost_between */
    const char *bound; /* "" where bytes alone say the time */
} launch_cost;
launch_cost cost_of_launch(arena *a, const instance *in, int64_t rows, int64_t positions,
                           const cost_gpu *gpu);

/* Returns true for a kernel that reads whole matrices of weights, and not some of their rows. */
bool cost_streams(const instance *in);

/* Returns the seconds that a launch in a graph takes beside what its kernel does: to begin, and
 * until weights come in at full speed. */
double cost_between(const instance *in, bool overlapped);

/* Of all launches of a step, by kernel: those of a kernel have as many rows. */
void cost_of_launches(arena *a, const plan *p, const plan_step *step, int64_t positions,
                      const cost_gpu *gpu, launch_cost *costs);

/* Launches of a step, costs by kernel, and what is between them: see plan_cost.c. Overlapped: each
 * may begin before the one ahead of it has ended, which GPUs of some targets can. */
typedef struct step_cost {
    double seconds, between; /* of which so many between launches */
    double bytes;
} step_cost;
step_cost cost_of_step(const plan_step *step, const launch_cost *costs, bool overlapped);

/* Gives a kernel that several targets share the numbers of warps and rows at once with which so
 * many rows are done first, on average, of those with which its results have the same bits. It is
 * left as it is where that is not 1 % better, where the bits would depend on it, and where it was
 * not counted. */
void cost_tune(instance *in, int64_t rows, const target *const *wanted, size_t count);

/* That and the other two questions of a plan, for plan_make: one kernel is ahead of another if both
 * are counted and it is done at least 1 % earlier, on average of the targets. */
extern const plan_model cost_model;

/* "stream_qkv q4_k q6_k": the family and its formats of weights, each once. */
const char *cost_kind(arena *a, const instance *in);

/* What of each step is launched, layers that are alike shown once, on the part of a target's
 * architecture; then the memory. Attention is to as many positions as a cache has, 4096 at most.
 * Overlapped: as of cost_of_step. */
void cost_plan(strbuf *out, const plan *p, const target *t, bool overlapped);

#endif
