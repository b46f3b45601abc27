/* --validate: assembles all kernels of a set with ptxas. */
#pragma once

#include "check/progress.h"
#include "check/ptxas.h"
#include "kernel/kernel.h"

typedef struct validation {
    size_t accepted, checked; /* kernels, on all their targets */
    unsigned least_registers, most_registers;
    unsigned spills;
} validation;

/* Assembles kernels on `jobs` threads, records their resources, and reports rejections, spills. */
bool validate_set(arena *a, kernel_set *set, const ptxas *assembler, unsigned jobs,
                  const progress *show, validation *out, diags *d);
