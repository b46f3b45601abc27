/* Verifies a kernel without a GPU: compares its results on the emulator with the reference. */
#pragma once

#include "check/verifier.h"

/* Runs all cases of a kernel's instance, with random inputs from the seed:
 * - its own size (first, last and sampled blocks of a large grid)
 * - with dynamic dims, other sizes
 * - sequence lengths 0, 1, odd, full and too long
 *
 * cores: the available cores, which do not affect the result, or NULL. alike: runs only ordinary
 * inputs, and a kernel that may overlap after an unknown launch. That is enough for a kernel
 * equivalent to a verified one (see kernels_are_alike). setup: the only case to run, whose sequence
 * length is used as given, or NULL. Fails if a single block would take too long. */
verify_result verify_kernel(arena *a, const kernel *k, uint64_t seed, verify_cores *cores,
                            bool alike, const trial_setup *setup);
