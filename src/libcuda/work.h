/* What is submitted to a stream or stands in a node of a graph: a launch, a copy, a set, a call of
 * a host function, an event, operations on single words, in graphs all of another graph, or
 * nothing. */
#ifndef PTXGEN_LIBCUDA_WORK_H
#define PTXGEN_LIBCUDA_WORK_H

#include "libcuda/context.h"

typedef struct work {
    CUgraphNodeType type;
    bool programmatic; /* a launch that may overlap with the one ahead, as graphs say by an edge */
    bool cooperative;  /* a launch whose blocks wait for one another */
    int priority;      /* of a launch: a hint, which is kept */
    uint64_t function; /* of a launch that is kept: the function's id */
    union {
        CUDA_KERNEL_NODE_PARAMS launch;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_HOST_NODE_PARAMS host;
        CUgraph graph; /* a node's own */
        CUevent event; /* to record or, as whatever was recorded is done, to wait for in vain */
        CUDA_BATCH_MEM_OP_NODE_PARAMS values;
    } as;
} work;

/* What can be said of work before it runs; what is wrong is also said on standard error. */
CUresult work_check(const work *w);

/* Runs it to its end. The context notes a kernel's failure; that memory ran out is not one. */
CUresult work_run(CUcontext c, const work *w);

/* Whether the function of a launch that is kept, or an event, is still there: a function's handle
 * may be that of another one by now. */
bool work_is_possible(const work *w);

/* Copies work that was checked, or that is kept and possible, with the values of a launch's
 * parameters. False where there is no memory. */
bool work_keep(arena *a, const work *w, work *kept);

#endif
