/* A trial of a decoder's step on the emulator: its memory, and the launches on it.
 */
#ifndef PTXGEN_MODEL_CHECK_STEP_TRIAL_H
#define PTXGEN_MODEL_CHECK_STEP_TRIAL_H

#include "model/check/step_model.h"
#include "model/check/step_result.h"
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

#endif
