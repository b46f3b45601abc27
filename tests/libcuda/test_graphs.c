/* Streams, events, capture and graphs of the emulated driver, on a device of a target other than
 * the default. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

static size_t node_count(CUgraph graph)
{
    size_t count;
    assert_success(cuGraphGetNodes(graph, NULL, &count));
    return count;
}

TEST_IN_CONTEXT(the_environment_selects_the_target)
{
    int major, minor;
    assert_success(cuDeviceComputeCapability(&major, &minor, 0));
    assert_true(major == 8 && minor == 6);
}

TEST_IN_CONTEXT(dependent_launches_are_refused_on_devices_without_them)
{
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                    .value.programmaticStreamSerializationAllowed = 1 };
    CUdeviceptr p = zeros();
    uint32_t value = 1;
    void *params[] = { &p, &value };
    CUfunction f = load(ADD, "add");
    assert_error(NOT_SUPPORTED, launch_with(&attribute, f, 1, NUMBERS, NULL, params));
    attribute.value.programmaticStreamSerializationAllowed = 0;
    assert_success(launch_with(&attribute, f, 1, NUMBERS, NULL, params));
    assert_int_equal(number(p, 0), 1);
}

TEST_IN_CONTEXT(events_measure_elapsed_time)
{
    CUevent from = new_event(0), to = new_event(0), untimed = new_event(CU_EVENT_DISABLE_TIMING);
    float milliseconds = -1;
    assert_success(cuEventRecord(from, NULL));
    assert_success(cuEventRecord(untimed, NULL));
    assert_error(INVALID_HANDLE, cuEventElapsedTime_v2(&milliseconds, from, to));
    assert_success(add(load(ADD, "add"), NULL, zeros(), 1));
    assert_success(cuEventRecord(to, NULL));
    assert_success(cuEventSynchronize(to));
    assert_success(cuEventElapsedTime_v2(&milliseconds, from, to));
    assert_true(milliseconds > 0 && milliseconds < 10000);
    assert_error(INVALID_HANDLE, cuEventElapsedTime_v2(&milliseconds, from, untimed));
}

TEST_OF_GRAPHS(streams_keep_attributes)
{
    CUstreamAttrValue value = { .priority = -3 }, got;
    int priority;
    assert_success(cuStreamSetAttribute(sample.stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    assert_success(cuStreamGetPriority(sample.stream, &priority));
    assert_int_equal(priority, -3);
    value.pad[40] = 7;
    assert_success(
        cuStreamSetAttribute(sample.stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    assert_success(cuStreamCopyAttributes(sample.other, sample.stream));
    assert_success(
        cuStreamGetAttribute(sample.other, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &got));
    assert_memory_equal(&got, &value, sizeof got);
    assert_success(cuStreamGetAttribute(sample.other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
    assert_int_equal(got.priority, -3);
    assert_error(INVALID_VALUE,
                 cuStreamSetAttribute(sample.stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
}

TEST_OF_GRAPHS(captured_work_runs_only_with_its_graph)
{
    uint32_t host = 100;
    CUstreamCaptureStatus status;
    begin_capture(sample.stream);
    assert_success(cuStreamIsCapturing(sample.stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_success(cuMemcpyHtoDAsync_v2(sample.p, &host, sizeof host, sample.stream));
    assert_success(add(sample.add, sample.stream, sample.p, 7));
    assert_success(cuMemsetD32Async(sample.p + 4, 50, 1, sample.stream));
    CUgraph graph = end_capture(sample.stream);
    assert_int_equal(node_count(graph), 3);
    assert_int_equal(number(sample.p, 0), 0);

    CUgraphExec exec = instantiate(graph);
    assert_success(cuGraphDestroy(graph));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_int_equal(number(sample.p, 0), 107);
    assert_int_equal(number(sample.p, 1), 50);
    assert_int_equal(number(sample.p, 2), 7);
    host = 200;
    assert_success(cuGraphLaunch(exec, sample.other));
    assert_int_equal(number(sample.p, 0), 207);
    assert_int_equal(number(sample.p, 2), 14);
    assert_success(cuGraphExecDestroy(exec));
    assert_error(INVALID_VALUE, cuGraphLaunch(exec, sample.stream));
}

TEST_OF_GRAPHS(streams_join_a_capture_by_events)
{
    CUevent fork = new_event(CU_EVENT_DISABLE_TIMING), join = new_event(CU_EVENT_DISABLE_TIMING);
    size_t edges = 0;
    assert_success(cuStreamBeginCapture_v2(sample.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    assert_success(add(sample.add, sample.stream, sample.p, 1));
    assert_success(cuEventRecord(fork, sample.stream));
    assert_success(cuStreamWaitEvent(sample.other, fork, 0));
    assert_success(add(sample.add, sample.other, sample.p, 10));
    assert_success(add(sample.add, sample.stream, sample.p, 100));
    assert_success(cuEventRecord(join, sample.other));
    assert_success(cuStreamWaitEvent(sample.stream, join, 0));
    assert_success(add(sample.add, sample.stream, sample.p, 1000));
    CUgraph graph = end_capture(sample.stream);
    assert_error(CAPTURED_EVENT, cuEventQuery(join));

    CUgraphNode nodes[4];
    size_t count = 4;
    assert_success(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 4);
    assert_success(cuGraphNodeGetDependencies(nodes[3], NULL, &edges));
    assert_int_equal(edges, 2);
    assert_success(cuGraphLaunch(instantiate(graph), sample.stream));
    assert_int_equal(number(sample.p, 0), 1111);
}

TEST_OF_GRAPHS(unjoined_work_invalidates_a_capture)
{
    CUevent fork = new_event(0);
    CUgraph graph;
    assert_success(cuStreamBeginCapture_v2(sample.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_success(cuEventRecord(fork, sample.stream));
    assert_success(cuStreamWaitEvent(sample.other, fork, 0));
    assert_success(add(sample.add, sample.other, sample.p, 1));
    assert_error(STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(sample.stream, &graph));
    assert_null(graph);
    assert_success(add(sample.add, sample.other, sample.p, 1));
    assert_int_equal(number(sample.p, 0), 1);
}

TEST_OF_GRAPHS(forbidden_calls_invalidate_a_capture)
{
    CUstream blocking;
    CUdeviceptr p;
    CUgraph graph;
    assert_success(cuStreamCreate(&blocking, 0));
    begin_capture(sample.stream);
    assert_error(STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&p, 4));
    assert_error(STREAM_CAPTURE_INVALIDATED, add(sample.add, sample.stream, sample.p, 1));
    assert_error(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(sample.stream, &graph));

    assert_success(cuStreamBeginCapture_v2(sample.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_success(cuMemAlloc_v2(&p, 4));
    assert_error(STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(sample.stream));
    assert_error(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(sample.stream, &graph));

    assert_success(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_error(STREAM_CAPTURE_IMPLICIT, add(sample.add, NULL, sample.p, 1));
    assert_error(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));

    assert_error(STREAM_CAPTURE_UNSUPPORTED,
                 cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_error(ILLEGAL_STATE, cuStreamEndCapture(sample.stream, &graph));
}

TEST_OF_GRAPHS(nodes_run_after_their_dependencies)
{
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = sample.p, .value = 1000, .elementSize = 4, .width = NUMBERS, .height = 1
    };
    CUgraph graph = new_graph();
    CUgraphNode nodes[2];
    assert_success(cuGraphAddKernelNode_v2(&nodes[0], graph, NULL, 0, &sample.kernel));
    assert_success(cuGraphAddMemsetNode(&nodes[1], graph, NULL, 0, &set, context));
    assert_success(cuGraphAddDependencies_v2(graph, &nodes[1], &nodes[0], NULL, 1));
    sample.value = 6; /* a node has a copy of its parameters */
    assert_success(cuGraphLaunch(instantiate(graph), sample.stream));
    assert_int_equal(number(sample.p, 3), 1005);

    CUgraphExec exec;
    assert_success(cuGraphAddDependencies(graph, &nodes[0], &nodes[1], 1));
    assert_error(INVALID_VALUE, cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_success(cuGraphDestroy(graph));
}

TEST_OF_GRAPHS(executable_graphs_accept_new_parameters)
{
    CUgraph graph = new_graph(), changed;
    CUgraphNode node;
    CUgraphExecUpdateResultInfo info;
    assert_success(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &sample.kernel));
    CUgraphExec exec = instantiate(graph);
    sample.value = 70;
    assert_success(cuGraphExecKernelNodeSetParams_v2(exec, node, &sample.kernel));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_int_equal(number(sample.p, 0), 70);
    sample.kernel.blockDimX = 33;
    assert_error(INVALID_VALUE, cuGraphExecKernelNodeSetParams_v2(exec, node, &sample.kernel));

    begin_capture(sample.stream);
    assert_success(add(sample.add, sample.stream, sample.p, 900));
    changed = end_capture(sample.stream);
    assert_success(cuGraphExecUpdate_v2(exec, changed, &info));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_int_equal(number(sample.p, 0), 970);

    assert_success(cuGraphAddEmptyNode(&node, changed, NULL, 0));
    assert_error(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, changed, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_OF_GRAPHS(graphs_run_through_the_first_version_of_the_api)
{
    CUDA_KERNEL_NODE_PARAMS_v1 old, got; /* as passed by programs of CUDA 10 and 11 */
    CUgraph graph = new_graph();
    CUgraphNode node, wrong;
    CUgraphExec exec;
    CUgraphExecUpdateResult result;
    char log[100] = "old";
    memcpy(&old, &sample.kernel, sizeof old);
    assert_success(cuGraphAddKernelNode(&node, graph, NULL, 0, &old));
    assert_success(cuGraphKernelNodeGetParams(node, &got));
    assert_true(got.func == sample.add && got.blockDimX == 32);
    assert_int_equal(*(uint32_t *)got.kernelParams[1], 5);
    sample.value = 6;
    assert_success(cuGraphKernelNodeSetParams(node, &old));
    assert_success(cuGraphInstantiate(&exec, graph, &wrong, log, sizeof log));
    assert_string_equal(log, "");
    assert_null(wrong);
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_int_equal(number(sample.p, 0), 6);
    sample.value = 70;
    assert_success(cuGraphExecKernelNodeSetParams(exec, node, &old));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_int_equal(number(sample.p, 0), 76);
    assert_success(cuGraphExecUpdate(exec, graph, &wrong, &result));
    assert_int_equal(result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_int_equal(number(sample.p, 0), 82);
}

TEST_IN_CONTEXT(a_cycle_is_in_the_log)
{
    CUgraph graph = new_graph();
    CUgraphNode nodes[2], wrong;
    CUgraphExec exec;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = { 0 };
    char log[100] = "";
    cuuint64_t flags;
    assert_success(cuGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    assert_success(cuGraphAddEmptyNode(&nodes[1], graph, nodes, 1));
    params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | 8;
    assert_success(cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    assert_success(cuGraphExecGetFlags(exec, &flags));
    assert_int_equal(flags, 8);
    assert_error(INVALID_VALUE, cuGraphInstantiateWithFlags(&exec, graph, 16));
    assert_success(cuGraphAddDependencies(graph, &nodes[1], &nodes[0], 1));
    assert_error(INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    assert_error(INVALID_VALUE, cuGraphInstantiate_v2(&exec, graph, &wrong, log, sizeof log));
    assert_string_equal(log, "the graph has a cycle");
}

TEST_IN_CONTEXT(edges_are_listed_and_removed)
{
    CUgraph graph = new_graph();
    CUgraphNode nodes[3], from[3], to[3];
    size_t count = 3;
    for (size_t i = 0; i < 3; i++)
        assert_success(cuGraphAddEmptyNode(&nodes[i], graph, nodes, i));
    assert_success(cuGraphGetEdges(graph, from, to, &count));
    assert_int_equal(count, 3);
    assert_true(from[0] == nodes[0] && to[0] == nodes[1]);
    assert_true(from[2] == nodes[1] && to[2] == nodes[2]);
    assert_success(cuGraphNodeGetDependentNodes(nodes[0], to, &count));
    assert_true(count == 2 && to[0] == nodes[1] && to[1] == nodes[2]);
    assert_success(cuGraphRemoveDependencies(graph, &nodes[0], &nodes[1], 1));
    assert_error(INVALID_VALUE, cuGraphRemoveDependencies(graph, &nodes[0], &nodes[1], 1));
    count = 3;
    assert_success(cuGraphGetRootNodes(graph, from, &count));
    assert_true(count == 2 && from[0] == nodes[0] && from[1] == nodes[1]);
    assert_success(cuGraphDestroyNode(nodes[1]));
    assert_error(INVALID_VALUE, cuGraphDestroyNode(nodes[1]));
    assert_success(cuGraphGetEdges(graph, NULL, NULL, &count));
    assert_int_equal(count, 1);
    assert_int_equal(node_count(graph), 2);
    instantiate(graph);
}

TEST_OF_GRAPHS(a_copy_of_a_graph_is_independent)
{
    CUgraph graph = new_graph(), copy;
    CUgraphNode nodes[2], found;
    size_t count;
    assert_success(cuGraphAddKernelNode_v2(&nodes[0], graph, NULL, 0, &sample.kernel));
    assert_success(cuGraphAddKernelNode_v2(&nodes[1], graph, nodes, 1, &sample.kernel));
    assert_success(cuGraphClone(&copy, graph));
    assert_success(cuGraphNodeFindInClone(&found, nodes[1], copy));
    assert_true(found != nodes[1]);
    assert_success(cuGraphNodeGetDependencies(found, NULL, &count));
    assert_int_equal(count, 1);
    sample.value = 100;
    assert_success(cuGraphKernelNodeSetParams_v2(found, &sample.kernel));
    assert_error(INVALID_VALUE, cuGraphNodeFindInClone(&found, found, copy));
    assert_success(cuGraphDestroy(graph));
    assert_success(cuGraphLaunch(instantiate(copy), sample.stream));
    assert_int_equal(number(sample.p, 0), 105);
}

static void append(void *data)
{
    strcat(data, "x");
}

TEST_OF_GRAPHS(host_functions_run_in_stream_order)
{
    char text[8] = "";
    assert_success(cuLaunchHostFunc(sample.stream, append, text));
    assert_string_equal(text, "x");
    begin_capture(sample.stream);
    assert_success(cuLaunchHostFunc(sample.stream, append, text));
    CUgraph graph = end_capture(sample.stream);
    assert_string_equal(text, "x");
    assert_success(cuGraphLaunch(instantiate(graph), sample.stream));
    assert_string_equal(text, "xx");
}

TEST_OF_GRAPHS(every_kind_of_node_accepts_new_parameters)
{
    uint32_t from = 3;
    char text[8] = "", other[8] = "";
    CUgraph graph = new_graph();
    CUgraphNode copy_node, set_node, host_node;
    unsigned enabled;
    CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = &from,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = sample.p,
                           .WidthInBytes = 4,
                           .Height = 1,
                           .Depth = 1 },
                  got;
    CUDA_MEMSET_NODE_PARAMS set = { .dst = sample.p + 4,
                                    .value = 9,
                                    .elementSize = 4,
                                    .width = 1,
                                    .height = 1 },
                            got_set;
    CUDA_HOST_NODE_PARAMS host = { append, text }, got_host;
    assert_success(cuGraphAddMemcpyNode(&copy_node, graph, NULL, 0, &copy, context));
    assert_success(cuGraphAddMemsetNode(&set_node, graph, NULL, 0, &set, context));
    assert_success(cuGraphAddHostNode(&host_node, graph, NULL, 0, &host));
    copy.dstDevice = sample.p + 8;
    set.value = 10;
    host.userData = other;
    assert_success(cuGraphMemcpyNodeSetParams(copy_node, &copy));
    assert_success(cuGraphMemsetNodeSetParams(set_node, &set));
    assert_success(cuGraphHostNodeSetParams(host_node, &host));
    assert_error(INVALID_VALUE, cuGraphHostNodeSetParams(set_node, &host));
    assert_success(cuGraphMemcpyNodeGetParams(copy_node, &got));
    assert_success(cuGraphMemsetNodeGetParams(set_node, &got_set));
    assert_success(cuGraphHostNodeGetParams(host_node, &got_host));
    assert_true(got.dstDevice == sample.p + 8 && got_set.value == 10 && got_host.userData == other);
    CUgraphExec exec = instantiate(graph);
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_true(number(sample.p, 2) == 3 && number(sample.p, 1) == 10 && number(sample.p, 0) == 0);
    assert_string_equal(other, "x");

    copy.dstDevice = sample.p + 12;
    set.dst = sample.p + 16;
    host.userData = text;
    assert_success(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, context));
    assert_success(cuGraphExecMemsetNodeSetParams(exec, set_node, &set, context));
    assert_success(cuGraphExecHostNodeSetParams(exec, host_node, &host));
    assert_error(INVALID_VALUE, cuGraphExecHostNodeSetParams(exec, set_node, &host));
    assert_success(cuGraphNodeSetEnabled(exec, copy_node, 0));
    assert_success(cuGraphNodeGetEnabled(exec, copy_node, &enabled));
    assert_int_equal(enabled, 0);
    assert_error(INVALID_VALUE, cuGraphNodeSetEnabled(exec, host_node, 0));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_true(number(sample.p, 3) == 0 && number(sample.p, 4) == 10);
    assert_string_equal(text, "x");
}

TEST_OF_GRAPHS(a_node_may_be_a_graph)
{
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = sample.p, .value = 1000, .elementSize = 4, .width = NUMBERS, .height = 1
    };
    CUgraph inner = new_graph(), outer = new_graph(), copy, of_node;
    CUgraphNode node, first, last;
    CUgraphNodeType type;
    assert_success(cuGraphAddKernelNode_v2(&node, inner, NULL, 0, &sample.kernel));
    assert_success(cuGraphAddKernelNode_v2(&node, inner, &node, 1, &sample.kernel));
    assert_success(cuGraphAddMemsetNode(&first, outer, NULL, 0, &set, context));
    assert_success(cuGraphAddChildGraphNode(&node, outer, &first, 1, inner));
    set.dst = sample.p + 4;
    set.width = 1;
    assert_success(cuGraphAddMemsetNode(&last, outer, &node, 1, &set, context));
    assert_success(cuGraphNodeGetType(node, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_GRAPH);
    assert_error(INVALID_VALUE, cuGraphAddChildGraphNode(&node, outer, NULL, 0, outer));
    assert_success(cuGraphDestroy(inner)); /* the node has a copy */
    assert_success(cuGraphLaunch(instantiate(outer), sample.stream));
    assert_true(number(sample.p, 0) == 1010 && number(sample.p, 1) == 1000);

    assert_success(cuGraphChildGraphNodeGetGraph(node, &of_node));
    assert_int_equal(node_count(of_node), 2);
    assert_error(INVALID_VALUE, cuGraphDestroy(of_node));
    assert_success(cuGraphAddKernelNode_v2(&first, of_node, NULL, 0, &sample.kernel));
    assert_success(cuGraphClone(&copy, outer));
    assert_success(cuGraphDestroy(outer));
    assert_error(INVALID_VALUE, cuGraphGetNodes(of_node, NULL, NULL));
    assert_success(cuGraphLaunch(instantiate(copy), sample.stream));
    assert_int_equal(number(sample.p, 0), 1015);
}

TEST_OF_GRAPHS(a_launch_of_a_graph_is_captured)
{
    assert_success(cuStreamBeginCapture(sample.stream));
    assert_success(add(sample.add, sample.stream, sample.p, 1));
    assert_success(add(sample.add, sample.stream, sample.p, 10));
    CUgraph graph = end_capture(sample.stream);
    CUgraphExec exec = instantiate(graph);
    assert_success(cuStreamBeginCapture(sample.stream));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_success(cuMemsetD32Async(sample.p + 4, 50, 1, sample.stream));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_success(cuGraphDestroy(graph));
    graph = end_capture(sample.stream);
    assert_success(cuGraphExecDestroy(exec));
    assert_int_equal(node_count(graph), 3);
    assert_int_equal(number(sample.p, 0), 0);
    assert_success(cuGraphLaunch(instantiate(graph), sample.stream));
    assert_true(number(sample.p, 0) == 22 && number(sample.p, 1) == 61);
    assert_success(cuGraphDestroy(graph));
}

TEST_OF_GRAPHS(a_graph_outlives_its_functions)
{
    static const char wide[] = PTX_HEAD ".visible .entry wide(.param .u64 a, .param .u64 b, "
                                        ".param .u64 c, .param .u64 d)\n{\n    ret;\n}\n";
    CUgraph graph = new_graph(), copy;
    CUgraphNode node;
    CUgraphExec other;
    CUmodule module;
    assert_success(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &sample.kernel));
    CUgraphExec exec = instantiate(graph);
    assert_success(cuFuncGetModule(&module, sample.add));
    assert_success(cuModuleUnload(module));
    load(wide, "wide"); /* its handle may reuse the address */
    assert_error(INVALID_HANDLE, cuGraphLaunch(exec, sample.stream));
    assert_error(INVALID_HANDLE, cuGraphInstantiateWithFlags(&other, graph, 0));
    assert_error(INVALID_HANDLE, cuGraphClone(&copy, graph));
    sample.kernel.func = load(ADD, "add");
    assert_success(cuGraphKernelNodeSetParams_v2(node, &sample.kernel));
    assert_success(cuGraphExecKernelNodeSetParams_v2(exec, node, &sample.kernel));
    assert_success(cuGraphLaunch(exec, sample.stream));
    assert_success(cuGraphLaunch(instantiate(graph), sample.stream));
    assert_int_equal(number(sample.p, 0), 10);
}

TEST_OF_GRAPHS(a_capture_exposes_its_graph_and_accepts_nodes)
{
    CUstreamCaptureStatus status;
    cuuint64_t id, other_id;
    CUgraph graph;
    const CUgraphNode *tail;
    const CUgraphEdgeData *edges;
    CUgraphNode node;
    size_t count;
    assert_success(cuStreamGetCaptureInfo(sample.stream, &status, &id));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_success(cuStreamBeginCapture(sample.stream));
    assert_success(add(sample.add, sample.stream, sample.p, 1));
    assert_success(
        cuStreamGetCaptureInfo_v3(sample.stream, &status, &id, &graph, &tail, &edges, &count));
    assert_true(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count == 1 && node_count(graph) == 1);
    assert_error(INVALID_VALUE, cuGraphDestroy(graph));
    assert_error(INVALID_VALUE, cuGraphDestroyNode(tail[0]));
    assert_success(cuGraphAddKernelNode_v2(&node, graph, tail, count, &sample.kernel));
    assert_success(cuStreamUpdateCaptureDependencies(sample.stream, &node, 1,
                                                     CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    assert_success(cuMemsetD32Async(sample.p + 4, 50, 1, sample.stream));
    assert_success(
        cuStreamGetCaptureInfo_v2(sample.stream, &status, &other_id, NULL, &tail, &count));
    assert_int_equal(id, other_id);
    assert_success(cuGraphNodeGetDependencies(tail[0], &node, &count));
    assert_true(count == 1 && node != tail[0]);
    assert_ptr_equal(end_capture(sample.stream), graph);
    assert_error(ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(sample.stream, &node, 1, 0));
    assert_success(cuGraphLaunch(instantiate(graph), sample.stream));
    assert_int_equal(number(sample.p, 0), 6);
    assert_success(cuStreamBeginCapture(sample.stream));
    assert_success(cuStreamGetCaptureInfo(sample.stream, &status, &other_id));
    assert_true(id != other_id);
    assert_success(cuGraphDestroy(end_capture(sample.stream)));
}
