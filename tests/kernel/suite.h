/* What kernel tests share: instances from short texts, kernels from instances, runs on a device. */
#ifndef PTXGEN_TESTS_SUITE_H
#define PTXGEN_TESTS_SUITE_H

#include "gen/kernel.h"
#include "kernel/device.h"
#include "trial.h"

/* The instance of a family that a text like "k=512 n=33 num_warps=2" says; keys that it does not
 * name have their defaults. Words are given as in a spec ("dims=dynamic"). False where the family
 * has no such key; a value that the family refuses fails the test. */
bool suite_instance(arena *a, const family *f, const char *text, instance *in);

/* Builds a kernel for sm_75, which every device runs. Fails the test when it can't be built. */
kernel suite_kernel(arena *a, const instance *in);

/* The sizes of an instance, with all positions of a cache valid. */
trial_setup suite_setup(const instance *in, const device *d);

/* Runs a whole grid and judges all outputs; every element must be written. Returns NULL or what is
 * wrong. expected (may be NULL) has the values of the first output, in place of the reference's;
 * their tolerance is the family's. output (may be NULL) is set to the bytes of the first output. */
const char *suite_run(arena *a, device *d, const kernel *k, const trial *t, const double *expected,
                      const void **output);

#endif
