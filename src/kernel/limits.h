/* What CUDA allows of a launch, on every GPU; and how much a launch fetches for the next one. */
#ifndef PTXGEN_KERNEL_LIMITS_H
#define PTXGEN_KERNEL_LIMITS_H

#include "kernel/family.h"

/* Why an instance can't be launched, as far as its configuration decides it, with a size that would
 * do; and the key to blame, or NULL. What run-time values decide, the header's functions check.
 * NULL: it can. */
const char *launch_problem(arena *a, const instance *in, const char **blamed);

/* Bytes of shared memory by a formula of a launch; 0 where there is none or only the run decides.
 */
int64_t launch_shared_bytes(const char *formula, const instance *in);

/* The shared memory that a block needs, and what a target has of that kind: of static memory, where
 * the instance needs too much of that, else of both kinds together. formula is that of the larger
 * part. */
typedef struct shared_need {
    int64_t bytes, limit;
    const char *kind, *formula;
} shared_need;
shared_need launch_shared_need(const instance *in, const target *t);

/* Returns a target and the GPUs of which it is the newest of some targets, oldest first, that they
 * run. */
target_set launch_gpus(const target *const *wanted, size_t count, size_t t);

/* Replaces passes = 0 by the fewest passes with which all GPUs of a set have the shared memory for
 * a block. Returns false, and leaves the instance as it is, if there is no such number. */
bool launch_fit_on(instance *in, target_set gpus);

/* Makes what each of some targets gets of an instance, oldest first, into made[count]; of targets
 * that it excludes nothing. A host takes the newest kernel that its GPU runs and has the shared
 * memory for. passes = 0 becomes the fewest passes with which a target's kernel fits each GPU that
 * no older target's kernel fits. Returns the GPUs, from the oldest target up, that no kernel fits;
 * of targets that have an instance of their own by variant = auto none is asked. */
target_set launch_fit(const instance *in, const target *const *wanted, size_t count,
                      instance *made);

/* Lowers the stages of an instance, if it has any, until launch_fit leaves no GPU without a kernel.
 * Returns false, and leaves the instance as it is, if no number of stages does. */
bool launch_fit_stages(instance *in, const target *const *wanted, size_t count);

/* Returns what a GPU launches of them, NULL: nothing. */
const instance *launch_taken(const instance *made, const target *const *wanted, size_t count,
                             const target *gpu);

/* Returns why launch_fit leaves GPUs without a kernel, with a remedy, and the key to blame; NULL if
 * it leaves none. If blamed is NULL the remedy is no key of the family. */
const char *launch_unfit(arena *a, const instance *in, const target *const *wanted, size_t count,
                         const char **blamed);

/* The bytes that launches of a step fetch for the next one, at most: see the key next and
 * gen/common/next.h. A multiple of NEXT_MULTIPLE. Memory of the largest parts gives as much in some
 * 4 us, the time between the last loads of a launch and the first of the next; it is a third of
 * what the L2 keeps there. */
enum { NEXT_OF_STEPS = 16 << 20 };

/* Returns true if a launch fetches for the next one as soon as it has asked for its own first
 * weights, not when its blocks end. It does if the L2 can keep all its weights beside the next
 * one's: memory would idle where another launch has fetched them. */
bool next_is_early(const instance *in);

/* Returns the index of the parameter that says where to fetch from, among those of an instance's
 * kernel; MAX_PARAMS if there is none. */
size_t next_param(arena *a, const instance *in);

#endif
