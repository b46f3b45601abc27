/* Messages of the emulated driver on standard error, each from a child process. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

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

/* Reads out of bounds in a kernel that is written in one line. */
static void reach_too_far_in_a_line(void)
{
    static char text[4096];
    size_t length = 0;
    for (const char *at = ADD; *at; at++) {
        bool comment = at[0] == '/' && at[1] == '/';
        at += comment ? strcspn(at, "\n") : 0;
        text[length++] = *at == '\n' ? ' ' : *at;
    }
    assert_in_range(length, 200, sizeof text - 1);
    add(load(text, "add"), NULL, zeros() + 4, 1);
}

TEST(a_long_line_is_shown_in_part)
{
    const char *text = report_of(reach_too_far_in_a_line);
    assert_says(text, "ptxgen libcuda: add: line 1, block (0, 0, 0), thread (31, 0, 0): out of");
    assert_says(text, " ...\n");
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 1, 250);
}

static void launch_twice_as_wide(void)
{
    CUdeviceptr p = zeros();
    uint32_t value = 1;
    void *params[] = { &p, &value };
    launch(load(ADD, "add"), 1, 64, params);
}

TEST(a_refused_launch_is_explained)
{
    assert_string_equal(
        report_of(launch_twice_as_wide),
        "ptxgen libcuda: add: block size 64 x 1 x 1; the kernel requires 32 x 1 x 1\n");
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
    assert_says(text, ", which is offset 0 of the 128 bytes at 0x");
}

static void load_nonsense(void)
{
    CUmodule module;
    cuModuleLoadData(&module, "nonsense");
}

TEST(wrong_ptx_is_reported_if_the_program_has_no_log)
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

TEST(a_program_without_mistakes_gets_no_message)
{
    assert_string_equal(report_of(free_all), "");
}

/* race(p) stores each thread's number; then each of two warps reads what the other stored. */
static const char RACE[] =
    PTX_HEAD ".visible .entry race(.param .u64 p)\n"
             "{\n"
             "    .reg .b32 %r<4>; .reg .b64 %rd<3>; .shared .align 4 .b8 tile[256];\n"
             "    ld.param.u64 %rd1, [p];\n"
             "    mov.u32 %r1, %tid.x;\n"
             "    mov.u32 %r2, tile;\n"
             "    mad.lo.u32 %r2, %r1, 4, %r2;\n"
             "    st.shared.u32 [%r2], %r1;\n"
             "    xor.b32 %r2, %r2, 128;\n"
             "    ld.shared.u32 %r3, [%r2];\n"
             "    st.global.u32 [%rd1], 7;\n"
             "    ret;\n"
             "}\n";

/* Prints the results of two launches to standard error. */
static void race_with(const char *checks)
{
    CUdeviceptr p;
    CUcontext c;
    setenv("PTXGEN_CUDA_CHECKS", checks, 1);
    assert_success(cuInit(0));
    assert_success(cuCtxCreate_v4(&c, NULL, 0, 0));
    p = zeros();
    CUfunction f = load(RACE, "race");
    void *params[] = { &p };
    for (int i = 0; i < 2; i++) {
        launch(f, 1, 64, params);
        fprintf(stderr, "ends with %d\n", (int)cuCtxSynchronize());
    }
}

static void race_as_it_is(void)
{
    race_with("");
}

static void race_and_fault(void)
{
    race_with("uninit=off,race=fault");
}

static void race_unchecked(void)
{
    race_with("race=off,uninit=off");
}

static void race_with_nonsense(void)
{
    race_with("race=maybe,all=off");
}

TEST(a_check_warns_once_or_faults_or_is_off)
{
    const char *text = fresh_report_of(race_as_it_is);
    assert_says(text, "ptxgen libcuda: warning: race: line 13, block (0, 0, 0), thread (0, 0, 0): "
                      "uninitialised: 4-byte shared load");
    assert_says(text, "ptxgen libcuda: warning: race: line 13, block (0, 0, 0), thread (32, 0, 0): "
                      "race: 4-byte shared load");
    assert_int_equal(occurrences(text, "warning"), 3);
    assert_int_equal(occurrences(text, "ptxgen libcuda:      13 | ld.shared.u32 %r3, [%r2];\n"), 2);
    assert_int_equal(occurrences(text, "ptxgen libcuda:      11 | st.shared.u32 [%r2], %r1;\n"), 1);
    assert_int_equal(occurrences(text, "ends with 0\n"), 2);
    text = fresh_report_of(race_and_fault);
    assert_says(text, "ptxgen libcuda: race: line 11, block (0, 0, 0), thread (32, 0, 0): race: ");
    assert_int_equal(occurrences(text, "warning"), 0);
    assert_int_equal(occurrences(text, "ends with 719\n"), 2);
    assert_string_equal(fresh_report_of(race_unchecked), "ends with 0\nends with 0\n");
    assert_string_equal(
        fresh_report_of(race_with_nonsense),
        "ptxgen libcuda: PTXGEN_CUDA_CHECKS: 'race=maybe' is not CHECK=fault, CHECK=warn or "
        "CHECK=off; CHECK may be all, race, uninit, undefined, lanes, barrier\n"
        "ends with 0\nends with 0\n");
}
