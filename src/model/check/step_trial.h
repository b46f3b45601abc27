/* A trial of a decoder's step on the emulator: its memory, and the launches on it. */
#ifndef PTXGEN_MODEL_CHECK_STEP_TRIAL_H
#define PTXGEN_MODEL_CHECK_STEP_TRIAL_H

#include "model/check/step_model.h"
#include "model/check/verify_model.h"
#include "check/device.h"

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

/* Marks the trial as wrong, with a message. Returns false. */
bool step_reject(step_trial *t, const char *text, ...) PRINTF_LIKE(2, 3);

/* Return names for a message: "layer 17", or the place before or after the layers; and the step. */
const char *step_layer_name(const step_trial *t, int64_t layer);
const char *step_name(const step_trial *t, const step_rows *r);

/* Allocates the memory. Each tensor and cache is an allocation of its own, so that an access beyond
 * it is found. */
void step_map(step_trial *t);

/* Starts a sequence after some positions. Rows of its caches from there on are NaN. */
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

/* Describes a launch of a step. Returns false if the trial skips it. If only some blocks of the
 * logits' product run, forgets which logits were written before. */
bool step_request_of(const step_trial *t, const plan_launch *l, const step_rows *r, bool dependent,
                     step_request *request);

/* Marks the trial as wrong because a launch broke a rule. Returns false. */
bool step_reject_launch(step_trial *t, const plan_launch *l, const step_rows *r,
                        const emu_report *report);

/* Runs such a request, or a launch of a step as it is. Returns false, and the trial is wrong, if it
 * breaks a rule. */
bool step_run(step_trial *t, const plan_launch *l, const step_rows *r, const step_request *request);
bool step_launch(step_trial *t, const plan_launch *l, const step_rows *r);

/* Returns the address of an argument; 0: it has none. */
uint64_t step_address(const step_trial *t, const plan_argument *argument);

/* Read the device's memory, for one step. Memory that is not allocated reads as ones. */
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

/* Returns false, and marks the trial as wrong, if a value is beyond its bound. Raises worst to the
 * largest error in bounds. */
bool step_compare(step_trial *t, const step_rows *r, int64_t layer, const step_compared *c,
                  double *worst);

/* The results of the references. */
typedef struct step_expected {
    double *logits[2], *hidden[2]; /* rounded, exact */
} step_expected;

/* Compares the hidden states after a layer, and the rows that it has written to caches; layer -1 is
 * the embedding. These functions return false, and mark the trial as wrong, if a value is beyond
 * its bound. */
bool step_judge_layer(step_trial *t, const plan_step *step, const step_rows *r,
                      const step_expected *e, int64_t layer);

/* The logits of a step, and of each whether it was computed. */
typedef struct computed_logits {
    float *values;
    bool *are; /* NULL: all */
    size_t count;
} computed_logits;
computed_logits step_read_logits(const step_trial *t, const plan_step *step);

/* Compares the logits of the last rows, those that a step computes. Skipped ones count as right. */
bool step_judge_logits(step_trial *t, const plan_step *step, const step_rows *r,
                       const step_expected *e);

/* Compares tokens, positions and lengths of the next step. */
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

/* Runs a launch, in one of these ways if it is such a product. Returns false, and marks the trial
 * as wrong, if it breaks a rule or a result is wrong. */
bool step_run_launch(step_trial *t, const plan_launch *l, const step_rows *r);

/* Returns true if some blocks of a launch run, and the reference gives the other results. */
bool step_product_is_large(const step_trial *t, const plan_launch *l);

/* Returns true if only the first blocks of a launch run, and their results are repeated. */
bool step_product_repeats(const step_trial *t, const plan_launch *l);

/* Returns true if any launch of a step is run in one of these ways. */
bool step_any_launch(const step_trial *t, const plan_step *step,
                     bool (*is_so)(const step_trial *t, const plan_launch *l));

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

/* Adds a layer that has just run. Does nothing before the first layer. */
void step_traffic_add(step_traffic *s, const step_trial *t, const plan_step *step,
                      const step_rows *r, int64_t layer);

/* Overlap: a step whose kernels wait for the launches ahead (griddepcontrol.wait) runs as these may
 * overlap: in orders that are adverse, it has to leave the same bits as without overlap, with no
 * race. So has the step behind it, whose first launches may overlap with its last ones. The kernels
 * are those of the oldest target that has such. All of them are launched as programmatic ones but
 * those without any griddepcontrol (step_overlap.c). */

/* Loads the kernels of such a target, if there is one. */
void step_load_dependent(arena *a, step_verifier *v, const kernel *kernels, size_t count);

/* Returns true, once for each step of the plan, if the step is to run with overlap: from the first
 * position on or, if that does not run, in part after earlier positions. */
bool step_is_to_overlap(step_trial *t, const plan_step *step);

/* Runs a step again that has just run. before is the memory before the step. Leaves the memory as
 * it is now. Returns false, and marks the trial as wrong, if a result differs. */
bool step_overlap(step_trial *t, const plan_step *step, const step_rows *r,
                  const emu_snapshot *before);

#endif
