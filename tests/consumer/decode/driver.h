/* The CUDA driver functions that this program calls. Types are those of <cuda.h>. If CUDA is not
 * installed, DECODE_STAND_IN takes them from the emulated driver's header. */
#ifndef DECODE_DRIVER_H
#define DECODE_DRIVER_H

#ifdef DECODE_STAND_IN
#include "libcuda/api.h"
#else
#include <cuda.h>
#endif

#define DRIVER_FUNCTIONS(F)         \
    F(cuInit)                       \
    F(cuGetErrorName)               \
    F(cuDeviceGet)                  \
    F(cuDeviceGetName)              \
    F(cuDevicePrimaryCtxRetain)     \
    F(cuDevicePrimaryCtxRelease_v2) \
    F(cuCtxSetCurrent)              \
    F(cuModuleLoadData)             \
    F(cuModuleGetFunction)          \
    F(cuModuleUnload)               \
    F(cuLaunchKernel)               \
    F(cuMemAlloc_v2)                \
    F(cuMemFree_v2)                 \
    F(cuMemsetD8_v2)                \
    F(cuMemcpyHtoD_v2)              \
    F(cuMemcpyDtoH_v2)              \
    F(cuMemcpy2DAsync_v2)           \
    F(cuStreamCreate)               \
    F(cuStreamDestroy_v2)           \
    F(cuStreamSynchronize)          \
    F(cuStreamBeginCapture_v2)      \
    F(cuStreamEndCapture)           \
    F(cuGraphInstantiateWithFlags)  \
    F(cuGraphLaunch)                \
    F(cuGraphDestroy)               \
    F(cuGraphExecDestroy)
#include "loader.h"

/* Returns the call's error from the enclosing function, unless it is success. */
#define TRY(call)                  \
    do {                           \
        CUresult tried = (call);   \
        if (tried != CUDA_SUCCESS) \
            return tried;          \
    } while (0)

#endif
