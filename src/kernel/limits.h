/* CUDA's limits of a launch on every GPU, and the prefetch for the next launch. */
#pragma once

#include "kernel/family.h"

/* Returns NULL if an instance can be launched, else the reason, a size that can, and the key to
 * blame or NULL in *blamed. The header's functions check run-time values. */
const char *launch_problem(arena *a, const instance *in, const char **blamed);

/* Returns the bytes of shared memory by a formula; 0 if NULL or known only at run time. */
int64_t launch_shared_bytes(const char *formula, const instance *in);

/* Shared memory of a block and a target's limit: static if it exceeds its own limit, else
 * static and dynamic together. formula computes the larger part. */
typedef struct shared_need {
    int64_t bytes, limit;
    const char *kind, *formula;
} shared_need;
shared_need launch_shared_need(const instance *in, const target *t);

/* Returns wanted[t] and the GPUs whose newest target it is. wanted is sorted, oldest first. */
target_set launch_gpus(const target *const *wanted, size_t count, size_t t);

/* Replaces passes = 0 by the fewest that fit all GPUs. Returns false if no number fits. */
bool launch_fit_on(instance *in, target_set gpus);

/* Makes the instance for each target in made[count]; excluded targets get a zeroed one. wanted is
 * sorted, oldest first.
 *
 * A host loads the newest kernel that its GPU runs and has the shared memory for. passes = 0
 * becomes the fewest passes with which a target's kernel fits each GPU that no older target's
 * kernel fits. Returns the GPUs, from the oldest target up, that no kernel fits. Excluded targets'
 * GPUs are not counted: variant = auto chose other instances for them. */
target_set launch_fit(const instance *in, const target *const *wanted, size_t count,
                      instance *made);

/* Lowers an instance's stages, if it has the key, until launch_fit leaves no GPU without a kernel.
 * Returns false and leaves the instance unchanged if no number of stages fits. */
bool launch_fit_stages(instance *in, const target *const *wanted, size_t count);

/* Returns the instance of launch_fit that a GPU launches, or NULL. */
const instance *launch_taken(const instance *made, const target *const *wanted, size_t count,
                             const target *gpu);

/* Returns why launch_fit leaves GPUs without a kernel, with a remedy, and the key to blame in
 * *blamed; NULL if it leaves none. If blamed is NULL, the remedy names no key. */
const char *launch_unfit(arena *a, const instance *in, const target *const *wanted, size_t count,
                         const char **blamed);

/* Maximum bytes that launches of a step prefetch for the next one: see the key next and
 * gen/common/next.h. A multiple of NEXT_MULTIPLE. The largest GPUs read that much in about 4 us,
 * the time between the last loads of a launch and the first of the next; it is a third of what
 * their L2 keeps. */
enum { NEXT_OF_STEPS = 16 << 20 };

/* Returns true if a launch prefetches for the next one right after it has requested its own first
 * weights, not when its blocks end. This holds if its weights and the next launch's fit into L2
 * together: memory would be idle while it reads weights that its predecessor prefetched. */
bool next_is_early(const instance *in);

/* Returns the index of the parameter with the address to prefetch, or MAX_PARAMS if none. */
size_t next_param(arena *a, const instance *in);
