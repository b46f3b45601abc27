/* Verifies a decoder's step without a GPU. It runs the plan on the emulator, launch by launch.
 * Hidden states, caches, logits and the token are compared with the reference of
 * src/model/reference/step.h. Some of the model's layers represent all. */
#pragma once

#include "kernel/kernel.h"
#include "model/plan/plan.h"

/* Bytes loaded, and bytes that had to be loaded. */
typedef struct step_bytes {
    uint64_t read, needed;
} step_bytes;

typedef struct step_result {
    bool right;
    int64_t layers, of_layers; /* layers that were run, and layers of the model */
    size_t positions;          /* number of tokens fed */
    double worst;              /* largest error of a logit, in units of its bound */
    double worst_hidden;       /* largest error of hidden states and caches, likewise */
    double weights_read;       /* loaded / needed bytes of the layers' weights, of the worst step */
    step_bytes caches;         /* of caches, in all steps */
    uint64_t instructions;     /* thread-instructions executed */
    const char *message;       /* if not right: the layer, the problem, and its size */
} step_result;

/* Returns read / needed, or 0 if none were needed. */
static inline double step_bytes_times(step_bytes of)
{
    return of.needed ? (double)of.read / (double)of.needed : 0;
}

/* Layers of a decoder, ascending. verify_choose_layers returns a few, at least two if possible,
 * with all kernels of a plan. verify_reduced_decoder returns a decoder of these layers only. */
typedef struct chosen_layers {
    int64_t numbers[DECODER_MOST_LAYERS];
    int64_t count;
} chosen_layers;
chosen_layers verify_choose_layers(arena *a, const plan *p);
decoder *verify_reduced_decoder(arena *a, const decoder *d, const chosen_layers *chosen);

/* Replaces the kernels of a reduced plan by the whole plan's, which may differ in their prefetch:
 * of other memory of that size, or none, if the next launch is another here. */
void verify_take_kernels(arena *a, plan *reduced, const plan *p);

/* Returns NULL, or a message with the first launch of the model that the reduced plan lacks. */
const char *verify_same_launches(arena *a, const plan *p, const plan *reduced);

/* Verifies a model's plan by a plan of some of its layers, with the model's own sizes: see
 * verify_choose_layers. The other layers' launches must be equal except for tensors and caches.
 * kernels are the spec's, for any targets, oldest first. If some wait for their predecessors
 * (griddepcontrol.wait), steps also run in `orders` orders of overlapping launches: see
 * step_overlap.c. */
step_result verify_step(arena *a, const plan *p, const target *const *wanted, size_t wanted_count,
                        const kernel *kernels, size_t kernel_count, uint64_t seed, unsigned orders,
                        unsigned jobs);

/* Returns the orders of a quick check: the most adverse; in small models one more. */
unsigned verify_orders(const plan *p);

/* Verifies a plan as it is. names has the layers' numbers for messages. */
step_result verify_plan(arena *a, const plan *p, const chosen_layers *names, const kernel *kernels,
                        size_t kernel_count, uint64_t seed, unsigned orders, unsigned jobs);
