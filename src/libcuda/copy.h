/* Copies and sets. All copies are one kind: a box of rows from a place in host or device memory to
 * another, of which a plain copy is one row. */
#ifndef PTXGEN_LIBCUDA_COPY_H
#define PTXGEN_LIBCUDA_COPY_H

#include "libcuda/api.h"

/* What can be said before it runs. */
CUresult copy_check(const CUDA_MEMCPY3D *c);
CUresult set_check(const CUDA_MEMSET_NODE_PARAMS *s);

/* What is not all inside of allocations is said on standard error. */
CUresult copy_run(const CUDA_MEMCPY3D *c);
CUresult set_run(const CUDA_MEMSET_NODE_PARAMS *s);

#endif
