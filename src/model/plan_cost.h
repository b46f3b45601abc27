/* The plan of a decoder's steps with predicted times: --plan, and the choice of kernels. */
#pragma once

#include "cost/cost.h"
#include "model/plan/plan.h"

/* Predicted cost of a launch: rows and the most positions are given. See plan_cost.c. */
typedef struct launch_cost {
    double seconds, bytes;
    /* Seconds saved in a step, [overlapped], averaged over the kernel's launches: by work done
     * before the preceding launch ends, and by prefetched data. */
    double spared[2];
    double between[2]; /* launch gap, [overlapped]: see cost_launch_gap */
    const char *bound; /* limiting resource; "" = estimated from bytes or products only */
} launch_cost;
launch_cost cost_of_launch(arena *a, const instance *in, int64_t rows, int64_t positions,
                           const cost_gpu *gpu);

/* Returns true if a kernel reads whole weight matrices. embed_rows does not: it reads some rows. */
bool cost_streams(const instance *in);

/* Returns the seconds that a launch in a graph adds to its kernel's time: the launch gap, and the
 * ramp until weights arrive at full bandwidth. */
double cost_launch_gap(const instance *in, bool overlapped);

/* Fills in the costs of a step's launches, by kernel. All launches of a kernel have equal rows. */
void cost_of_launches(arena *a, const plan *p, const plan_step *step, int64_t positions,
                      const cost_gpu *gpu, launch_cost *costs);

/* Predicted cost of a step. Overlapped: a launch may begin before its predecessor ends, on targets
 * that support it. */
typedef struct step_cost {
    double seconds, between; /* gaps between launches, included in seconds */
    double bytes;
} step_cost;
step_cost cost_of_step(const plan_step *step, const launch_cost *costs, bool overlapped);

/* Chooses warps and rows at once of a kernel that several targets share: the fastest on average for
 * a number of rows. Only settings with the same result bits are tried. The kernel stays as it is if
 * the gain is below 1 %, or if it has no counted figures. */
void cost_tune(instance *in, int64_t rows, const target *const *wanted, size_t count);

/* The cost model for plan_make. It compares kernels that have counted figures. It prefers one that
 * is at least 1 % faster, on average of the targets. */
extern const plan_model cost_model;

/* Makes the plan of a decoder with kernels tuned by the cost model. Sets its bytes_for to what gives
 * the fastest steps, on average of steps and targets. Returns NULL after an error. */
plan *cost_make_plan(arena *a, decoder *d, location where, const target *const *wanted,
                     size_t count, diags *errors);

/* Returns the family and its weight formats, each once: "stream_qkv q4_k q6_k". */
const char *cost_label(arena *a, const instance *in);

/* Prints the launches of each step with predicted times on the GPU of a target, equal layers once;
 * then the memory. Attention covers max_seq_len positions, at most 4096. overlapped is as for
 * cost_of_step. */
void cost_plan(strbuf *out, const plan *p, const target *t, bool overlapped);
