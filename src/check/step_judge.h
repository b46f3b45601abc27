/* Whether what a step has left in memory is what the reference says. */
#ifndef PTXGEN_CHECK_STEP_JUDGE_H
#define PTXGEN_CHECK_STEP_JUDGE_H

#include "check/step_trial.h"

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

#endif
