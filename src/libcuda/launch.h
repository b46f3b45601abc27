/* Launches of kernels. Their parameters are in kernelParams or in extra, never in both. */
#ifndef PTXGEN_LIBCUDA_LAUNCH_H
#define PTXGEN_LIBCUDA_LAUNCH_H

#include "libcuda/module.h"

/* Returns the parameters of the API's first version as those of the newer one. */
CUDA_KERNEL_NODE_PARAMS launch_of_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *l);

CUfunction launch_function(const CUDA_KERNEL_NODE_PARAMS *l);

/* Checks a launch before it runs, and says what is wrong on standard error. The blocks of a
 * cooperative one wait for one another, so that all must fit on the device at a time. */
CUresult launch_check(const CUDA_KERNEL_NODE_PARAMS *l, bool cooperative);

/* Runs a launch to its end, inside of driver_try. The context notes a failure of the kernel. */
CUresult launch_run(CUcontext c, const CUDA_KERNEL_NODE_PARAMS *l);

/* Adds a launch to others that run later, inside of driver_try. */
CUresult launch_add(CUcontext c, emu_stream *to, const CUDA_KERNEL_NODE_PARAMS *l,
                    bool programmatic, bool cooperative);

/* Says what a kernel did wrong, and has the context note it. other: the one it races with, or NULL.
 */
CUresult launch_fail(CUcontext c, CUfunction f, CUfunction other, const emu_report *report);

/* Copies a launch that was checked, with the values of its parameters. Returns false if there is no
 * memory. */
bool launch_keep(arena *a, const CUDA_KERNEL_NODE_PARAMS *l, CUDA_KERNEL_NODE_PARAMS *kept);

/* Overwrites a kept launch with another of the same function. */
void launch_replace(CUDA_KERNEL_NODE_PARAMS *kept, const CUDA_KERNEL_NODE_PARAMS *l);

#endif
