/* Which of a model's layers are run in place of all, and whether the others are like them. */
#ifndef PTXGEN_CHECK_VERIFY_LAYERS_H
#define PTXGEN_CHECK_VERIFY_LAYERS_H

#include "family/plan.h"

/* Layers of a decoder, ascending: the fewest that have all kernels of a plan, at least two where
 * there are; and a decoder of these alone. */
typedef struct chosen_layers {
    int64_t numbers[DECODER_MOST_LAYERS];
    int64_t count;
} chosen_layers;
chosen_layers verify_choose_layers(arena *a, const plan *p);
decoder *verify_reduced_decoder(arena *a, const decoder *d, const chosen_layers *chosen);

/* NULL, or which launch of a model is like none of the plan of some of its layers. */
const char *verify_same_launches(arena *a, const plan *p, const plan *reduced);

#endif
