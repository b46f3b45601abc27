/* A trial of a decoder's step on the emulator: memory, launches and judgement. */
#pragma once

#include "model/check/step_model.h"
#include "model/check/verify_model.h"
#include "check/device.h"

typedef struct step_kernel {
    const kernel *kernel;
    const emu_module *module;
    /* The kernel whose launches depend and whether it triggers or waits; NULL if none. */
    const emu_module *dependent;
    const instance *dependent_instance;
    bool overlaps;
} step_kernel;

typedef struct step_verifier {
    const plan *plan;
    const chosen_layers *names;
    step_kernel *kernels; /* as in plan.kernels */
    step_model model;
    decoder exact; /* the decoder without rounding */
    uint64_t seed;
    unsigned orders; /* number of orders of overlapping launches to try */
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
    emu_memory *memory; /* of device */
    uint64_t *tensors;  /* addresses, as in plan.tensors */
    uint64_t *skipped;  /* bytes by tensor that blocks which did not run would have loaded */
    uint64_t *caches;   /* addresses of pools, [slots, 2] */
    uint64_t state, workspace;
    ref_step *rounded, *exact;
    uint64_t *lengths;   /* by sequence */
    double *noise;       /* of routers: see step_router.h */
    bool in_part;        /* only some blocks of the logits' product run */
    uint32_t overlapped; /* bit set of the plan's steps that have run with overlap */
    bool right;
    step_result result;
} step_trial;

enum { STEP_SOME_BLOCKS = 16 };

/* The rows of a step. Rows without a token are unused. */
typedef struct step_rows {
    size_t m;
    bool is_row[PROBLEM_MOST_ROWS];
    ref_row rows[PROBLEM_MOST_ROWS];
    uint32_t positions[PROBLEM_MOST_ROWS], lengths[PROBLEM_MOST_ROWS];
    ref_row fed[PROBLEM_MOST_ROWS]; /* the used rows */
    size_t fed_count;
} step_rows;

/* Marks the trial as failed, with a message. Returns false. */
bool step_reject(step_trial *t, const char *text, ...) PRINTF_LIKE(2, 3);

/* Returns a layer's name for messages: "layer 17", "before the layers", "after the layers". */
const char *step_layer_name(const step_trial *t, int64_t layer);

const char *step_name(const step_trial *t, const step_rows *r);

/* Allocates the device's memory, each tensor and pool apart, to find accesses past an end, and writes
 * the page table. */

void step_map(step_trial *t);

/* Starts a sequence at a position. Earlier cache rows are random, later ones NaN. */
void step_start(step_trial *t, int64_t sequence, uint64_t position);

/* Writes tokens, positions, lengths and sequences into the state. */
void step_write_state(const step_trial *t, const step_rows *r);

/* A launch of a step with the storage it points to. */
typedef struct step_request {
    device_launch launch;
    uint64_t values[MAX_PARAMS];
    const void *params[MAX_PARAMS];
    uint64_t blocks[STEP_SOME_BLOCKS];
} step_request;

/* Prepares a launch. Returns false if the trial skips it. Partial logits clear the record. */
bool step_request_of(const step_trial *t, const plan_launch *l, const step_rows *r, bool dependent,
                     step_request *request);

/* Marks the trial as failed because of a fault in a launch. Returns false. */
bool step_reject_launch(step_trial *t, const plan_launch *l, const step_rows *r,
                        const emu_report *report);

/* Runs a prepared launch, or a launch as it is. Returns false and fails the trial after a fault. */
bool step_run(step_trial *t, const plan_launch *l, const step_rows *r, const step_request *request);
bool step_launch(step_trial *t, const plan_launch *l, const step_rows *r);

/* Returns the address of an argument; 0 if it is in no tensor. */
uint64_t step_address(const step_trial *t, const plan_argument *argument);

/* Reads device memory into scratch. Unallocated memory reads as 0xff bytes. */
void *step_read(const step_trial *t, uint64_t address, size_t size);
uint32_t step_read_word(const step_trial *t, uint64_t offset,
                        size_t row); /* offset is in the state */
uint64_t step_cache_address(const step_trial *t, const ref_cached *which);
uint64_t step_pool_bytes(const step_trial *t, const plan_cache *part);

/* Judgement: compares the memory after a step with the references (step_judge.c). */

/* Values of both references and of a kernel at one place. what and row_size are for messages. */
typedef struct step_compared {
    const char *what;
    const float *got;
    const double *rounded, *exact;
    size_t count, row_size;
    bool are_products; /* of rounded values: errors grow with a value */
} step_compared;

/* Fails the trial if a value exceeds its bound. worst: the largest error in bounds. */
bool step_compare(step_trial *t, const step_rows *r, int64_t layer, const step_compared *c,
                  double *worst);

typedef struct step_expected {
    double *logits[2], *hidden[2]; /* rounded, exact */
} step_expected;

/* Compares the hidden states after a layer (-1: the embedding), and the cache rows it has written.
 * Both return false and fail the trial if a value exceeds its bound. */
bool step_judge_layer(step_trial *t, const plan_step *step, const step_rows *r,
                      const step_expected *e, int64_t layer);

typedef struct computed_logits {
    float *values;
    bool *are; /* true = computed; NULL = all are */
    size_t count;
} computed_logits;
computed_logits step_read_logits(const step_trial *t, const plan_step *step);

/* Compares the logits of the step's last rows. Logits that were not computed count as right. */
bool step_judge_logits(step_trial *t, const plan_step *step, const step_rows *r,
                       const step_expected *e);

/* Compares the tokens, positions and lengths for the next step. */
bool step_judge_state(step_trial *t, const plan_step *step, const step_rows *r);

/* Products (step_product.c). The emulator cannot run all blocks of a large model's products in
 * reasonable time.
 *
 * Prompt products: some blocks run, and their results are compared with the reference, which
 * computes the product from the same x and W. The reference also supplies the other blocks' results
 * in the emulator's memory, so that the step continues with complete rows.
 *
 * Products with few rows of X: rows of a large W repeat, see step_model.c, and so do the results.
 * The blocks with the first rows of W run, and their results are repeated. */

/* Runs a launch, large products in part. Returns false, a failed trial, after an error. */
bool step_run_launch(step_trial *t, const plan_launch *l, const step_rows *r);

/* Returns true if some blocks of a launch run and the reference supplies the other results. */
bool step_product_is_large(const step_trial *t, const plan_launch *l);

/* Returns true if only the first blocks of a launch run and their results are repeated. */
bool step_product_repeats(const step_trial *t, const plan_launch *l);

/* Returns true if is_so holds for any launch of a step. */
bool step_any_launch(const step_trial *t, const plan_step *step,
                     bool (*is_so)(const step_trial *t, const plan_launch *l));

/* Restricts a launch that repeats to the blocks with the first rows of W. */
void step_product_run_first(const step_trial *t, const plan_launch *l, device_launch *to);

/* Traffic: bytes loaded from matrices and caches, as the emulator counts them. */

/* Traffic of a step so far. Needed bytes: of experts' tensors, the planes that tokens of the step
 * use; of K and V, the rows that each token sees; of a delta net, each sequence's state and each
 * token's earlier inputs. */
typedef struct step_traffic {
    uint64_t *of_tensors, *of_caches; /* bytes loaded before the step, by tensor and cache */
    uint64_t experts; /* in use by the step's tokens, of the latest layer with a router */
    step_bytes weights, caches;
} step_traffic;

step_traffic step_traffic_new(const step_trial *t);

/* Adds a launch that has just run: a router's list of experts. */
void step_traffic_add_launch(step_traffic *s, const step_trial *t, const plan_launch *l);

/* Adds a layer that has just run. Ignores layer -1. */
void step_traffic_add_layer(step_traffic *s, const step_trial *t, const step_rows *r,
                            int64_t layer);

/* Overlap (step_overlap.c). A step whose kernels wait for their predecessors (griddepcontrol.wait)
 * also runs with overlapping launches, in adverse orders. It must leave the same bits as without
 * overlap, without races. So must the next step, whose first launches may overlap with the last
 * ones. The kernels are those of the oldest target that has such kernels. All launches are
 * programmatic, except those without any griddepcontrol. */

/* Loads the kernels of that target, if there is one. */
void step_load_dependent(arena *a, step_verifier *v, const kernel *kernels, size_t count);

/* Returns true, once for each step of the plan, if the step is to run with overlap: from the first
 * position on, or, if it runs only after earlier positions, in part. */
bool step_should_overlap(step_trial *t, const plan_step *step);

/* Repeats a step with overlap. before is the memory before the step; the memory ends up as it is
 * now. Returns false and marks the trial as failed if a result differs. */
bool step_overlap(step_trial *t, const plan_step *step, const step_rows *r,
                  const emu_snapshot *before);
