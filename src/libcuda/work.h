/* Work: an item submitted to a stream, or a node of a graph. Its types:
 * - a kernel launch
 * - a copy: a box of rows between host or device memory; a plain copy is one row
 * - a memset
 * - a call of a host function
 * - an event record or wait
 * - memory operations on single words
 * - a child graph or nothing, only in graphs
 */
#pragma once

#include "libcuda/driver.h"

typedef struct work {
    CUgraphNodeType type;
    bool programmatic; /* launch that may overlap with its predecessor; in graphs, by an edge */
    bool cooperative;  /* launch whose blocks wait for each other */
    int priority;      /* of a launch; a hint without effect */
    uint64_t function; /* of a kept launch: id of its function */
    union {
        CUDA_KERNEL_NODE_PARAMS launch;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_HOST_NODE_PARAMS host;
        CUgraph graph; /* owned by the node */
        CUevent event; /* to record or to wait for; a wait is a no-op, since recorded work is
                          complete */
        CUDA_BATCH_MEM_OP_NODE_PARAMS words;
    } as;
} work;

/* Returns the address of a work of a type, with its parameters in member. */
#define WORK(node_type, member, ...)                  \
    &(work)                                           \
    {                                                 \
        .type = (node_type), .as.member = __VA_ARGS__ \
    }

/* Makes work from the parameters of cuGraphAddNode or, if changes, of an update, which empty nodes
 * and child graphs do not have. A graph in the work belongs to the program. */
CUresult work_of_params(const CUgraphNodeParams *p, bool changes, work *w);

/* Checks work before it runs. Reports an invalid launch on standard error. */
CUresult work_check(const work *w);

/* Returns false if a kept launch's function, compared by id, or an event was destroyed. */
bool work_is_valid(const work *w);

/* Runs work of a stream or of a graph launch after all queued launches. If overlaps is true, a
 * launch is only queued. A kernel fault is stored in the context. */
CUresult work_run(CUcontext c, const void *of, bool overlaps, const work *w);

/* Copies checked work with a launch's parameter values. Returns false if memory runs out. */
bool work_keep(arena *a, const work *w, work *kept);
