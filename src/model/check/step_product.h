/* Products in a trial of a step. One of a large model is more than the emulator can do in a
 * reasonable time, so some blocks of such a launch run.
 *
 * The reference computes a prompt's product from the same x and W, found where the plan says.
 * Results of blocks that run are compared with it. In the place of the other blocks' results it is
 * written to the emulator's memory, so that the step goes on with complete rows.
 *
 * Rows of a large W repeat, see step_model.c, and so do the results of a product with few rows of
 * X. The blocks with the first rows of W run, and their results are repeated.
 */
#ifndef PTXGEN_MODEL_CHECK_STEP_PRODUCT_H
#define PTXGEN_MODEL_CHECK_STEP_PRODUCT_H

#include "model/check/step_judge.h"

/* Whether a launch is run like that. */
bool step_product_is_large(const step_trial *t, const plan_launch *l);

/* Runs it; false and the trial wrong where it breaks a rule or gives what is wrong. */
bool step_product_launch(step_trial *t, const plan_launch *l, const step_rows *r);

/* Returns true if only the first blocks of a launch run, and their results are repeated. */
bool step_product_repeats(const step_trial *t, const plan_launch *l);

/* Runs such a launch. Returns false, and the trial is wrong, if it breaks a rule. */
bool step_product_repeat(step_trial *t, const plan_launch *l, const step_rows *r);

/* Makes such a launch run only the blocks with the first rows of W. */
void step_product_run_first(const step_trial *t, const plan_launch *l, device_launch *to);

#endif
