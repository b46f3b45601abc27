/* Cooperative launches: blocks that wait for one another. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_report.h"

enum { THREADS = 48 };

static CUfunction grid_kernel(const char *name)
{
    char path[1000];
    CUmodule m;
    CUfunction f;
    assert_non_null(getenv("PTXGEN_NVCC_DATA"));
    snprintf(path, sizeof path, "%s/grid.ptx", getenv("PTXGEN_NVCC_DATA"));
    assert_success(cuModuleLoad(&m, path));
    assert_success(cuModuleGetFunction(&f, m, name));
    return f;
}

static CUdeviceptr numbers(size_t count, uint32_t value)
{
    CUdeviceptr p;
    assert_success(cuMemAlloc_v2(&p, count * sizeof value));
    assert_success(cuMemsetD32_v2(p, value, count));
    return p;
}

/* What sum_twice leaves for a grid of so many threads. */
static uint32_t expected_sum(uint32_t count)
{
    uint32_t first = count * (count + 1) / 2;
    return count * (first + 1);
}

static CUresult launch(CUfunction f, unsigned blocks, void **params)
{
    return cuLaunchCooperativeKernel(f, blocks, 1, 1, THREADS, 1, 1, 0, NULL, params);
}

TEST_WITH(blocks_meet_at_a_barrier_of_the_grid, make_context, drop_context)
{
    CUfunction f = grid_kernel("sum_twice");
    for (unsigned blocks = 1; blocks <= 13; blocks += 4) {
        CUdeviceptr sums = numbers(blocks * THREADS, 0), values = numbers(blocks * THREADS, 0);
        assert_success(launch(f, blocks, (void *[]){ &sums, &values }));
        for (unsigned i = 0; i < blocks * THREADS; i++)
            assert_int_equal(number(sums, i), expected_sum(blocks * THREADS));
    }
}

TEST_WITH(a_block_may_wait_for_any_other, make_context, drop_context)
{
    enum { BLOCKS = 9 };
    CUfunction f = grid_kernel("backwards");
    CUdeviceptr order = numbers(BLOCKS, 0), flags = numbers(BLOCKS + 1, 0), done = numbers(1, 0);
    assert_success(launch(f, BLOCKS, (void *[]){ &order, &flags, &done }));
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_int_equal(number(order, i), BLOCKS - 1 - i);
}

TEST_WITH(the_attribute_makes_a_launch_cooperative, make_context, drop_context)
{
    enum { BLOCKS = 4 };
    CUdeviceptr sums = numbers(BLOCKS * THREADS, 0), values = numbers(BLOCKS * THREADS, 0);
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
    CUlaunchConfig config = { .gridDimX = BLOCKS,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = THREADS,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .attrs = &attribute,
                              .numAttrs = 1 };
    int can = 0;
    assert_success(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    assert_int_equal(can, 1);
    assert_success(
        cuLaunchKernelEx(&config, grid_kernel("sum_twice"), (void *[]){ &sums, &values }, NULL));
    assert_int_equal(number(sums, 0), expected_sum(BLOCKS * THREADS));
}

TEST_WITH(a_graph_keeps_a_launch_cooperative, make_context, drop_context)
{
    enum { BLOCKS = 4 };
    CUdeviceptr sums = numbers(BLOCKS * THREADS, 0), values = numbers(BLOCKS * THREADS, 0);
    CUfunction f = grid_kernel("sum_twice");
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    assert_success(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_success(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_success(cuLaunchCooperativeKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream,
                                             (void *[]){ &sums, &values }));
    assert_success(cuStreamEndCapture(stream, &graph));
    assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 2; i++) {
        assert_success(cuMemsetD32_v2(sums, 0, BLOCKS * THREADS));
        assert_success(cuGraphLaunch(exec, stream));
        assert_int_equal(number(sums, 5), expected_sum(BLOCKS * THREADS));
    }
}

TEST_WITH(a_launch_of_another_kind_has_no_grid_to_meet_in, make_context, drop_context)
{
    CUdeviceptr sums = numbers(THREADS, 0), values = numbers(THREADS, 0);
    assert_int_equal(cuLaunchKernel(grid_kernel("sum_twice"), 1, 1, 1, THREADS, 1, 1, 0, NULL,
                                    (void *[]){ &sums, &values }, NULL),
                     CUDA_ERROR_LAUNCH_FAILED);
}

TEST_WITH(all_blocks_must_fit_at_a_time, make_context, drop_context)
{
    CUfunction f = grid_kernel("sum_twice");
    CUdeviceptr sums = numbers(64 * THREADS, 0), values = numbers(64 * THREADS, 0);
    int a_multiprocessor, multiprocessors;
    assert_success(
        cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    assert_success(cuOccupancyMaxActiveBlocksPerMultiprocessor(&a_multiprocessor, f, THREADS, 0));
    unsigned most = (unsigned)(multiprocessors * a_multiprocessor);
    assert_true(most <= 64);
    assert_success(launch(f, most, (void *[]){ &sums, &values }));
    assert_int_equal(launch(f, most + 1, (void *[]){ &sums, &values }),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

static void sum_at_once(void)
{
    CUdeviceptr sums = numbers(3 * THREADS, 0), values = numbers(3 * THREADS, 0);
    launch(grid_kernel("sum_at_once"), 3, (void *[]){ &sums, &values });
}

TEST(blocks_that_do_not_wait_race)
{
    assert_says(report_of(sum_at_once), "race");
}
