/* What the emulated driver says on standard error, each time in a process of its own. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_report.h"

static void reach_too_far(void)
{
    add(load(ADD, "add"), NULL, zeros() + 4, 1);
}

TEST(a_fault_is_reported_with_its_line_and_thread)
{
    const char *text = report_of(reach_too_far);
    assert_says(text, "ptxgen libcuda: add: line 12, block (0, 0, 0), thread (31, 0, 0): out of");
    assert_says(text, " | ld.global.u32 %r3, [%rd2];\n");
}

static void launch_twice_as_wide(void)
{
    CUdeviceptr p = zeros();
    uint32_t value = 1;
    void *params[] = { &p, &value };
    cuLaunchKernel(load(ADD, "add"), 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
}

TEST(a_refused_launch_is_explained)
{
    assert_string_equal(
        report_of(launch_twice_as_wide),
        "ptxgen libcuda: add: block 64 x 1 x 1, and the kernel requires 32 x 1 x 1\n");
}

static void copy_too_much(void)
{
    char bytes[200];
    cuMemcpyDtoH_v2(bytes, zeros(), sizeof bytes);
}

TEST(a_refused_copy_names_the_allocation)
{
    const char *text = report_of(copy_too_much);
    assert_says(text, "copy from: 200 bytes at 0x");
    assert_says(text, ", which is 0 bytes into 128 at 0x");
}

static void load_nonsense(void)
{
    CUmodule module;
    cuModuleLoadData(&module, "nonsense");
}

TEST(wrong_ptx_is_reported_where_the_program_has_no_log)
{
    assert_says(report_of(load_nonsense), "ptxgen libcuda: line 1: ");
}

static void forget_to_free(void)
{
    CUdeviceptr p = zeros();
    setenv("PTXGEN_CUDA_LEAKS", "1", 1);
    zeros();
    cuMemFree_v2(p);
}

TEST(leaks_are_reported_on_demand)
{
    const char *text = report_of(forget_to_free);
    assert_says(text, "leak: 128 bytes at 0x");
    assert_says(text, "not freed: 128 bytes of device memory in 1 allocations\n");
}

static void free_all(void)
{
    cuMemFree_v2(zeros());
}

TEST(a_program_without_mistakes_hears_nothing)
{
    assert_string_equal(report_of(free_all), "");
}
