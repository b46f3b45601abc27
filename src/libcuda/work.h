/* What is submitted to a stream or is a node of a graph: a launch, a copy, a set, a call of a host
 * function, an event, operations on single words, in graphs all of another graph, or nothing.
 *
 * All copies are one kind: a box of rows from a place in host or device memory to another, of which
 * a plain copy is one row. */
#ifndef PTXGEN_LIBCUDA_WORK_H
#define PTXGEN_LIBCUDA_WORK_H

#include "libcuda/driver.h"

typedef struct work {
    CUgraphNodeType type;
    bool programmatic; /* a launch that may overlap with the one before, by an edge in graphs */
    bool cooperative;  /* a launch whose blocks wait for one another */
    int priority;      /* of a launch: a hint, which is kept */
    uint64_t function; /* of a launch that is kept: the function's id */
    union {
        CUDA_KERNEL_NODE_PARAMS launch;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_HOST_NODE_PARAMS host;
        CUgraph graph; /* a node's own */
        CUevent event; /* to record, or to wait for: whatever was recorded is done */
        CUDA_BATCH_MEM_OP_NODE_PARAMS words;
    } as;
} work;

/* The address of work of a type, with what it does. */
#define WORK(node_type, member, ...)                  \
    &(work)                                           \
    {                                                 \
        .type = (node_type), .as.member = __VA_ARGS__ \
    }

/* Makes work of the parameters of cuGraphAddNode, or of a call that changes what a node does, which
 * an empty node and one with a graph do not support. A graph is the program's own. */
CUresult work_of_params(const CUgraphNodeParams *p, bool changes, work *w);

/* Checks work before it runs, and says on standard error what is wrong with a launch. */
CUresult work_check(const work *w);

/* Checks that the function of a launch that is kept, or an event, is still there: a function's
 * handle may be that of another one by now. */
bool work_is_possible(const work *w);

/* Does work that was submitted to a stream or to a launch of a graph, after all that is queued. If
 * launches overlap there, a launch is only queued. The context notes a kernel's failure. */
CUresult work_run(CUcontext c, const void *of, bool overlaps, const work *w);

/* Copies work that was checked, or that is kept and possible, with the values of a launch's
 * parameters. Returns false if there is no memory. */
bool work_keep(arena *a, const work *w, work *kept);

#endif
