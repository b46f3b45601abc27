/* Launches that were submitted and have not run, so that later ones may overlap with them.
 *
 * There is one queue for each stream that has such launches, or one of a graph launch. A
 * programmatic launch for the same one joins it; what a stream has an order with, and any call of
 * the library that does not only ask something, has it run first. PTXGEN_CUDA_ORDER chooses which
 * block of it runs when.
 */
#ifndef PTXGEN_LIBCUDA_QUEUE_H
#define PTXGEN_LIBCUDA_QUEUE_H

#include "libcuda/work.h"

/* Adds a launch that was checked to what was submitted to a stream, or to a launch of a graph. A
 * cooperative one has run when this returns. */
CUresult queue_launch(CUcontext c, const void *of, const work *w);

/* Runs all that is there, as the next call would. */
CUresult queue_finish(void);

#endif
