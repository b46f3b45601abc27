/* Checks that faults planted in kernels with tensor-core products are found. */
#ifndef PTXGEN_TESTS_PLANTED_H
#define PTXGEN_TESTS_PLANTED_H

#include "kernel/suite.h"

/* Returns the kernel of an instance, given by its text. Fails the test if it does not pass
 * verification. */
kernel right_kernel(arena *a, const char *name, const char *text);

/* Fails the test if swapped registers of an mma operand or accumulator, or of a loaded fragment,
 * are not found. first and second select the fragment's registers. */
void expect_exchanged_factors_found(arena *a, const kernel *k);
void expect_exchanged_registers_found(arena *a, const kernel *k, unsigned first, unsigned second);

/* Fails the test if a transposed load of the first fragment is not found. */
void expect_transposed_fragments_found(arena *a, const kernel *k);

/* Fails the test if a missing bar.warp.sync is not found. It orders the warp's reads before the
 * copies that overwrite their source. */
void expect_missing_meeting_found(arena *a, const kernel *k);

/* Fails the test if a missing cp.async wait is not found, for each of the first `waits` waits.
 * `fewer` is an instruction that leaves one more group in flight and is tried in its place; "" =
 * none. */
void expect_missing_waits_found(arena *a, const kernel *k, unsigned waits, const char *fewer);

/* Fails the test if a missing barrier is not found, for each of `count` barriers from number
 * `first`, counted from 1. */
void expect_missing_barriers_found(arena *a, const kernel *k, unsigned first, unsigned count);

#endif
