/* Nodes of every kind by one structure of parameters, and the attributes of kernels' nodes. */
#include "libcuda/graph.h"

/* What must be zero is. */
static bool is_known(const CUgraphNodeParams *p)
{
    bool zero = p && !p->reserved2;
    for (size_t i = 0; zero && i < sizeof p->reserved0 / sizeof *p->reserved0; i++)
        zero = !p->reserved0[i];
    return zero && (p->type != CU_GRAPH_NODE_TYPE_MEMCPY || !p->memcpy.flags);
}

/* cuda.h has names of their own for the structures that this one holds. */
static const CUDA_KERNEL_NODE_PARAMS *launch_of(const CUgraphNodeParams *p)
{
    return (const void *)&p->kernel;
}

static const CUDA_HOST_NODE_PARAMS *host_of(const CUgraphNodeParams *p)
{
    return (const void *)&p->host;
}

static const CUDA_BATCH_MEM_OP_NODE_PARAMS *values_of(const CUgraphNodeParams *p)
{
    return (const void *)&p->memOp;
}

static CUDA_MEMSET_NODE_PARAMS set_of(const CUgraphNodeParams *p)
{
    return (CUDA_MEMSET_NODE_PARAMS){ .dst = p->memset.dst,
                                      .pitch = p->memset.pitch,
                                      .value = p->memset.value,
                                      .elementSize = p->memset.elementSize,
                                      .width = p->memset.width,
                                      .height = p->memset.height };
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph g, const CUgraphNode *from, size_t count,
                        CUgraphNodeParams *p)
{
    if (!is_known(p))
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMSET_NODE_PARAMS set;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphAddKernelNode_v2(node, g, from, count, launch_of(p));
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return cuGraphAddMemcpyNode(node, g, from, count, &p->memcpy.copyParams, p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        set = set_of(p);
        return cuGraphAddMemsetNode(node, g, from, count, &set, p->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        return cuGraphAddHostNode(node, g, from, count, host_of(p));
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return p->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE
                   ? cuGraphAddChildGraphNode(node, g, from, count, p->graph.graph)
                   : CUDA_ERROR_NOT_SUPPORTED;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return cuGraphAddEmptyNode(node, g, from, count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return cuGraphAddEventWaitNode(node, g, from, count, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return cuGraphAddEventRecordNode(node, g, from, count, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return cuGraphAddBatchMemOpNode(node, g, from, count, values_of(p));
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult check_edges(CUgraphNodeType type, const CUgraphNode *from,
                            const CUgraphEdgeData *edges, size_t count)
{
    CUresult r = enter();
    for (size_t i = 0; !r && i < count; i++)
        r = is_node(from[i]) ? graph_check_edge(&edges[i], from[i], type)
                             : CUDA_ERROR_INVALID_VALUE;
    return leave(r);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *from,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *p)
{
    if (!p || (count && !from))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = edges ? check_edges(p->type, from, edges, count) : CUDA_SUCCESS;
    r = r ? r : cuGraphAddNode(node, g, from, count, p);
    if (r || !edges)
        return r;
    r = enter();
    for (size_t i = 0; !r && i < count; i++)
        if (edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
            !graph_make_early(*node, from[i]))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    return leave(r);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *p)
{
    if (!is_known(p))
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMSET_NODE_PARAMS set;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphKernelNodeSetParams_v2(node, launch_of(p));
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return cuGraphMemcpyNodeSetParams(node, &p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        set = set_of(p);
        return cuGraphMemsetNodeSetParams(node, &set);
    case CU_GRAPH_NODE_TYPE_HOST:
        return cuGraphHostNodeSetParams(node, host_of(p));
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return cuGraphEventWaitNodeSetEvent(node, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return cuGraphEventRecordNodeSetEvent(node, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return cuGraphBatchMemOpNodeSetParams(node, values_of(p));
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphExecNodeSetParams(CUgraphExec e, CUgraphNode node, CUgraphNodeParams *p)
{
    if (!is_known(p))
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMSET_NODE_PARAMS set;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphExecKernelNodeSetParams_v2(e, node, launch_of(p));
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return cuGraphExecMemcpyNodeSetParams(e, node, &p->memcpy.copyParams, p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        set = set_of(p);
        return cuGraphExecMemsetNodeSetParams(e, node, &set, p->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        return cuGraphExecHostNodeSetParams(e, node, host_of(p));
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return cuGraphExecEventWaitNodeSetEvent(e, node, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return cuGraphExecEventRecordNodeSetEvent(e, node, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return cuGraphExecBatchMemOpNodeSetParams(e, node, values_of(p));
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* All blocks of a cooperative launch must fit on the device at a time. */
static CUresult set_cooperative(CUgraphNode node, bool cooperative)
{
    work w = node->work;
    w.cooperative = cooperative;
    CUresult r = work_is_possible(&w) ? work_check(&w) : CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        node->work.cooperative = cooperative;
    return r;
}

static CUresult check_kernel(CUgraphNode node, const void *value)
{
    return value && is_node(node) && node->work.type == CU_GRAPH_NODE_TYPE_KERNEL
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

/* Of attributes there are here those that a launch goes by, and the priority, which is kept. */
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID which,
                                       CUkernelNodeAttrValue *value)
{
    CUresult r = enter();
    r = r ? r : check_kernel(node, value);
    if (!r && which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        value->cooperative = node->work.cooperative;
    else if (!r && which == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = node->work.priority;
    else if (!r)
        r = CUDA_ERROR_NOT_SUPPORTED;
    return leave(r);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID which,
                                       const CUkernelNodeAttrValue *value)
{
    CUresult r = enter();
    r = r ? r : check_kernel(node, value);
    if (!r && which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        r = set_cooperative(node, value->cooperative);
    else if (!r && which == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        node->work.priority = value->priority;
    else if (!r)
        r = CUDA_ERROR_NOT_SUPPORTED;
    return leave(r);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
    CUresult r = enter();
    r = r ? r : check_kernel(to, to);
    r = r ? r : check_kernel(from, from);
    r = r ? r : set_cooperative(to, from->work.cooperative);
    if (!r)
        to->work.priority = from->work.priority;
    return leave(r);
}
