/* A step whose kernels wait for the launches ahead (griddepcontrol.wait), run as these may overlap:
 * in orders that are adverse, it has to leave the same bits as without overlap, with no race. So
 * has the step behind it, whose first launches may overlap with its last ones.
 *
 * The kernels are those of the oldest target that has such. All of them are launched as
 * programmatic ones but those without any griddepcontrol.
 */
#ifndef PTXGEN_MODEL_CHECK_STEP_OVERLAP_H
#define PTXGEN_MODEL_CHECK_STEP_OVERLAP_H

#include "model/check/step_trial.h"

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
