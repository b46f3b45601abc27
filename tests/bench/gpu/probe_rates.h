#ifndef PTXGEN_TESTS_PROBE_RATES_H
#define PTXGEN_TESTS_PROBE_RATES_H

#include "bench/gpu/figures.h"

/* Prints rate_INSTRUCTION: lanes, or products of tensor cores, per SM and clock. Replaces the
 * loaded module. */
void probe_rates(figures *f);

#endif
