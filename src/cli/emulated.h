/* "ptxgen run": a program on the emulated CUDA driver. */
#ifndef PTXGEN_CLI_EMULATED_H
#define PTXGEN_CLI_EMULATED_H

#include "cli/options.h"

/* Becomes the program that argv (NULL-ended) names, with its arguments, for which libcuda.so.1 is
 * the emulated one, whether it is linked with it or opens it. Comes back only where that fails,
 * with the status, and has said why. */
status run_emulated(arena *a, char *const *argv);

#endif
