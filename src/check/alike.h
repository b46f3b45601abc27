/* Detection of kernels of several targets that compute the same, so that one proof is enough. */
#ifndef PTXGEN_CHECK_ALIKE_H
#define PTXGEN_CHECK_ALIKE_H

#include "kernel/kernel.h"

/* Returns true if the texts of two kernels of one name differ at most in comments, spaces,
 * .version, .target, the cache hint .nc of loads, and lines of griddepcontrol. No value depends on
 * these as long as no access is at fault. */
bool kernels_are_alike(const kernel *a, const kernel *b);

#endif
