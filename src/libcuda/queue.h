/* Launches that were submitted and have not run, so that later ones may overlap with them.
 *
 * There is one queue for each stream, and each launch of a graph, that has such launches. A
 * programmatic launch for the same one joins it. A queue runs before a launch for a stream that has
 * an order with its own, and before any call of the library that does not only ask something.
 * PTXGEN_CUDA_ORDER chooses the order of its blocks. */
#ifndef PTXGEN_LIBCUDA_QUEUE_H
#define PTXGEN_LIBCUDA_QUEUE_H

#include "libcuda/driver.h"

typedef struct queued_launch {
    const CUDA_KERNEL_NODE_PARAMS *params; /* which were checked */
    bool programmatic, cooperative;
} queued_launch;

/* Adds a launch to what was submitted to a stream, or to a launch of a graph. A cooperative one has
 * run when this returns. */
CUresult queue_launch(CUcontext c, const void *of, queued_launch launch);

/* Runs all that is queued, the oldest first. The contexts note what kernels do wrong. */
CUresult queue_finish(void);

#endif
