/* Kernel launches, and queues of deferred launches that later ones may overlap with. A launch has
 * its parameters in kernelParams or in extra, never in both.
 *
 * Each stream, and each graph launch, has at most one queue. Programmatic launches for it join the
 * queue. A queue runs before a launch for a stream that must wait for it. It also runs before any
 * call that is neither a launch nor a query. PTXGEN_CUDA_ORDER selects the order of its blocks. */
#pragma once

#include "libcuda/module.h"

CUDA_KERNEL_NODE_PARAMS launch_of_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *l);

CUfunction launch_function(const CUDA_KERNEL_NODE_PARAMS *l);

/* Checks a launch before it runs and reports the problem on standard error. The blocks of a
 * cooperative launch wait for each other, so all must be resident at once. */
CUresult launch_check(const CUDA_KERNEL_NODE_PARAMS *l, bool cooperative);

/* Completes a launch, inside driver_try. A kernel failure is stored in the context. */
CUresult launch_run(CUcontext c, const CUDA_KERNEL_NODE_PARAMS *l);

/* Adds a launch to a queue's emulated stream. Call it inside driver_try. */
CUresult launch_add(CUcontext c, emu_stream *to, const CUDA_KERNEL_NODE_PARAMS *l,
                    bool programmatic, bool cooperative);

/* Reports a fault and stores the error in the context. other: the racing kernel, or NULL. */
CUresult launch_fail(CUcontext c, CUfunction f, CUfunction other, const emu_report *report);

/* Copies a checked launch and its parameter values. Returns false if memory runs out. */
bool launch_keep(arena *a, const CUDA_KERNEL_NODE_PARAMS *l, CUDA_KERNEL_NODE_PARAMS *kept);

/* Overwrites a kept launch with another launch of the same function. */
void launch_replace(CUDA_KERNEL_NODE_PARAMS *kept, const CUDA_KERNEL_NODE_PARAMS *l);

typedef struct queued_launch {
    const CUDA_KERNEL_NODE_PARAMS *params; /* checked */
    bool programmatic, cooperative;
} queued_launch;

/* Queues a launch of a stream or of a graph. A cooperative one has run on return. */
CUresult queue_launch(CUcontext c, const void *of, queued_launch launch);

/* Runs all queues, oldest first. Kernel faults are stored in the contexts. */
CUresult queue_finish(void);
