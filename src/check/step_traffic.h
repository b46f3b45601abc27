/* What a step reads of the layers' matrices, as the emulator counts it. */
#ifndef PTXGEN_CHECK_STEP_TRAFFIC_H
#define PTXGEN_CHECK_STEP_TRAFFIC_H

#include "check/step_trial.h"

/* A step's layers so far. Of experts' tensors those planes are needed that a token of the step
 * uses. */
typedef struct step_traffic {
    uint64_t *before;      /* bytes loaded of the plan's tensors ahead of the step */
    uint64_t read, needed; /* bytes */
} step_traffic;

step_traffic step_traffic_new(const step_trial *t);

/* Adds a layer that has just run. */
void step_traffic_add(step_traffic *s, const step_trial *t, const plan_step *step, int64_t layer);

#endif
