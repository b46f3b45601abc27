/* What a step reads of the layers' matrices and of their caches, as the emulator counts it. */
#ifndef PTXGEN_MODEL_CHECK_STEP_TRAFFIC_H
#define PTXGEN_MODEL_CHECK_STEP_TRAFFIC_H

#include "model/check/step_trial.h"

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

#endif
