/* Proves a kernel without a GPU: runs its PTX on the emulator and compares with the CPU reference.
 */
#ifndef PTXGEN_CHECK_VERIFY_H
#define PTXGEN_CHECK_VERIFY_H

#include "check/verifier.h"

/* Runs the cases that the kernel's instance asks for: its own size (first, last and sampled blocks
 * where the whole would take long; none where a single one would), with dynamic dims other sizes,
 * with a sequence length 0, 1, odd, full and too long. Inputs are random by the seed. */
verify_result verify_kernel(arena *a, const kernel *k, uint64_t seed);

/* The same, with the same result, on what cores are free. alike: only the cases with ordinary
 * inputs, where a kernel that may overlap runs behind an unknown launch. That is enough for a
 * kernel that is like a proven one, see kernels_are_alike. */
verify_result verify_kernel_on(arena *a, const kernel *k, uint64_t seed, verify_cores *cores,
                               bool alike);

/* Runs one case alone; with a sequence length, that one. */
verify_result verify_setup(arena *a, const kernel *k, const trial_setup *setup);

#endif
