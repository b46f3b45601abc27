/* Nodes of every kind through one parameter structure, events in graphs, and memory operations on
 * single words. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

static CUgraphNodeParams add_params(void)
{
    return (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = sample.kernel };
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

TEST_OF_GRAPHS(one_structure_describes_every_kind_of_node)
{
    uint32_t host = 70;
    int calls = 0;
    CUgraph inner = new_graph();
    CUgraphNode nodes[6];
    CUgraphNodeParams add = add_params(), set = set_params(sample.p, 1000),
                      copy = copy_params(&host, sample.p + 4),
                      call = { .type = CU_GRAPH_NODE_TYPE_HOST },
                      child = { .type = CU_GRAPH_NODE_TYPE_GRAPH },
                      empty = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    call.host.fn = count_call;
    call.host.userData = &calls;
    assert_success(cuGraphAddNode(&nodes[0], inner, NULL, 0, &call));
    child.graph.graph = inner;
    assert_success(cuGraphAddNode(&nodes[0], sample.graph, NULL, 0, &set));
    assert_success(cuGraphAddNode(&nodes[1], sample.graph, nodes, 1, &copy));
    assert_success(cuGraphAddNode(&nodes[2], sample.graph, nodes, 2, &empty));
    assert_success(cuGraphAddNode_v2(&nodes[3], sample.graph, &nodes[2], NULL, 1, &add));
    assert_success(cuGraphAddNode(&nodes[4], sample.graph, NULL, 0, &child));
    assert_success(cuGraphAddNode(&nodes[5], sample.graph, &nodes[4], 1, &call));
    for (unsigned i = 0; i < 6; i++) {
        static const CUgraphNodeType types[] = {
            CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_EMPTY,
            CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_GRAPH,  CU_GRAPH_NODE_TYPE_HOST
        };
        CUgraphNodeType type;
        assert_success(cuGraphNodeGetType(nodes[i], &type));
        assert_int_equal(type, types[i]);
    }
    CUgraphExec exec = instantiate(sample.graph);
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_true(number(sample.p, 0) == 1005 && number(sample.p, 1) == 75 &&
                number(sample.p, 2) == 5);
    assert_int_equal(calls, 2);

    sample.value = 6;
    set.memset.value = 2000;
    copy.memcpy.copyParams.dstDevice = sample.p + 8;
    call.host.userData = &host;
    assert_success(cuGraphExecNodeSetParams(exec, nodes[3], &add));
    assert_success(cuGraphExecNodeSetParams(exec, nodes[0], &set));
    assert_success(cuGraphExecNodeSetParams(exec, nodes[1], &copy));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_true(number(sample.p, 0) == 2006 && number(sample.p, 1) == 81 &&
                number(sample.p, 2) == 76);

    assert_success(cuGraphNodeSetParams(nodes[3], &add));
    assert_success(cuGraphNodeSetParams(nodes[5], &call));
    assert_error(INVALID_VALUE, cuGraphNodeSetParams(nodes[5], &add));
    host = 70;
    assert_success(cuGraphLaunch(instantiate(sample.graph), sample.stream));
    assert_true(number(sample.p, 0) == 1006 && number(sample.p, 1) == 76 && host == 71);
}

TEST_OF_GRAPHS(reserved_fields_of_nodes_must_be_zero)
{
    CUgraphNode node;
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    p.reserved2 = 1;
    assert_error(INVALID_VALUE, cuGraphAddNode(&node, sample.graph, NULL, 0, &p));
    p.reserved2 = 0;
    p.reserved0[2] = 1;
    assert_error(INVALID_VALUE, cuGraphAddNode(&node, sample.graph, NULL, 0, &p));
    assert_error(INVALID_VALUE, cuGraphAddNode(&node, sample.graph, NULL, 0, NULL));
    p.reserved0[2] = 0;
    p.type = 10;
    assert_error(NOT_SUPPORTED, cuGraphAddNode(&node, sample.graph, NULL, 0, &p));
}

TEST_OF_GRAPHS(edges_of_new_nodes_are_checked)
{
    CUgraphNode nodes[2];
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    CUgraphEdgeData edge = { .type = CU_GRAPH_DEPENDENCY_TYPE_DEFAULT };
    assert_success(cuGraphAddNode_v2(&nodes[0], sample.graph, NULL, NULL, 0, &p));
    assert_success(cuGraphAddNode_v2(&nodes[1], sample.graph, nodes, &edge, 1, &p));
    edge = (CUgraphEdgeData){ .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
                              .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC };
    assert_error(INVALID_VALUE, cuGraphAddNode_v2(&nodes[1], sample.graph, nodes, &edge, 1, &p));
}

TEST_OF_GRAPHS(graphs_record_events_at_each_launch)
{
    CUevent first = new_event(0), second = new_event(0), got;
    CUgraphNode nodes[2];
    float milliseconds;
    assert_success(cuGraphAddEventRecordNode(&nodes[0], sample.graph, NULL, 0, first));
    assert_success(cuGraphAddEventWaitNode(&nodes[1], sample.graph, nodes, 1, first));
    assert_success(cuGraphEventWaitNodeGetEvent(nodes[1], &got));
    assert_ptr_equal(got, first);
    assert_error(INVALID_VALUE, cuGraphEventWaitNodeGetEvent(nodes[0], &got));
    CUgraphExec exec = instantiate(sample.graph);
    assert_success(cuEventRecord(second, sample.stream));
    assert_error(INVALID_HANDLE, cuEventElapsedTime(&milliseconds, second, first));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_success(cuEventElapsedTime(&milliseconds, second, first));
    assert_true(milliseconds >= 0);

    assert_success(cuGraphExecEventRecordNodeSetEvent(exec, nodes[0], second));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_success(cuEventElapsedTime(&milliseconds, first, second));
    assert_true(milliseconds >= 0);
    assert_success(cuEventDestroy_v2(second));
    assert_error(INVALID_HANDLE, cuGraphLaunch(exec, sample.stream));
}

TEST_OF_GRAPHS(an_external_event_of_a_capture_is_a_node)
{
    CUevent first = new_event(0), second = new_event(0);
    CUgraphNode nodes[2];
    CUgraphNodeType types[2];
    size_t count = 2;
    float milliseconds;
    assert_success(cuEventRecord(first, sample.stream));
    begin_capture(sample.stream);
    assert_success(cuEventRecordWithFlags(second, sample.stream, CU_EVENT_RECORD_EXTERNAL));
    assert_success(cuStreamWaitEvent(sample.stream, first, CU_EVENT_WAIT_EXTERNAL));
    CUgraph graph = end_capture(sample.stream);
    assert_success(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_success(cuGraphNodeGetType(nodes[i], &types[i]));
    assert_true(types[0] == CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
                types[1] == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    assert_error(INVALID_HANDLE, cuEventElapsedTime(&milliseconds, first, second));
    assert_success(cuGraphLaunch(instantiate(graph), sample.stream));
    assert_success(cuEventElapsedTime(&milliseconds, first, second));
}

TEST_IN_CONTEXT(contexts_record_events)
{
    CUevent e = new_event(0);
    assert_success(cuCtxRecordEvent(context, e));
    assert_success(cuCtxWaitEvent(context, e));
    assert_success(cuEventQuery(e));
    assert_error(INVALID_HANDLE, cuCtxRecordEvent(context, NULL));
}

TEST_OF_GRAPHS(streams_write_values_and_wait_for_them)
{
    uint64_t wide;
    assert_success(cuStreamWriteValue32_v2(sample.stream, sample.p, 7, 0));
    assert_success(cuStreamWriteValue32(sample.stream, sample.p + 4, 0x80000000, 0));
    assert_success(cuStreamWriteValue64_v2(sample.stream, sample.p + 8, UINT64_C(0x100000002), 0));
    assert_success(cuMemcpyDtoH_v2(&wide, sample.p + 8, sizeof wide));
    assert_true(number(sample.p, 0) == 7 && number(sample.p, 1) == 0x80000000 &&
                wide == UINT64_C(0x100000002));

    assert_success(cuStreamWaitValue32_v2(sample.stream, sample.p, 7, CU_STREAM_WAIT_VALUE_EQ));
    assert_success(cuStreamWaitValue32_v2(sample.stream, sample.p, 6, CU_STREAM_WAIT_VALUE_GEQ));
    assert_success(cuStreamWaitValue32(sample.stream, sample.p, 4, CU_STREAM_WAIT_VALUE_AND));
    assert_success(cuStreamWaitValue32(sample.stream, sample.p, 8, CU_STREAM_WAIT_VALUE_NOR));
    /* the comparison is of the signed difference: 0x80000000 is after 0x7fffffff */
    assert_success(
        cuStreamWaitValue32(sample.stream, sample.p + 4, 0x7fffffff, CU_STREAM_WAIT_VALUE_GEQ));
    assert_success(cuStreamWaitValue64_v2(sample.stream, sample.p + 8, UINT64_C(0xffffffff),
                                          CU_STREAM_WAIT_VALUE_GEQ));
    assert_error(NOT_SUPPORTED,
                 cuStreamWaitValue32_v2(sample.stream, sample.p, 8, CU_STREAM_WAIT_VALUE_GEQ));
    assert_error(NOT_SUPPORTED,
                 cuStreamWaitValue32_v2(sample.stream, sample.p, 6, CU_STREAM_WAIT_VALUE_EQ));
    assert_error(NOT_SUPPORTED,
                 cuStreamWaitValue32_v2(sample.stream, sample.p, 8, CU_STREAM_WAIT_VALUE_AND));
    assert_error(NOT_SUPPORTED,
                 cuStreamWaitValue32_v2(sample.stream, sample.p, ~7u, CU_STREAM_WAIT_VALUE_NOR));
    assert_error(INVALID_VALUE, cuStreamWriteValue64_v2(sample.stream, sample.p + 4, 1, 0));
    assert_error(INVALID_VALUE, cuStreamWriteValue32_v2(sample.stream, sample.p, 1, 2));
}

TEST_OF_GRAPHS(memory_operations_are_nodes)
{
    CUstreamBatchMemOpParams operations[3] = {
        { .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = sample.p } },
        { .memoryBarrier = { .operation = CU_STREAM_MEM_OP_BARRIER } },
        { .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                         .address = sample.p,
                         .flags = CU_STREAM_WAIT_VALUE_EQ } },
    };
    CUgraphNode nodes[2];
    CUDA_BATCH_MEM_OP_NODE_PARAMS got;
    CUgraphNodeParams batch = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP }, add = add_params();
    operations[0].writeValue.value = operations[2].waitValue.value = 50;
    batch.memOp.count = 3;
    batch.memOp.paramArray = operations;
    sample.value = 1;
    assert_success(cuGraphAddNode(&nodes[0], sample.graph, NULL, 0, &batch));
    assert_success(cuGraphAddNode(&nodes[1], sample.graph, nodes, 1, &add));
    assert_success(cuGraphBatchMemOpNodeGetParams(nodes[0], &got));
    assert_true(got.count == 3 && got.paramArray != operations &&
                got.paramArray[0].writeValue.value == 50);
    operations[0].writeValue.value = 60; /* a node has a copy of its parameters */
    CUgraphExec exec = instantiate(sample.graph);
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_int_equal(number(sample.p, 0), 51);
    assert_success(cuGraphExecNodeSetParams(exec, nodes[0], &batch));
    assert_error(NOT_SUPPORTED, cuGraphLaunch(exec, sample.stream));

    operations[2].waitValue.value = 60;
    begin_capture(sample.stream);
    assert_success(cuStreamBatchMemOp_v2(sample.stream, 3, operations, 0));
    CUgraph captured = end_capture(sample.stream);
    operations[0].writeValue.value = 61;
    assert_success(cuGraphLaunch(instantiate(captured), sample.stream));
    assert_int_equal(number(sample.p, 0), 60);
    operations[0].operation = 77;
    assert_error(NOT_SUPPORTED, cuStreamBatchMemOp(sample.stream, 3, operations, 0));
}

TEST_OF_GRAPHS(nodes_of_kernels_have_attributes)
{
    CUgraphNode nodes[3];
    CUkernelNodeAttrValue got;
    CUgraphNodeParams add = add_params(), empty = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    sample.value = 1;
    assert_success(cuGraphAddNode(&nodes[0], sample.graph, NULL, 0, &add));
    assert_success(cuGraphAddNode(&nodes[1], sample.graph, NULL, 0, &add));
    assert_success(cuGraphAddNode(&nodes[2], sample.graph, NULL, 0, &empty));
    assert_success(cuGraphKernelNodeSetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                 &(CUkernelNodeAttrValue){ .cooperative = 1 }));
    assert_success(cuGraphKernelNodeSetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                 &(CUkernelNodeAttrValue){ .priority = -2 }));
    assert_success(cuGraphKernelNodeCopyAttributes(nodes[1], nodes[0]));
    assert_success(cuGraphKernelNodeGetAttribute(nodes[1], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
    assert_int_equal(got.cooperative, 1);
    assert_success(cuGraphKernelNodeGetAttribute(nodes[1], CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
    assert_int_equal(got.priority, -2);
    assert_error(INVALID_VALUE, cuGraphKernelNodeCopyAttributes(nodes[2], nodes[0]));
    assert_success(cuGraphLaunch(instantiate(sample.graph), sample.stream));
    assert_int_equal(number(sample.p, 0), 2);
}
