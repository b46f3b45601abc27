/* What variant = auto takes: of all kernels that compute the same of the same parameters the one
 * that the cost model has finish first, where that is 10 % ahead of families that are preferred.
 * And how many warps and rows a plan's kernels take.
 */
#ifndef PTXGEN_COST_CHOOSE_H
#define PTXGEN_COST_CHOOSE_H

#include "cost/cost.h"

/* The instance that a target gets for one with variant = auto, chosen for this target and excluding
 * all others, that fits the shared memory of some GPUs (0: of the target). Candidates are the
 * families of the same operation that take the same parameters, with all their numbers of warps and
 * rows; none that rounds x where precision = f32, and none that has not been counted. Keys that
 * only the chosen family has are at their defaults. Sizes that are left to the run count as those
 * of an 8B model. Where no candidate has been counted it is the asked family itself.
 *
 * Its name is not made yet. Predicted: the model's figures for what is chosen, or NULL. */
instance cost_choose(const instance *asked, const target *t, target_set gpus,
                     cost_prediction *predicted);

/* Gives a kernel that several targets share the numbers of warps and rows at once with which so
 * many rows are done first, on average, of those with which its results have the same bits: a
 * plan's tuner. It is left as it is where that is not 1 % better, where the bits would depend on
 * it, and where it was not counted. */
void cost_tune(instance *in, int64_t rows, const target *const *wanted, size_t count);

/* Whether a kernel is done first that computes the same of the same parameters as another one, with
 * a row of each and the usual positions of a cache, on average of the targets: at least 1 % ahead,
 * and both counted. */
bool cost_is_faster(const instance *in, const instance *than, const target *const *wanted,
                    size_t count);

/* Whether it is, with another one ahead of it (NULL: none), which does a part, of so many rows. */
bool cost_is_worth(const instance *ahead, const instance *in, const instance *than, int64_t rows,
                   const target *const *wanted, size_t count);

#endif
