/* The functions of the CUDA driver API that this program calls. The types are those of <cuda.h>;
 * where CUDA is not installed, DECODE_STAND_IN takes them from the header of the emulated driver.
 */
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

/* Returns what a call says from the function it stands in, unless that is success. */
#define TRY(call)                  \
    do {                           \
        CUresult tried = (call);   \
        if (tried != CUDA_SUCCESS) \
            return tried;          \
    } while (0)

#endif
