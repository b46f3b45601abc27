/* Proves a decoder's step without a GPU: runs its plan on the emulator, launch by launch, and
 * compares hidden states, caches, logits and the token with the reference of
 * src/model/reference/step.h. Some of a model's layers are run in place of all.
 */
#ifndef PTXGEN_MODEL_CHECK_VERIFY_MODEL_H
#define PTXGEN_MODEL_CHECK_VERIFY_MODEL_H

#include "kernel/kernel.h"
#include "model/plan/plan.h"

/* Bytes that were read, and that were needed. */
typedef struct step_bytes {
    uint64_t read, needed;
} step_bytes;

typedef struct step_result {
    bool right;
    int64_t layers, of_layers; /* that were run, of so many */
    size_t positions;          /* of tokens that were fed */
    double worst;              /* largest error of a logit, as a part of its bound */
    double worst_hidden;       /* the same of hidden states and caches */
    double weights_read;   /* how often a step reads the layers' weights that it needs, at most */
    step_bytes caches;     /* what tokens see of them, in all steps */
    uint64_t instructions; /* thread-instructions */
    const char *message;   /* when not right: the layer, what is wrong there, and by how much */
} step_result;

/* Returns how often the needed bytes were read; 0 if none were needed. */
static inline double step_bytes_times(step_bytes of)
{
    return of.needed ? (double)of.read / (double)of.needed : 0;
}

/* Layers of a decoder, ascending: the fewest that have all kernels of a plan, but for what these
 * fetch for the next launch, at least two where there are; and a decoder of these alone. */
typedef struct chosen_layers {
    int64_t numbers[DECODER_MOST_LAYERS];
    int64_t count;
} chosen_layers;
chosen_layers verify_choose_layers(arena *a, const plan *p);
decoder *verify_reduced_decoder(arena *a, const decoder *d, const chosen_layers *chosen);

/* Replaces the kernels of a plan of some layers by those of the whole plan. Kernels that differ
 * only in their prefetch for the next launch count as one. If the next launch is another here, they
 * prefetch other memory of that size, or none. */
void verify_take_kernels(arena *a, plan *reduced, const plan *p);

/* Returns NULL, or names the first launch of a model that the plan of some of its layers lacks. */
const char *verify_same_launches(arena *a, const plan *p, const plan *reduced);

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
