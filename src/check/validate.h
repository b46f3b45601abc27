/* --validate: ptxas on all kernels of a set. */
#ifndef PTXGEN_CHECK_VALIDATE_H
#define PTXGEN_CHECK_VALIDATE_H

#include "check/progress.h"
#include "check/ptxas.h"
#include "kernel/kernel.h"

typedef struct validation {
    size_t accepted, checked; /* kernels; each for its own target and the spec's newer ones */
    unsigned least_registers, most_registers;
    unsigned spills;
} validation;

/* Runs ptxas as planned, on jobs threads, and notes the resources. A rejection or a spill is an
 * error at the instance's section. */
bool validate_set(arena *a, kernel_set *set, const ptxas *assembler, unsigned jobs,
                  const progress *show, validation *out, diags *d);

#endif
