/* Grids and dynamic shared memory that run-time values decide, as C functions. */
#ifndef PTXGEN_EMIT_HEADER_FUNCTIONS_H
#define PTXGEN_EMIT_HEADER_FUNCTIONS_H

#include "emit/describe.h"

/* The names of the C functions that give a kernel's grid and dynamic shared memory; NULL where they
 * are fixed. */
typedef struct run_functions {
    const char *grid, *shared;
} run_functions;

/* Defines what the kernels of a set need and returns which is whose. */
const run_functions *print_run_functions(strbuf *out, const described_set *d);

#endif
