/* What the emulated driver says on standard error, each time in a process of its own. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a process that does this writes to standard error until it has ended. */
static const char *report_of(void (*work)(void))
{
    static char text[4096];
    int ends[2];
    size_t length = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        make_context(NULL);
        work();
        exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, NULL, 0);
    return text;
}

static void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

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
