/* A decoder on a GPU: its kernels loaded, made-up weights and caches of the model's own sizes in
 * its memory, and its steps launched as the plan says.
 *
 * Every layer has the content of one like it, which repeats after some rows
 * (model/check/step_model.h): it is made and copied in seconds, and takes no file.
 */
#ifndef PTXGEN_TESTS_DEVICE_MODEL_H
#define PTXGEN_TESTS_DEVICE_MODEL_H

#include "kernel/kernel.h"
#include "gpu/gpu.h"
#include "model/plan/plan.h"

typedef struct device_model {
    arena *arena;
    gpu *gpu;
    const plan *plan;
    gpu_kernel *kernels;             /* as in plan.kernels */
    bool *overlap;                   /* which of these do so with the launch ahead of them */
    struct device_launch **launches; /* of each step; NULL: the step's kernels are not loaded */
    bool no_overlap;                 /* set: none does */
    const char *without; /* launches of families with this in their name are left out; NULL: none */
    const char *late;    /* those of a family of this name do not overlap; NULL: all may */
    gpu_address memory[PLAN_MEMORIES];
    bool owns_memory;
} device_model;

/* Makes the model of the set's plan, whose kernels are for this target. Returns false, with the
 * gpu's error, if there is no room or the device does not take a kernel; what was made so far is
 * still to be freed. */
bool device_model_make(arena *a, gpu *g, const kernel_set *set, const target *t, device_model *m);
void device_model_free(device_model *m);

/* Makes a model with other kernels in the memory of one that lasts longer: steps of at most
 * DECODER_FEW_ROWS rows alone. */
bool device_model_make_variant(const device_model *of, const kernel_set *set, device_model *m);

/* Sets the rows of the next step: tokens of one sequence from a position on. */
bool device_model_set_rows(device_model *m, int64_t rows, int64_t position);

/* Returns true if a step of the model launches a kernel, by its number: m->without leaves some out.
 */
bool device_model_has(const device_model *m, size_t number);

/* Launches a step, or of its launches those of one kernel, by its number. */
enum { EVERY_KERNEL = -1 };
bool device_model_launch(device_model *m, const plan_step *s, int64_t only);

/* Launches a step up to the last launch of a kernel, and waits: the workspace then has what that
 * kernel reads, which other launches of the step overwrite. */
bool device_model_launch_up_to(device_model *m, const plan_step *s, size_t number);

/* Runs every step from a position on. After a step of a few rows it runs the last row alone.
 * Returns NULL, or what is wrong: logits are not finite, or differ when the row is alone; the token
 * is not the likeliest; the position is not the next; a call failed. */
const char *device_model_judge(device_model *m, int64_t position);

/* Judges a variant in the same way, and compares the bits of its logits with those of the usual
 * model. */
const char *device_model_judge_variant(device_model *m, device_model *of, int64_t position);

/* How often a step gave other logits than its first run did, and what it left in the caches then.
 */
typedef struct repeats {
    size_t turns, differing;
    const char *where; /* the first value of the caches that differs; NULL: none does */
} repeats;

/* Runs a step again and again from a position on. Returns false if a call failed. */
bool device_model_repeat(device_model *m, const plan_step *s, int64_t position, size_t turns,
                         repeats *r);

/* Returns true if a token that is run again has the same logits. The state of a delta net has gone
 * on by then. */
bool device_model_runs_again(const device_model *m);

/* Tokens of a sequence from position 0 on, in steps as a header's PREFIX_prompt takes them: of the
 * largest m, and what is left in smaller ones, of which the first rows may be none. */
typedef struct device_prompt {
    int64_t tokens;
    const plan_step **steps;
    size_t step_count;
    gpu_address rows; /* tokens, positions and lengths of each step's rows */
} device_prompt;
bool device_prompt_make(device_model *m, int64_t tokens, device_prompt *p);
void device_prompt_free(device_model *m, device_prompt *p);

/* Copies the rows of each step on the device, and launches it. */
bool device_prompt_launch(device_model *m, const device_prompt *p);

/* Runs it and judges its last step as device_model_judge does. */
const char *device_prompt_judge(device_model *m, const device_prompt *p);

#endif
