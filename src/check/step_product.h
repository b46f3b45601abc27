/* Products of prompts in a trial of a step. One of a large model is more than the emulator can do
 * in a reasonable time: of such a launch some blocks run, and what they write has to be what double
 * arithmetic makes of the same x and W, which lie where the plan says. What the other blocks would
 * write is put there by that, so that the step goes on with all of it.
 */
#ifndef PTXGEN_CHECK_STEP_PRODUCT_H
#define PTXGEN_CHECK_STEP_PRODUCT_H

#include "check/step_judge.h"

/* Whether a launch is run like that. */
bool step_product_is_large(const step_trial *t, const plan_launch *l);

/* Runs it; false and the trial wrong where it breaks a rule or gives what is wrong. */
bool step_product_launch(step_trial *t, const plan_launch *l, const step_rows *r);

#endif
