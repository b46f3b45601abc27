/* Operations on single words of memory in a stream: to write a value, and to wait for one. */
#ifndef PTXGEN_LIBCUDA_VALUE_H
#define PTXGEN_LIBCUDA_VALUE_H

#include "libcuda/context.h"

/* What can be said before they run. */
CUresult values_check(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b);

/* All work ahead has been done, and what is submitted later is done later: a wait for a value that
 * is not there would never end, so that it is said on standard error and refused. */
CUresult values_run(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b);

/* Copies some that were checked. False where there is no memory. */
bool values_keep(arena *a, const CUDA_BATCH_MEM_OP_NODE_PARAMS *b,
                 CUDA_BATCH_MEM_OP_NODE_PARAMS *kept);

#endif
