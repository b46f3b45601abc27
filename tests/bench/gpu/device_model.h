/* A decoder on a GPU: its kernels loaded, made-up weights and caches of the model's own sizes in
 * its memory, and its steps launched as the plan says.
 *
 * Every layer has the content of one like it, which repeats after some rows (check/step_model.h):
 * it is made and copied in seconds, and takes no file.
 */
#ifndef PTXGEN_TESTS_DEVICE_MODEL_H
#define PTXGEN_TESTS_DEVICE_MODEL_H

#include "family/kernel.h"
#include "gpu/gpu.h"

typedef struct device_model {
    arena *arena;
    gpu *gpu;
    const plan *plan;
    gpu_kernel *kernels;        /* as in plan.kernels */
    const instance **instances; /* of these, with what the target decides */
    const bool *overlap;        /* which of these do so with the launch ahead of them */
    bool no_overlap;            /* set: none does */
    bool no_next;               /* set: none fetches anything for the next one */
    gpu_address memory[PLAN_MEMORIES];
} device_model;

/* The set's plan, whose kernels are for this target. False, with the gpu's error: there is no room,
 * or the device does not take a kernel; what was made so far is still to be freed. */
bool device_model_make(arena *a, gpu *g, const kernel_set *set, const target *t, device_model *m);
void device_model_free(device_model *m);

/* Tokens of one sequence from a position on: the rows of a next step. */
bool device_model_set_rows(device_model *m, int64_t rows, int64_t position);

/* Those launches of a step, in their order, that are of one kernel, by its
 * number; EVERY_KERNEL: all of it. */
enum { EVERY_KERNEL = -1 };
bool device_model_launch(device_model *m, const plan_step *s, int64_t only);

/* Runs every step from a position on, and behind one of several tokens that is not a prompt's its
 * last token alone. Returns NULL, or what is wrong: logits that are not finite, or of other bits
 * alone; a token that is not the likeliest; a position that is not the next; what the device says
 * of a failed call. */
const char *device_model_judge(device_model *m, int64_t position);

#endif
