/* The functions of the CUDA driver API that this program calls, found in one of two ways:
 *
 *   by dlopen          the program links nothing of CUDA, and starts where there is none
 *   DECODE_LINKED      they are linked with -lcuda, as most programs do
 *
 * The types are those of <cuda.h>; where CUDA is not installed, DECODE_STAND_IN takes them from the
 * header of the emulated driver.
 */
#ifndef DECODE_DRIVER_H
#define DECODE_DRIVER_H

#ifdef DECODE_STAND_IN
#include "libcuda/api.h"
#else
#include <cuda.h>
#endif

/* By the names of their symbols, which is what dlsym wants; cuda.h maps cuMemAlloc to them. */
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

typedef struct driver_api {
    void *library; /* what dlsym looks in */
#define MEMBER(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
} driver_api;

/* Returns what a call says from the function it stands in, unless that is success. */
#define TRY(call)                  \
    do {                           \
        CUresult tried = (call);   \
        if (tried != CUDA_SUCCESS) \
            return tried;          \
    } while (0)

/* NULL, or the name of what is missing. */
const char *driver_open(driver_api *d);

#endif
