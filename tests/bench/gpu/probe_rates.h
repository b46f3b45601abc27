#ifndef PTXGEN_TESTS_PROBE_RATES_H
#define PTXGEN_TESTS_PROBE_RATES_H

#include "bench/gpu/figures.h"

/* Prints rate_INSTRUCTION: lanes, or products of tensor cores, of an SM in a clock. Replaces the
 * module that is loaded. */
void probe_rates(figures *f);

#endif
