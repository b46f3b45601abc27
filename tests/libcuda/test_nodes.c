/* Nodes of every kind by one structure of parameters, events in graphs, and operations on single
 * words of memory. */
#include "libcuda/driver_sample.h"

#include <string.h>

typedef struct node_test {
    CUfunction add;
    CUdeviceptr p;
    CUstream stream;
    CUgraph graph;
} node_test;

static node_test start(void)
{
    node_test t = { load(ADD, "add"), zeros(), NULL, NULL };
    assert_success(cuStreamCreate(&t.stream, CU_STREAM_NON_BLOCKING));
    assert_success(cuGraphCreate(&t.graph, 0));
    return t;
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec;
    assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static CUgraphNodeParams add_params(const node_test *t, void **params)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
    p.kernel.func = t->add;
    p.kernel.gridDimX = p.kernel.gridDimY = p.kernel.gridDimZ = 1;
    p.kernel.blockDimX = NUMBERS;
    p.kernel.blockDimY = p.kernel.blockDimZ = 1;
    p.kernel.kernelParams = params;
    return p;
}

static CUgraphNodeParams set_params(CUdeviceptr p, unsigned value)
{
    CUgraphNodeParams set = { .type = CU_GRAPH_NODE_TYPE_MEMSET };
    set.memset.dst = p;
    set.memset.value = value;
    set.memset.elementSize = 4;
    set.memset.width = set.memset.height = 1;
    return set;
}

static CUgraphNodeParams copy_params(const uint32_t *from, CUdeviceptr to)
{
    CUgraphNodeParams copy = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
    copy.memcpy.copyParams = (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
                                              .srcHost = from,
                                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                              .dstDevice = to,
                                              .WidthInBytes = sizeof *from,
                                              .Height = 1,
                                              .Depth = 1 };
    return copy;
}

static void count_call(void *calls)
{
    ++*(int *)calls;
}

TEST_WITH(one_structure_describes_every_kind_of_node, make_context, drop_context)
{
    node_test t = start();
    uint32_t value = 5, host = 70;
    int calls = 0;
    void *params[] = { &t.p, &value };
    CUgraph inner;
    CUgraphNode nodes[6];
    CUgraphNodeParams add = add_params(&t, params), set = set_params(t.p, 1000),
                      copy = copy_params(&host, t.p + 4),
                      call = { .type = CU_GRAPH_NODE_TYPE_HOST },
                      child = { .type = CU_GRAPH_NODE_TYPE_GRAPH },
                      empty = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    call.host.fn = count_call;
    call.host.userData = &calls;
    assert_success(cuGraphCreate(&inner, 0));
    assert_success(cuGraphAddNode(&nodes[0], inner, NULL, 0, &call));
    child.graph.graph = inner;
    assert_success(cuGraphAddNode(&nodes[0], t.graph, NULL, 0, &set));
    assert_success(cuGraphAddNode(&nodes[1], t.graph, nodes, 1, &copy));
    assert_success(cuGraphAddNode(&nodes[2], t.graph, nodes, 2, &empty));
    assert_success(cuGraphAddNode_v2(&nodes[3], t.graph, &nodes[2], NULL, 1, &add));
    assert_success(cuGraphAddNode(&nodes[4], t.graph, NULL, 0, &child));
    assert_success(cuGraphAddNode(&nodes[5], t.graph, &nodes[4], 1, &call));
    for (unsigned i = 0; i < 6; i++) {
        static const CUgraphNodeType types[] = {
            CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_EMPTY,
            CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_GRAPH,  CU_GRAPH_NODE_TYPE_HOST
        };
        CUgraphNodeType type;
        assert_success(cuGraphNodeGetType(nodes[i], &type));
        assert_int_equal(type, types[i]);
    }
    CUgraphExec exec = instantiate(t.graph);
    assert_success(cuGraphLaunch(exec, t.stream));
    assert_true(number(t.p, 0) == 1005 && number(t.p, 1) == 75 && number(t.p, 2) == 5);
    assert_int_equal(calls, 2);

    value = 6;
    set.memset.value = 2000;
    copy.memcpy.copyParams.dstDevice = t.p + 8;
    call.host.userData = &host;
    assert_success(cuGraphExecNodeSetParams(exec, nodes[3], &add));
    assert_success(cuGraphExecNodeSetParams(exec, nodes[0], &set));
    assert_success(cuGraphExecNodeSetParams(exec, nodes[1], &copy));
    assert_success(cuGraphLaunch(exec, t.stream));
    assert_true(number(t.p, 0) == 2006 && number(t.p, 1) == 81 && number(t.p, 2) == 76);

    assert_success(cuGraphNodeSetParams(nodes[3], &add));
    assert_success(cuGraphNodeSetParams(nodes[5], &call));
    assert_int_equal(cuGraphNodeSetParams(nodes[5], &add), CUDA_ERROR_INVALID_VALUE);
    host = 70;
    assert_success(cuGraphLaunch(instantiate(t.graph), t.stream));
    assert_true(number(t.p, 0) == 1006 && number(t.p, 1) == 76 && host == 71);
}

TEST_WITH(what_must_be_zero_of_a_node_is_checked, make_context, drop_context)
{
    node_test t = start();
    CUgraphNode node;
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    p.reserved2 = 1;
    assert_int_equal(cuGraphAddNode(&node, t.graph, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    p.reserved2 = 0;
    p.reserved0[2] = 1;
    assert_int_equal(cuGraphAddNode(&node, t.graph, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuGraphAddNode(&node, t.graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    p.reserved0[2] = 0;
    p.type = 10;
    assert_int_equal(cuGraphAddNode(&node, t.graph, NULL, 0, &p), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_WITH(edges_of_new_nodes_are_checked, make_context, drop_context)
{
    node_test t = start();
    CUgraphNode nodes[2];
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    CUgraphEdgeData edge = { .type = CU_GRAPH_DEPENDENCY_TYPE_DEFAULT };
    assert_success(cuGraphAddNode_v2(&nodes[0], t.graph, NULL, NULL, 0, &p));
    assert_success(cuGraphAddNode_v2(&nodes[1], t.graph, nodes, &edge, 1, &p));
    edge = (CUgraphEdgeData){ .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
                              .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC };
    assert_int_equal(cuGraphAddNode_v2(&nodes[1], t.graph, nodes, &edge, 1, &p),
                     CUDA_ERROR_INVALID_VALUE);
}

TEST_WITH(graphs_record_events_whenever_they_run, make_context, drop_context)
{
    node_test t = start();
    CUevent first, second, got;
    CUgraphNode nodes[2];
    float milliseconds;
    assert_success(cuEventCreate(&first, 0));
    assert_success(cuEventCreate(&second, 0));
    assert_success(cuGraphAddEventRecordNode(&nodes[0], t.graph, NULL, 0, first));
    assert_success(cuGraphAddEventWaitNode(&nodes[1], t.graph, nodes, 1, first));
    assert_success(cuGraphEventWaitNodeGetEvent(nodes[1], &got));
    assert_ptr_equal(got, first);
    assert_int_equal(cuGraphEventWaitNodeGetEvent(nodes[0], &got), CUDA_ERROR_INVALID_VALUE);
    CUgraphExec exec = instantiate(t.graph);
    assert_success(cuEventRecord(second, t.stream));
    assert_int_equal(cuEventElapsedTime(&milliseconds, second, first), CUDA_ERROR_INVALID_HANDLE);
    assert_success(cuGraphLaunch(exec, t.stream));
    assert_success(cuEventElapsedTime(&milliseconds, second, first));
    assert_true(milliseconds >= 0);

    assert_success(cuGraphExecEventRecordNodeSetEvent(exec, nodes[0], second));
    assert_success(cuGraphLaunch(exec, t.stream));
    assert_success(cuEventElapsedTime(&milliseconds, first, second));
    assert_true(milliseconds >= 0);
    assert_success(cuEventDestroy_v2(second));
    assert_int_equal(cuGraphLaunch(exec, t.stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST_WITH(an_external_event_of_a_capture_is_a_node, make_context, drop_context)
{
    node_test t = start();
    CUevent first, second;
    CUgraph graph;
    CUgraphNode nodes[2];
    CUgraphNodeType types[2];
    size_t count = 2;
    float milliseconds;
    assert_success(cuEventCreate(&first, 0));
    assert_success(cuEventCreate(&second, 0));
    assert_success(cuEventRecord(first, t.stream));
    assert_success(cuStreamBeginCapture_v2(t.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_success(cuEventRecordWithFlags(second, t.stream, CU_EVENT_RECORD_EXTERNAL));
    assert_success(cuStreamWaitEvent(t.stream, first, CU_EVENT_WAIT_EXTERNAL));
    assert_success(cuStreamEndCapture(t.stream, &graph));
    assert_success(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_success(cuGraphNodeGetType(nodes[i], &types[i]));
    assert_true(types[0] == CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
                types[1] == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    assert_int_equal(cuEventElapsedTime(&milliseconds, first, second), CUDA_ERROR_INVALID_HANDLE);
    assert_success(cuGraphLaunch(instantiate(graph), t.stream));
    assert_success(cuEventElapsedTime(&milliseconds, first, second));
}

TEST_WITH(contexts_record_events, make_context, drop_context)
{
    CUevent e;
    assert_success(cuEventCreate(&e, 0));
    assert_success(cuCtxRecordEvent(context, e));
    assert_success(cuCtxWaitEvent(context, e));
    assert_success(cuEventQuery(e));
    assert_int_equal(cuCtxRecordEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
}

TEST_WITH(streams_write_values_and_wait_for_them, make_context, drop_context)
{
    node_test t = start();
    uint64_t wide;
    assert_success(cuStreamWriteValue32_v2(t.stream, t.p, 7, 0));
    assert_success(cuStreamWriteValue32(t.stream, t.p + 4, 0x80000000, 0));
    assert_success(cuStreamWriteValue64_v2(t.stream, t.p + 8, UINT64_C(0x100000002), 0));
    assert_success(cuMemcpyDtoH_v2(&wide, t.p + 8, sizeof wide));
    assert_true(number(t.p, 0) == 7 && number(t.p, 1) == 0x80000000 &&
                wide == UINT64_C(0x100000002));

    assert_success(cuStreamWaitValue32_v2(t.stream, t.p, 7, CU_STREAM_WAIT_VALUE_EQ));
    assert_success(cuStreamWaitValue32_v2(t.stream, t.p, 6, CU_STREAM_WAIT_VALUE_GEQ));
    assert_success(cuStreamWaitValue32(t.stream, t.p, 4, CU_STREAM_WAIT_VALUE_AND));
    assert_success(cuStreamWaitValue32(t.stream, t.p, 8, CU_STREAM_WAIT_VALUE_NOR));
    /* the difference is what has a sign: 0x80000000 lies behind 0x7fffffff */
    assert_success(cuStreamWaitValue32(t.stream, t.p + 4, 0x7fffffff, CU_STREAM_WAIT_VALUE_GEQ));
    assert_success(
        cuStreamWaitValue64_v2(t.stream, t.p + 8, UINT64_C(0xffffffff), CU_STREAM_WAIT_VALUE_GEQ));
    assert_int_equal(cuStreamWaitValue32_v2(t.stream, t.p, 8, CU_STREAM_WAIT_VALUE_GEQ),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuStreamWaitValue32_v2(t.stream, t.p, 6, CU_STREAM_WAIT_VALUE_EQ),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuStreamWaitValue32_v2(t.stream, t.p, 8, CU_STREAM_WAIT_VALUE_AND),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuStreamWaitValue32_v2(t.stream, t.p, ~7u, CU_STREAM_WAIT_VALUE_NOR),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuStreamWriteValue64_v2(t.stream, t.p + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue32_v2(t.stream, t.p, 1, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST_WITH(operations_on_memory_are_nodes, make_context, drop_context)
{
    node_test t = start();
    uint32_t value = 1;
    void *params[] = { &t.p, &value };
    CUstreamBatchMemOpParams operations[3] = {
        { .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = t.p } },
        { .memoryBarrier = { .operation = CU_STREAM_MEM_OP_BARRIER } },
        { .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                         .address = t.p,
                         .flags = CU_STREAM_WAIT_VALUE_EQ } },
    };
    CUgraph captured;
    CUgraphNode nodes[2];
    CUDA_BATCH_MEM_OP_NODE_PARAMS got;
    CUgraphNodeParams batch = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP },
                      add = add_params(&t, params);
    operations[0].writeValue.value = operations[2].waitValue.value = 50;
    batch.memOp.count = 3;
    batch.memOp.paramArray = operations;
    assert_success(cuGraphAddNode(&nodes[0], t.graph, NULL, 0, &batch));
    assert_success(cuGraphAddNode(&nodes[1], t.graph, nodes, 1, &add));
    assert_success(cuGraphBatchMemOpNodeGetParams(nodes[0], &got));
    assert_true(got.count == 3 && got.paramArray != operations &&
                got.paramArray[0].writeValue.value == 50);
    operations[0].writeValue.value = 60; /* a node has its own copy */
    CUgraphExec exec = instantiate(t.graph);
    assert_success(cuGraphLaunch(exec, t.stream));
    assert_int_equal(number(t.p, 0), 51);
    assert_success(cuGraphExecNodeSetParams(exec, nodes[0], &batch));
    assert_int_equal(cuGraphLaunch(exec, t.stream), CUDA_ERROR_NOT_SUPPORTED);

    operations[2].waitValue.value = 60;
    assert_success(cuStreamBeginCapture_v2(t.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_success(cuStreamBatchMemOp_v2(t.stream, 3, operations, 0));
    assert_success(cuStreamEndCapture(t.stream, &captured));
    operations[0].writeValue.value = 61;
    assert_success(cuGraphLaunch(instantiate(captured), t.stream));
    assert_int_equal(number(t.p, 0), 60);
    operations[0].operation = 77;
    assert_int_equal(cuStreamBatchMemOp(t.stream, 3, operations, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_WITH(nodes_of_kernels_have_attributes, make_context, drop_context)
{
    node_test t = start();
    uint32_t value = 1;
    void *params[] = { &t.p, &value };
    CUgraphNode nodes[3];
    CUkernelNodeAttrValue got;
    CUgraphNodeParams add = add_params(&t, params), empty = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    assert_success(cuGraphAddNode(&nodes[0], t.graph, NULL, 0, &add));
    assert_success(cuGraphAddNode(&nodes[1], t.graph, NULL, 0, &add));
    assert_success(cuGraphAddNode(&nodes[2], t.graph, NULL, 0, &empty));
    assert_success(cuGraphKernelNodeSetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                 &(CUkernelNodeAttrValue){ .cooperative = 1 }));
    assert_success(cuGraphKernelNodeSetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                 &(CUkernelNodeAttrValue){ .priority = -2 }));
    assert_success(cuGraphKernelNodeCopyAttributes(nodes[1], nodes[0]));
    assert_success(cuGraphKernelNodeGetAttribute(nodes[1], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
    assert_int_equal(got.cooperative, 1);
    assert_success(cuGraphKernelNodeGetAttribute(nodes[1], CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
    assert_int_equal(got.priority, -2);
    assert_int_equal(cuGraphKernelNodeCopyAttributes(nodes[2], nodes[0]), CUDA_ERROR_INVALID_VALUE);
    assert_success(cuGraphLaunch(instantiate(t.graph), t.stream));
    assert_int_equal(number(t.p, 0), 2);
}
