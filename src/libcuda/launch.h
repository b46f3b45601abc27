/* Launches of kernels: their parameters are in kernelParams or in extra, never in both. And queues
 * of launches that were submitted and have not run, so that later ones may overlap with them.
 *
 * There is one queue for each stream, and each launch of a graph, that has such launches. A
 * programmatic launch for the same one joins it. A queue runs before a launch for a stream that has
 * an order with its own, and before any call of the library that does not only ask something.
 * PTXGEN_CUDA_ORDER chooses the order of its blocks. */
#ifndef PTXGEN_LIBCUDA_LAUNCH_H
#define PTXGEN_LIBCUDA_LAUNCH_H

#include "libcuda/module.h"

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

typedef struct queued_launch {
    const CUDA_KERNEL_NODE_PARAMS *params; /* which were checked */
    bool programmatic, cooperative;
} queued_launch;

/* Adds a launch to what was submitted to a stream, or to a launch of a graph. A cooperative one has
 * run when this returns. */
CUresult queue_launch(CUcontext c, const void *of, queued_launch launch);

/* Runs all that is queued, the oldest first. The contexts note what kernels do wrong. */
CUresult queue_finish(void);

#endif
