/* A trial of a decoder's step on the emulator: its memory, and the launches on it.
 */
#ifndef PTXGEN_MODEL_CHECK_STEP_TRIAL_H
#define PTXGEN_MODEL_CHECK_STEP_TRIAL_H

#include "model/check/step_model.h"
#include "model/check/verify_layers.h"
#include "check/device.h"
#include "kernel/kernel.h"

/* What all trials share. */
typedef struct step_kernel {
    const kernel *kernel;
    const emu_module *module;
    /* the same for a target that has dependent launches, and whether it has to do with them; NULL
     * where no kernel of the plan has */
    const emu_module *dependent;
    const instance *dependent_instance;
    bool overlaps;
} step_kernel;

typedef struct step_verifier {
    const plan *plan;
    const chosen_layers *names;
    step_kernel *kernels; /* as in plan.kernels */
    step_model model;
    decoder exact; /* the same decoder with nothing rounded */
    uint64_t seed;
    unsigned orders; /* in which launches that overlap are tried */
} step_verifier;

typedef enum step_trial_kind {
    FROM_THE_START,
    AT_AN_EDGE,
    SEVERAL_SEQUENCES,
    AROUND_A_RING,
    TRIALS
} step_trial_kind;

typedef struct step_trial {
    const step_verifier *v;
    arena *arena, *scratch; /* scratch is for one step */
    step_trial_kind kind;
    random_source random;
    device device;
    emu_memory *memory; /* the device's */
    uint64_t *tensors;  /* addresses, as in plan.tensors */
    uint64_t *skipped;  /* bytes of each that blocks which did not run would have loaded */
    uint64_t *caches;   /* of [sequences, layers, 2] */
    uint64_t state, workspace;
    ref_step *rounded, *exact;
    uint64_t *lengths;   /* of sequences */
    double *noise;       /* of routers: see step_router.h */
    bool in_part;        /* some blocks of the logits' product are run */
    uint32_t overlapped; /* steps of the plan, a bit each, that have run with overlap */
    bool right;
    step_result result;
} step_trial;

enum { STEP_SOME_BLOCKS = 16 };

/* Rows of a step. Those without a sequence are none. */
typedef struct step_rows {
    size_t m;
    bool is_row[PROBLEM_MOST_ROWS];
    ref_row rows[PROBLEM_MOST_ROWS];
    uint32_t positions[PROBLEM_MOST_ROWS], lengths[PROBLEM_MOST_ROWS];
    ref_row fed[PROBLEM_MOST_ROWS]; /* those that are, one behind another */
    size_t fed_count;
} step_rows;

/* Notes that it is wrong, and how. Returns false. */
bool step_reject(step_trial *t, const char *message);

/* "layer 17", or where it stands to the layers; what is run, for a message. */
const char *step_layer_name(const step_trial *t, int64_t layer);
const char *step_name(const step_trial *t, const step_rows *r);

/* Makes the memory: tensors and caches are allocations of their own, so that what leaves one is
 * found. */
void step_map(step_trial *t);

/* Has a sequence start behind some positions. Rows of its caches from there on are no numbers. */
void step_start(step_trial *t, int64_t sequence, uint64_t position);

/* Writes tokens, positions, lengths and the addresses of caches into the state. */
void step_write_state(const step_trial *t, const step_rows *r);

/* A launch of a step, and what it points to. */
typedef struct step_request {
    device_launch launch;
    uint64_t values[MAX_PARAMS];
    const void *params[MAX_PARAMS];
    uint64_t blocks[STEP_SOME_BLOCKS];
} step_request;

/* False where the trial does without the launch. Of what the step's logits are computed from, what
 * was written is forgotten where only some blocks run. */
bool step_request_of(const step_trial *t, const plan_launch *l, const step_rows *r, bool dependent,
                     step_request *request);

/* Notes that a launch of a step has broken a rule. Returns false. */
bool step_reject_launch(step_trial *t, const plan_launch *l, const step_rows *r,
                        const emu_report *report);

/* Runs such a request, or a launch of a step as it is. Returns false, and the trial is wrong, if it
 * breaks a rule. */
bool step_run(step_trial *t, const plan_launch *l, const step_rows *r, const step_request *request);
bool step_launch(step_trial *t, const plan_launch *l, const step_rows *r);

/* The address of an argument, 0: there is nothing. */
uint64_t step_address(const step_trial *t, const plan_argument *argument);

/* Bytes of the device's memory, for one step; all ones where they are not there or have no content.
 */
void *step_read(const step_trial *t, uint64_t address, size_t size);
uint32_t step_read_word(const step_trial *t, uint64_t offset, size_t row); /* of the state */
uint64_t step_cache_address(const step_trial *t, const ref_cached *which);

/* Judging: whether what a step has left in memory is what the reference says (step_judge.c). */

/* The values of the two references at some place, and what a kernel has left there: rows of a size,
 * for the message. */
typedef struct step_compared {
    const char *what;
    const float *got;
    const double *rounded, *exact;
    size_t count, row_size;
} step_compared;

/* False, and the trial wrong, where a value is beyond its bound. worst becomes the largest error in
 * bounds so far. */
bool step_compare(step_trial *t, const step_rows *r, int64_t layer, const step_compared *c,
                  double *worst);

/* What the references make of it. */
typedef struct step_expected {
    double *logits[2], *hidden[2]; /* rounded, exact */
} step_expected;

/* The hidden states behind a layer, and what it has written to the caches; of layer -1 the
 * embedding. Each is false, and the trial wrong, where something is beyond its bound. */
bool step_judge_layer(step_trial *t, const plan_step *step, const step_rows *r,
                      const step_expected *e, int64_t layer);

/* The logits of a step, and of each whether it was computed. */
typedef struct computed_logits {
    float *values;
    bool *are; /* NULL: all */
    size_t count;
} computed_logits;
computed_logits step_read_logits(const step_trial *t, const plan_step *step);

/* Those of the rows that a step gives them of, the last ones. What was not computed is taken to be
 * right. */
bool step_judge_logits(step_trial *t, const plan_step *step, const step_rows *r,
                       const step_expected *e);

/* Tokens, positions and lengths of the next step. */
bool step_judge_state(step_trial *t, const plan_step *step, const step_rows *r);

/* Products: one of a large model is more than the emulator can do in a reasonable time, so some
 * blocks of such a launch run (step_product.c).
 *
 * The reference computes a prompt's product from the same x and W, found where the plan says.
 * Results of blocks that run are compared with it. In the place of the other blocks' results it is
 * written to the emulator's memory, so that the step goes on with complete rows.
 *
 * Rows of a large W repeat, see step_model.c, and so do the results of a product with few rows of
 * X. The blocks with the first rows of W run, and their results are repeated. */

/* Whether a launch is run like that. */
bool step_product_is_large(const step_trial *t, const plan_launch *l);

/* Runs it; false and the trial wrong where it breaks a rule or gives what is wrong. */
bool step_product_launch(step_trial *t, const plan_launch *l, const step_rows *r);

/* Returns true if only the first blocks of a launch run, and their results are repeated. */
bool step_product_repeats(const step_trial *t, const plan_launch *l);

/* Returns true if any launch of a step is run in one of these ways. */
bool step_any_launch(const step_trial *t, const plan_step *step,
                     bool (*is_so)(const step_trial *t, const plan_launch *l));

/* Runs such a launch. Returns false, and the trial is wrong, if it breaks a rule. */
bool step_product_repeat(step_trial *t, const plan_launch *l, const step_rows *r);

/* Makes such a launch run only the blocks with the first rows of W. */
void step_product_run_first(const step_trial *t, const plan_launch *l, device_launch *to);

/* Traffic: what a step reads of the layers' matrices and of their caches, as the emulator counts it
 * (step_traffic.c). */

/* A step's layers so far. Of experts' tensors those planes are needed that a token of the step
 * uses; of caches of rows those that its tokens see, each by itself; of a delta net the state of
 * each sequence, and of each token the inputs ahead of it. */
typedef struct step_traffic {
    uint64_t *of_tensors, *of_caches; /* bytes loaded ahead of the step, as in the trial */
    step_bytes weights, caches;
} step_traffic;

step_traffic step_traffic_new(const step_trial *t);

/* Adds a layer that has just run; what is ahead of the layers is none. */
void step_traffic_add(step_traffic *s, const step_trial *t, const plan_step *step,
                      const step_rows *r, int64_t layer);

/* Overlap: a step whose kernels wait for the launches ahead (griddepcontrol.wait) runs as these may
 * overlap: in orders that are adverse, it has to leave the same bits as without overlap, with no
 * race. So has the step behind it, whose first launches may overlap with its last ones. The kernels
 * are those of the oldest target that has such. All of them are launched as programmatic ones but
 * those without any griddepcontrol (step_overlap.c). */

/* Loads the kernels of such a target, where there is one. */
void step_load_dependent(arena *a, step_verifier *v, const kernel *kernels, size_t count);

/* Whether a step of a trial is to be run so: each of the plan's once, from the first position on
 * or, where that is not run, in part behind earlier positions. Notes that it is. */
bool step_is_to_overlap(step_trial *t, const plan_step *step);

/* Runs a step again that has just run. before: the memory ahead of it; the memory becomes what it
 * is now. False, and the trial wrong, where something is. */
bool step_overlap(step_trial *t, const plan_step *step, const step_rows *r,
                  const emu_snapshot *before);

#endif
