/* The choice of variant = auto: of all kernels that compute the same of the same parameters the one
 * that the cost model predicts to finish first, where it is 10 % faster than preferred families.
 */
#ifndef PTXGEN_COST_CHOOSE_H
#define PTXGEN_COST_CHOOSE_H

#include "cost/cost.h"

/* Returns the instance that a target gets for one with variant = auto, chosen for this target and
 * excluding all others, that fits the shared memory of some GPUs (0: of the target). Candidates are
 * the families of the same operation that take the same parameters, with all their numbers of warps
 * and rows; none that rounds x where precision = f32, and none that has not been counted. Keys that
 * only the chosen family has are at their defaults. Sizes that are left to the run count as those
 * of an 8B model. Where no candidate has been counted it is the asked family itself.
 *
 * Its name is not made yet. Predicted: the model's figures for what is chosen, or NULL. */
instance cost_choose(const instance *asked, const target *t, target_set gpus,
                     cost_prediction *predicted);

/* Settings of a kernel that are slower by less than this factor are no worse: the model cannot
 * tell. */
#define COST_WORTH_IT 1.01

/* Calls attempt with each combination of the keys that change how a kernel computes and not what:
 * warps, rows at once. The candidate ends with the last of them. */
typedef void cost_attempt(const instance *candidate, void *context);
void cost_try_settings(instance *candidate, cost_attempt *attempt, void *context);

#endif
