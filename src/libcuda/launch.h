/* Launches of kernels. Their parameters are in kernelParams or in extra, never in both. */
#ifndef PTXGEN_LIBCUDA_LAUNCH_H
#define PTXGEN_LIBCUDA_LAUNCH_H

#include "libcuda/context.h"

/* What can be said of it before it runs; what is wrong is also said on standard error. */
CUresult launch_check(const CUDA_KERNEL_NODE_PARAMS *l);

/* The same of one whose blocks wait for one another: all must fit on the device at a time. */
CUresult launch_check_cooperative(const CUDA_KERNEL_NODE_PARAMS *l);

/* Runs it to its end, inside of driver_try. The context notes a failure of the kernel. */
CUresult launch_run(CUcontext c, const CUDA_KERNEL_NODE_PARAMS *l);

/* Adds it to launches that are run later, inside of driver_try. */
CUresult launch_add(CUcontext c, emu_stream *to, const CUDA_KERNEL_NODE_PARAMS *l,
                    bool programmatic, bool cooperative);

/* Says what a kernel did wrong, and has the context note that. other: the kernel that it races
 * with, or NULL. */
CUresult launch_fail(CUcontext c, CUfunction f, CUfunction other, const emu_report *report);

/* Between the parameters of the API's first version and those that there are now. */
CUDA_KERNEL_NODE_PARAMS launch_of_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *l);
void launch_to_v1(const CUDA_KERNEL_NODE_PARAMS *l, CUDA_KERNEL_NODE_PARAMS_v1 *to);

CUfunction launch_function(const CUDA_KERNEL_NODE_PARAMS *l);

/* Copies one that was checked, with the values of its parameters. False, and nothing copied, where
 * there is no memory. */
bool launch_keep(arena *a, const CUDA_KERNEL_NODE_PARAMS *l, CUDA_KERNEL_NODE_PARAMS *kept);

/* Overwrites a kept launch with another of the same function. */
void launch_replace(CUDA_KERNEL_NODE_PARAMS *kept, const CUDA_KERNEL_NODE_PARAMS *l);

#endif
