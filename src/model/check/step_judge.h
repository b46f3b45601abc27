/* Whether what a step has left in memory is what the reference says. */
#ifndef PTXGEN_MODEL_CHECK_STEP_JUDGE_H
#define PTXGEN_MODEL_CHECK_STEP_JUDGE_H

#include "model/check/step_trial.h"

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

#endif
