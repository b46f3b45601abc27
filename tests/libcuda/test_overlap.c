/* Programmatic dependent launches on the emulated driver. A program chains a kernel compiled by
 * nvcc in streams and graphs, without and with a mistake. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

enum { BLOCKS = 4, COUNT = BLOCKS * NUMBERS, STEPS = 5, ORDERS = 12 };

/* A chain of STEPS launches, which alternate between two arrays. */
typedef struct chain {
    CUfunction kernel;
    CUstream stream;
    CUdeviceptr arrays[2], gains;
} chain;

static chain make_chain(const char *kernel)
{
    static const float one = 1;
    uint32_t bits;
    memcpy(&bits, &one, sizeof bits);
    chain c = { load_file("sm_90.ptx", kernel),
                new_stream(),
                { filled(COUNT, 0), filled(COUNT, 0) },
                filled(COUNT, bits) };
    assert_success(cuMemcpyHtoD_v2(c.arrays[0] + COUNT / 2 * sizeof one, &one, sizeof one));
    return c;
}

static CUresult launch_step(const chain *c, unsigned step, CUlaunchAttribute *attribute)
{
    int count = COUNT;
    void *params[] = { (void *)(uintptr_t)&c->arrays[(step + 1) % 2],
                       (void *)(uintptr_t)&c->arrays[step % 2], (void *)(uintptr_t)&c->gains,
                       &count };
    return launch_with(attribute, c->kernel, BLOCKS, NUMBERS, c->stream, params);
}

static CUlaunchAttribute serialization(int allowed)
{
    return (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                .value.programmaticStreamSerializationAllowed = allowed };
}

static void launch_steps(const chain *c)
{
    CUlaunchAttribute attribute = serialization(1);
    for (unsigned step = 0; step < STEPS; step++)
        assert_success(launch_step(c, step, &attribute));
}

/* Checks that a single 1 has become a row of the triangle of trinomial coefficients. */
static void assert_is_spread(const chain *c)
{
    static const float expected[] = { 0, 1, 5, 15, 30, 45, 51, 45, 30, 15, 5, 1, 0 };
    float got[COUNT];
    assert_success(cuMemcpyDtoH_v2(got, c->arrays[STEPS % 2], sizeof got));
    for (int i = 0; i < (int)(sizeof expected / sizeof *expected); i++)
        assert_true(got[COUNT / 2 - STEPS - 1 + i] == expected[i]);
}

/* Sets the environment variable that selects the order of blocks. */
static void set_order(unsigned order)
{
    char text[16];
    snprintf(text, sizeof text, "%u", order);
    setenv("PTXGEN_CUDA_ORDER", text, 1);
}

TEST_IN_CONTEXT(overlapping_launches_have_the_same_results_in_every_order)
{
    for (unsigned order = 0; order < ORDERS; order++) {
        set_order(order);
        chain c = make_chain("diffuse");
        launch_steps(&c);
        assert_is_spread(&c);
    }
}

static CUgraph capture_steps(const chain *c)
{
    begin_capture(c->stream);
    launch_steps(c);
    return end_capture(c->stream);
}

TEST_IN_CONTEXT(a_graph_keeps_programmatic_launches_on_its_edges)
{
    for (unsigned order = 0; order < ORDERS; order++) {
        chain c = make_chain("diffuse");
        CUgraph graph = capture_steps(&c);
        CUgraphNode nodes[STEPS], ahead;
        CUgraphEdgeData edge;
        size_t count = STEPS, one = 1;
        set_order(order);
        assert_success(cuGraphGetNodes(graph, nodes, &count));
        assert_int_equal(count, STEPS);
        for (size_t i = 1; i < count; i++) {
            assert_success(cuGraphNodeGetDependencies_v2(nodes[i], &ahead, &edge, &one));
            assert_ptr_equal(ahead, nodes[i - 1]);
            assert_int_equal(edge.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
            assert_int_equal(edge.from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
        }
        assert_success(cuGraphLaunch(instantiate(graph), c.stream));
        assert_is_spread(&c);
    }
}

static void print_failure(CUresult r)
{
    if (r == CUDA_ERROR_LAUNCH_FAILED)
        fputs("the context is unusable\n", stderr);
}

/* Captures two branches whose launches alternate. */
static void capture_branches(void)
{
    CUlaunchAttribute attribute = serialization(1);
    chain c = make_chain("diffuse_too_early"), other = make_chain("diffuse");
    CUevent fork = new_event(CU_EVENT_DISABLE_TIMING), join = new_event(CU_EVENT_DISABLE_TIMING);
    begin_capture(c.stream);
    assert_success(cuEventRecord(fork, c.stream));
    assert_success(cuStreamWaitEvent(other.stream, fork, 0));
    for (unsigned step = 0; step < STEPS; step++) {
        assert_success(launch_step(&c, step, &attribute));
        assert_success(launch_step(&other, step, NULL));
    }
    assert_success(cuEventRecord(join, other.stream));
    assert_success(cuStreamWaitEvent(c.stream, join, 0));
    CUgraph graph = end_capture(c.stream);
    print_failure(cuGraphLaunch(instantiate(graph), c.stream));
}

static void launch_too_early(void)
{
    chain c = make_chain("diffuse_too_early");
    launch_steps(&c);
    print_failure(cuStreamSynchronize(c.stream));
    print_failure(cuCtxSynchronize());
}

static void capture_too_early(void)
{
    chain c = make_chain("diffuse_too_early");
    CUgraphExec exec = instantiate(capture_steps(&c));
    print_failure(cuGraphLaunch(exec, c.stream));
}

/* Makes queries between two launches, which a device answers while both run. */
static void ask(const chain *c)
{
    CUcontext current;
    CUmodule module;
    CUfunction f;
    CUdevice device;
    CUdeviceptr base;
    CUstreamCaptureStatus status;
    size_t size;
    int value, blocks;
    unsigned flags;
    assert_success(cuCtxGetCurrent(&current));
    assert_success(cuCtxSetCurrent(current));
    assert_success(cuCtxGetDevice(&device));
    assert_success(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    assert_success(cuFuncGetModule(&module, c->kernel));
    assert_success(cuModuleGetFunction(&f, module, "diffuse"));
    assert_success(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    assert_success(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    assert_success(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, NUMBERS, 0));
    assert_success(cuStreamGetFlags(c->stream, &flags));
    assert_success(cuStreamIsCapturing(c->stream, &status));
    assert_success(cuMemGetAddressRange_v2(&base, &size, c->gains));
    new_event(CU_EVENT_DISABLE_TIMING);
}

static void ask_between_launches(void)
{
    CUlaunchAttribute attribute = serialization(1);
    chain c = make_chain("diffuse_too_early");
    for (unsigned step = 0; step < STEPS; step++) {
        assert_success(launch_step(&c, step, &attribute));
        ask(&c);
    }
    print_failure(cuStreamSynchronize(c.stream));
}

/* Launches alternately in two streams. */
static void launch_in_streams(void)
{
    CUlaunchAttribute attribute = serialization(1);
    chain c = make_chain("diffuse_too_early"), other = make_chain("diffuse");
    for (unsigned step = 0; step < STEPS; step++) {
        assert_success(launch_step(&c, step, &attribute));
        assert_success(launch_step(&other, step, &attribute));
    }
    print_failure(cuStreamSynchronize(other.stream));
}

TEST(a_load_before_the_wait_is_reported_with_both_kernels_and_lines)
{
    static void (*const programs[])(void) = { launch_too_early, capture_too_early,
                                              ask_between_launches, launch_in_streams,
                                              capture_branches };
    enum { PROGRAMS = sizeof programs / sizeof *programs };
    for (unsigned i = 0; i < PROGRAMS * ORDERS; i++) {
        set_order(i / PROGRAMS);
        const char *text = report_of(programs[i % PROGRAMS]);
        assert_says(text, "ptxgen libcuda: diffuse_too_early: line ");
        assert_says(text, "race between launches: 'diffuse_too_early' loads byte ");
        assert_says(text, " of an allocation of 512 bytes at line ");
        assert_says(text, "; 'diffuse_too_early', 1 launch before it, stores it at line ");
        assert_says(text, "may not have finished: no griddepcontrol.wait precedes the access\n");
        assert_says(text, " | ld.global.f32 \t%f2, [%rd10];\n");
        assert_says(text, " | st.global.f32 \t[%rd14], %f7;\n");
        assert_says(text, "the context is unusable\n");
    }
}

/* Without the attribute, the launches of a stream must run in order. */
TEST_IN_CONTEXT(launches_without_the_attribute_are_in_order)
{
    CUlaunchAttribute forbidden = serialization(0);
    for (unsigned order = 0; order < 3; order++) {
        set_order(order);
        chain c = make_chain("diffuse_too_early");
        for (unsigned step = 0; step < STEPS; step++)
            assert_success(launch_step(&c, step, step % 2 ? &forbidden : NULL));
        assert_is_spread(&c);
    }
}

/* A copy between two launches must run after the first and before the second. */
TEST_IN_CONTEXT(copies_are_in_order_with_launches)
{
    CUlaunchAttribute attribute = serialization(1);
    chain c = make_chain("diffuse_too_early"), other = make_chain("diffuse_too_early");
    assert_success(launch_step(&c, 0, &attribute));
    assert_success(
        cuMemcpyDtoDAsync_v2(other.arrays[1], c.arrays[1], COUNT * sizeof(float), c.stream));
    assert_success(launch_step(&c, 1, &attribute));
    assert_success(launch_step(&other, 1, &attribute));
    for (unsigned step = 2; step < STEPS; step++) {
        assert_success(launch_step(&other, step, NULL));
        assert_success(launch_step(&c, step, NULL));
    }
    assert_is_spread(&c);
    assert_is_spread(&other);
}

TEST_IN_CONTEXT(a_programmatic_event_is_recorded)
{
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT };
    CUevent *event = &attribute.value.programmaticEvent.event, timed;
    chain c = make_chain("diffuse");
    assert_success(cuEventCreate(event, CU_EVENT_DISABLE_TIMING));
    assert_success(launch_step(&c, 0, &attribute));
    assert_success(cuStreamWaitEvent(NULL, *event, 0));
    assert_success(cuEventQuery(*event));
    assert_success(cuEventCreate(&timed, 0));
    *event = timed;
    assert_error(INVALID_VALUE, launch_step(&c, 1, &attribute));
    assert_success(cuEventDestroy_v2(timed));
    assert_error(INVALID_HANDLE, launch_step(&c, 1, &attribute));
}

/* An edge between two nodes, added by hand. */
TEST_IN_CONTEXT(programmatic_edges_are_between_kernels)
{
    static const CUgraphEdgeData early = { .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                           .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };
    static const CUgraphEdgeData without_port = { .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };
    static const CUgraphEdgeData in_order = { .from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
                                              .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };
    chain c = make_chain("diffuse");
    int count = COUNT;
    void *params[] = { &c.arrays[1], &c.arrays[0], &c.gains, &count };
    CUDA_KERNEL_NODE_PARAMS kernel = node_params(c.kernel, BLOCKS, NUMBERS, params);
    CUgraph graph = new_graph();
    CUgraphNode a, b, empty, ahead[2];
    CUgraphEdgeData edges[2];
    size_t given = 2;
    assert_success(cuGraphAddKernelNode_v2(&a, graph, NULL, 0, &kernel));
    assert_success(cuGraphAddKernelNode_v2(&b, graph, NULL, 0, &kernel));
    assert_success(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    assert_error(INVALID_VALUE, cuGraphAddDependencies_v2(graph, &empty, &b, &early, 1));
    assert_error(INVALID_VALUE, cuGraphAddDependencies_v2(graph, &a, &b, &without_port, 1));
    assert_error(NOT_SUPPORTED, cuGraphAddDependencies_v2(graph, &a, &b, &in_order, 1));
    assert_success(cuGraphAddDependencies_v2(graph, &a, &b, &early, 1));
    assert_success(cuGraphAddDependencies_v2(graph, &empty, &b, NULL, 1));
    assert_success(cuGraphNodeGetDependencies_v2(b, ahead, edges, &given));
    assert_int_equal(given, 2);
    for (size_t i = 0; i < given; i++)
        assert_int_equal(edges[i].type, ahead[i] == a ? CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                                                      : CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
}

/* Blocking streams and the null stream must keep the order of their launches. */
TEST_IN_CONTEXT(launches_in_several_streams_have_the_same_results)
{
    CUlaunchAttribute attribute = serialization(1);
    for (unsigned order = 0; order < ORDERS; order++) {
        set_order(order);
        chain c = make_chain("diffuse"), other = make_chain("diffuse"), of_null = c;
        assert_success(cuStreamDestroy_v2(c.stream));
        assert_success(cuStreamCreate(&c.stream, 0));
        of_null.stream = NULL;
        for (unsigned step = 0; step < STEPS; step++) {
            assert_success(launch_step(step % 2 ? &of_null : &c, step, &attribute));
            assert_success(launch_step(&other, step, &attribute));
        }
        assert_is_spread(&c);
        assert_is_spread(&other);
    }
}

/* A captured stream that waits for an event must wait for whole launches, as it does without
 * capture. */
TEST_IN_CONTEXT(launches_after_events_run_after_them_in_graphs)
{
    CUlaunchAttribute attribute = serialization(1);
    for (unsigned order = 0; order < ORDERS; order++) {
        set_order(order);
        chain c = make_chain("diffuse_too_early"), after = c;
        CUevent there = new_event(CU_EVENT_DISABLE_TIMING);
        CUevent back = new_event(CU_EVENT_DISABLE_TIMING);
        after.stream = new_stream();
        begin_capture(c.stream);
        for (unsigned step = 0; step < STEPS; step++) {
            const chain *from = step % 2 ? &after : &c, *to = step % 2 ? &c : &after;
            assert_success(launch_step(from, step, &attribute));
            assert_success(cuEventRecord(step % 2 ? back : there, from->stream));
            assert_success(cuStreamWaitEvent(to->stream, step % 2 ? back : there, 0));
        }
        assert_success(cuGraphLaunch(instantiate(end_capture(c.stream)), c.stream));
        assert_is_spread(&c);
    }
}
