/* A decoder on a GPU: its kernels are loaded, its memory has weights and caches of the model's own
 * sizes, and its steps are launched as the plan says.
 *
 * Weights and caches are made up, in seconds and without a file. A layer gets the content of a
 * similar layer of a reduced model, which repeats after some rows (model/check/step_model.h). */
#ifndef PTXGEN_TESTS_DEVICE_MODEL_H
#define PTXGEN_TESTS_DEVICE_MODEL_H

#include "kernel/kernel.h"
#include "gpu/gpu.h"
#include "model/plan/plan.h"

typedef struct device_model {
    arena *arena;
    gpu *gpu;
    const plan *plan;
    gpu_kernel *kernels;             /* parallel to plan.kernels */
    bool *overlap;                   /* parallel to plan.kernels; true: overlaps with the preceding
                                        launch */
    struct device_launch **launches; /* launches of each step; NULL if the step's kernels are not
                                        loaded */
    bool no_overlap;                 /* disables all overlap */
    const char *without;             /* leaves out families whose name contains this; may be NULL */
    const char *no_overlap_of;       /* launches of this family do not overlap; may be NULL */
    gpu_address memory[PLAN_MEMORIES];
    void *host; /* the piece in host memory; NULL: the plan has none */
    bool owns_memory;
} device_model;

/* Makes the model of the set's plan. The set's kernels are for target t. Returns false, with an
 * error in g, if there is no memory or the device cannot load a kernel. The model must be freed
 * then, too. */
bool device_model_make(arena *a, gpu *g, const kernel_set *set, const target *t, device_model *m);
void device_model_free(device_model *m);

/* Makes a model with other kernels that uses the memory of another model, which must outlive it. It
 * has only the steps of at most DECODER_FEW_ROWS rows. */
bool device_model_make_variant(const device_model *of, const kernel_set *set, device_model *m);

/* Sets the rows of the next step: tokens of one sequence, starting at a position. */
bool device_model_set_rows(device_model *m, int64_t rows, int64_t position);

/* Returns true unless m->without leaves out the kernel with this index. */
bool device_model_has(const device_model *m, size_t number);

/* Launches a step, or only its launches of the kernel with index `only`. */
enum { EVERY_KERNEL = -1 };
bool device_model_launch(device_model *m, const plan_step *s, int64_t only);

/* Launches a step up to the last launch of a kernel, and waits. The workspace then has the inputs
 * of that kernel, which later launches of the step overwrite. */
bool device_model_launch_up_to(device_model *m, const plan_step *s, size_t number);

/* Runs every step at a position. Steps of a few rows run their last row once more alone. Returns
 * NULL, or a message if a call failed or a result is wrong:
 * - logits are not finite, or differ when the row runs alone
 * - the token is not the likeliest
 * - the position is not the next
 */
const char *device_model_judge(device_model *m, int64_t position);

/* Judges a variant like device_model_judge, and compares the bits of its logits with the usual
 * model. */
const char *device_model_judge_variant(device_model *m, device_model *of, int64_t position);

/* The number of runs of a step whose logits differ from its first run. */
typedef struct repeats {
    size_t turns, differing;
    const char *where; /* first cache bytes that differ; NULL if none do */
} repeats;

/* Runs a step repeatedly at one position. Returns false if a call failed. */
bool device_model_repeat(device_model *m, const plan_step *s, int64_t position, size_t turns,
                         repeats *r);

/* Returns true if a token can run again with the same logits. Models with delta nets cannot,
 * because each run updates their state. */
bool device_model_runs_again(const device_model *m);

/* Tokens of a sequence from position 0, in the steps of a header's PREFIX_prompt: as many as
 * possible of the largest m, then smaller steps. The first rows of a step may be padding. */
typedef struct device_prompt {
    int64_t tokens;
    const plan_step **steps;
    size_t step_count;
    gpu_address rows; /* tokens, positions and lengths of each step's rows */
} device_prompt;
bool device_prompt_make(device_model *m, int64_t tokens, device_prompt *p);
void device_prompt_free(device_model *m, device_prompt *p);

/* Copies the rows of each step on the device and launches the steps. */
bool device_prompt_launch(device_model *m, const device_prompt *p);

/* Runs the prompt and judges its last step like device_model_judge. */
const char *device_prompt_judge(device_model *m, const device_prompt *p);

#endif
