/* What is submitted to a stream or stands in a node of a graph: a launch, a copy, a set, a call of
 * a host function. */
#ifndef PTXGEN_LIBCUDA_WORK_H
#define PTXGEN_LIBCUDA_WORK_H

#include "libcuda/context.h"

typedef struct work {
    CUgraphNodeType type;
    union {
        CUDA_KERNEL_NODE_PARAMS launch; /* kernelParams, or extra, never both */
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_HOST_NODE_PARAMS host;
    } as;
} work;

/* What can be said of work before it runs; what is wrong is also said on standard error. */
CUresult work_check(const work *w);

/* Runs it to its end. The context notes a kernel's failure. */
CUresult work_run(CUcontext c, const work *w);

/* Copies work that was checked, with the values of a launch's parameters. */
work work_keep(arena *a, const work *w);

/* launch.c */
CUresult launch_check(const CUDA_KERNEL_NODE_PARAMS *l);
CUresult launch_run(CUcontext c, const CUDA_KERNEL_NODE_PARAMS *l);
CUDA_KERNEL_NODE_PARAMS launch_keep(arena *a, const CUDA_KERNEL_NODE_PARAMS *l);

/* Overwrites a kept launch with another of the same function. */
void launch_replace(CUDA_KERNEL_NODE_PARAMS *kept, const CUDA_KERNEL_NODE_PARAMS *l);

/* transfer.c */
CUresult copy_check(const CUDA_MEMCPY3D *c);
CUresult copy_run(const CUDA_MEMCPY3D *c);
CUresult set_check(const CUDA_MEMSET_NODE_PARAMS *s);
CUresult set_run(const CUDA_MEMSET_NODE_PARAMS *s);

#endif
