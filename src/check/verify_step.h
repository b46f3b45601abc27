/* Proves a decoder's step without a GPU: runs its plan on the emulator, launch by launch, and
 * compares hidden states, caches, logits and the token with the reference of src/ref/step.h.
 */
#ifndef PTXGEN_CHECK_VERIFY_STEP_H
#define PTXGEN_CHECK_VERIFY_STEP_H

#include "family/kernel.h"
#include "family/plan.h"

typedef struct step_result {
    bool right;
    int64_t layers, of_layers; /* that were run, of so many */
    size_t positions;          /* of tokens that were fed */
    double worst;              /* largest error of a logit, as a part of its bound */
    double worst_hidden;       /* the same of hidden states and caches */
    uint64_t instructions;     /* thread-instructions */
    const char *message;       /* when not right: the layer, what is wrong there, and by how much */
} step_result;

/* Verifies the plan of a whole model by that of some of its layers: the fewest that have all its
 * kernels, at least two where there are. Sizes are the model's own. What the other layers launch
 * has to be the same, with their own tensors and caches. kernels are those of the spec, for any
 * targets, the oldest first. */
step_result verify_step(arena *a, const plan *p, const target *const *wanted, size_t wanted_count,
                        const kernel *kernels, size_t kernel_count, uint64_t seed, unsigned jobs);

/* A decoder with some of another's layers. */
typedef struct chosen_layers {
    int64_t numbers[DECODER_MOST_LAYERS];
    int64_t count;
} chosen_layers;
chosen_layers verify_choose_layers(arena *a, const plan *p);
decoder *verify_reduced_decoder(arena *a, const decoder *d, const chosen_layers *chosen);

/* Runs a plan as it is. The layers' numbers are for the messages. */
step_result verify_plan(arena *a, const plan *p, const chosen_layers *names, const kernel *kernels,
                        size_t kernel_count, uint64_t seed, unsigned jobs);

/* NULL, or which launch of a model is like none of the plan of some of its layers. */
const char *verify_same_launches(arena *a, const plan *p, const plan *reduced);

#endif
