/* Faults that are planted in kernels of products on the tensor cores, and have to be found. */
#ifndef PTXGEN_TESTS_PLANTED_H
#define PTXGEN_TESTS_PLANTED_H

#include "kernel/suite.h"

/* A kernel of a family that is found right as it is: of an instance by its text. */
kernel right_kernel(arena *a, const char *name, const char *text);

/* A kernel with two registers of a factor or of a sum exchanged; or of loaded fragments, the ones
 * of two numbers. */
void expect_exchanged_factors_found(arena *a, const kernel *k);
void expect_exchanged_registers_found(arena *a, const kernel *k, unsigned first, unsigned second);

/* A kernel that loads its first fragment, of four 8 x 8 matrices, transposed. */
void expect_transposed_fragments_found(arena *a, const kernel *k);

/* A kernel in which the lanes of a warp do not meet ahead of copies to what they have read. */
void expect_missing_meeting_found(arena *a, const kernel *k);

/* A kernel without one of so many waits for copies, or with another in its place that leaves one
 * more group of them under way ("": none). */
void expect_missing_waits_found(arena *a, const kernel *k, unsigned waits, const char *fewer);

/* A kernel without one of so many barriers, from one on: they are numbered from 1. */
void expect_missing_barriers_found(arena *a, const kernel *k, unsigned first, unsigned count);

#endif
