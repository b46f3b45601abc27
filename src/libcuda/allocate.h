/* What cuMemAlloc and cuMemFree do, with a pool or, where that is NULL, without. */
#ifndef PTXGEN_LIBCUDA_ALLOCATE_H
#define PTXGEN_LIBCUDA_ALLOCATE_H

#include "libcuda/memory.h"

CUresult memory_allocate(CUcontext c, CUdeviceptr *address, size_t size, CUmemoryPool pool);
CUresult memory_release(CUcontext c, CUdeviceptr address);

#endif
