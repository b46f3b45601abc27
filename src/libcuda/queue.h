/* Launches that were submitted and have not run, so that later ones may overlap with them.
 *
 * There is one queue at a time, of one stream or graph launch. A programmatic launch for the same
 * one joins it; any other call of the library has it run first. PTXGEN_CUDA_ORDER chooses which
 * block of it runs when.
 */
#ifndef PTXGEN_LIBCUDA_QUEUE_H
#define PTXGEN_LIBCUDA_QUEUE_H

#include "libcuda/work.h"

/* Adds a launch that was checked to what was submitted to a stream, or to a launch of a graph. A
 * cooperative one has run when this returns. */
CUresult queue_launch(CUcontext c, const void *of, const work *w);

/* Runs what is there, as the next call would. */
CUresult queue_finish(void);

#endif
