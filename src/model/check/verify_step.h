/* Proves a decoder's step without a GPU: runs its plan on the emulator, launch by launch, and
 * compares hidden states, caches, logits and the token with the reference of
 * src/model/reference/step.h.
 */
#ifndef PTXGEN_MODEL_CHECK_VERIFY_STEP_H
#define PTXGEN_MODEL_CHECK_VERIFY_STEP_H

#include "model/check/verify_layers.h"
#include "kernel/kernel.h"

/* Verifies the plan of a whole model by that of some of its layers: the fewest that have all its
 * kernels, at least two where there are. Sizes are the model's own. What the other layers launch
 * has to be the same, with their own tensors and caches. kernels are those of the spec, for any
 * targets, the oldest first. Where some wait for the launches ahead of them (griddepcontrol.wait),
 * steps are also run in so many orders of launches that overlap: see step_overlap.c. */
step_result verify_step(arena *a, const plan *p, const target *const *wanted, size_t wanted_count,
                        const kernel *kernels, size_t kernel_count, uint64_t seed, unsigned orders,
                        unsigned jobs);

/* Returns how many orders are enough if time is short: the most adverse one, which finds races as
 * well as any, and for a small model a random one. */
unsigned verify_orders(const plan *p);

/* Runs a plan as it is. The layers' numbers are for the messages. */
step_result verify_plan(arena *a, const plan *p, const chosen_layers *names, const kernel *kernels,
                        size_t kernel_count, uint64_t seed, unsigned orders, unsigned jobs);

#endif
