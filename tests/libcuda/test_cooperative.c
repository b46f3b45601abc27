/* Cooperative launches, whose blocks wait for each other. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

enum { THREADS = 48 };

/* Returns the numbers that sum_twice stores with count threads. */
static uint32_t expected_sum(uint32_t count)
{
    uint32_t first = count * (count + 1) / 2;
    return count * (first + 1);
}

static CUresult launch_all(CUfunction f, unsigned blocks, void **params)
{
    return cuLaunchCooperativeKernel(f, blocks, 1, 1, THREADS, 1, 1, 0, NULL, params);
}

TEST_IN_CONTEXT(blocks_synchronize_at_a_grid_barrier)
{
    CUfunction f = load_file("grid.ptx", "sum_twice");
    for (unsigned blocks = 1; blocks <= 13; blocks += 4) {
        CUdeviceptr sums = filled(blocks * THREADS, 0), values = filled(blocks * THREADS, 0);
        assert_success(launch_all(f, blocks, (void *[]){ &sums, &values }));
        for (unsigned i = 0; i < blocks * THREADS; i++)
            assert_int_equal(number(sums, i), expected_sum(blocks * THREADS));
    }
}

TEST_IN_CONTEXT(a_block_may_wait_for_any_other)
{
    enum { BLOCKS = 9 };
    CUfunction f = load_file("grid.ptx", "backwards");
    CUdeviceptr order = filled(BLOCKS, 0), flags = filled(BLOCKS + 1, 0), done = filled(1, 0);
    assert_success(launch_all(f, BLOCKS, (void *[]){ &order, &flags, &done }));
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_int_equal(number(order, i), BLOCKS - 1 - i);
}

TEST_IN_CONTEXT(the_attribute_makes_a_launch_cooperative)
{
    enum { BLOCKS = 4 };
    CUdeviceptr sums = filled(BLOCKS * THREADS, 0), values = filled(BLOCKS * THREADS, 0);
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
    int can = 0;
    assert_success(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    assert_int_equal(can, 1);
    assert_success(launch_with(&attribute, load_file("grid.ptx", "sum_twice"), BLOCKS, THREADS,
                               NULL, (void *[]){ &sums, &values }));
    assert_int_equal(number(sums, 0), expected_sum(BLOCKS * THREADS));
}

TEST_IN_CONTEXT(a_graph_keeps_a_launch_cooperative)
{
    enum { BLOCKS = 4 };
    CUdeviceptr sums = filled(BLOCKS * THREADS, 0), values = filled(BLOCKS * THREADS, 0);
    CUfunction f = load_file("grid.ptx", "sum_twice");
    CUstream stream = new_stream();
    begin_capture(stream);
    assert_success(cuLaunchCooperativeKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream,
                                             (void *[]){ &sums, &values }));
    CUgraphExec exec = instantiate(end_capture(stream));
    for (int i = 0; i < 2; i++) {
        assert_success(cuMemsetD32_v2(sums, 0, BLOCKS * THREADS));
        assert_success(cuGraphLaunch(exec, stream));
        assert_int_equal(number(sums, 5), expected_sum(BLOCKS * THREADS));
    }
}

TEST_IN_CONTEXT(an_ordinary_launch_has_no_grid_barrier)
{
    CUdeviceptr sums = filled(THREADS, 0), values = filled(THREADS, 0);
    assert_error(LAUNCH_FAILED, launch(load_file("grid.ptx", "sum_twice"), 1, THREADS,
                                       (void *[]){ &sums, &values }));
}

TEST_IN_CONTEXT(all_blocks_must_be_resident)
{
    CUfunction f = load_file("grid.ptx", "sum_twice");
    CUdeviceptr sums = filled(64 * THREADS, 0), values = filled(64 * THREADS, 0);
    int a_multiprocessor, multiprocessors;
    assert_success(
        cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    assert_success(cuOccupancyMaxActiveBlocksPerMultiprocessor(&a_multiprocessor, f, THREADS, 0));
    unsigned most = (unsigned)(multiprocessors * a_multiprocessor);
    assert_true(most <= 64);
    assert_success(launch_all(f, most, (void *[]){ &sums, &values }));
    assert_error(COOPERATIVE_LAUNCH_TOO_LARGE,
                 launch_all(f, most + 1, (void *[]){ &sums, &values }));
}

static void sum_at_once(void)
{
    CUdeviceptr sums = filled(3 * THREADS, 0), values = filled(3 * THREADS, 0);
    launch_all(load_file("grid.ptx", "sum_at_once"), 3, (void *[]){ &sums, &values });
}

TEST(blocks_that_do_not_wait_race)
{
    assert_says(report_of(sum_at_once), "race");
}
