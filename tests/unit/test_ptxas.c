#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os.h"
#include "check/ptxas.h"

static const char good[] = ".version 6.3\n"
                           ".target sm_75\n"
                           ".address_size 64\n"
                           ".visible .entry f(.param .u64 y)\n"
                           "{\n"
                           "    .reg .b64 %rd1;\n"
                           "    .reg .b32 %r1;\n"
                           "    .shared .align 4 .b8 red[64];\n"
                           "    ld.param.u64 %rd1, [y];\n"
                           "    mov.u32 %r1, %tid.x;\n"
                           "    st.shared.u32 [red], %r1;\n"
                           "    st.global.u32 [%rd1], %r1;\n"
                           "    ret;\n"
                           "}\n";

static int set_up(void **state)
{
    *state = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static void the_version_is_read_from_the_release_line(void **state)
{
    assert_string_equal(ptxas_parse_version(*state,
                                            "ptxas: NVIDIA (R) Ptx optimizing assembler\n"
                                            "Cuda compilation tools, release 13.0, V13.0.88\n"
                                            "Build cuda_13.0.r13.0/compiler.36424714_0\n"),
                        "13.0.88");
    assert_null(ptxas_parse_version(*state, "GNU assembler\n"));
}

static void the_oldest_target_is_the_first_that_help_lists(void **state)
{
    (void)state;
    assert_ptr_equal(ptxas_parse_oldest("PTX for .target sm_75 …\n'sm_80','sm_86','sm_90'"),
                     target_find("sm_80"));
    assert_ptr_equal(ptxas_parse_oldest("'compute_75','sm_50','sm_75','sm_80'"),
                     target_find("sm_75"));
    assert_ptr_equal(ptxas_parse_oldest("'sm_100a','sm_103'"), target_find("sm_103"));
    assert_null(ptxas_parse_oldest("sm_"));
}

static void figures_are_read_from_reports_of_new_and_old_versions(void **state)
{
    (void)state;
    ptxas_result r = { 0 };
    ptxas_parse_report("ptxas info    : 0 bytes gmem\n"
                       "ptxas info    : Compiling entry function 'foo' for 'sm_90'\n"
                       "ptxas info    : Function properties for foo\n"
                       "    16 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads\n"
                       "ptxas info    : Used 48 registers, used 1 barriers, 1088 bytes smem\n"
                       "ptxas info    : Compile time = 24.667 ms\n",
                       &r);
    assert_int_equal(r.registers, 48);
    assert_int_equal(r.stack_bytes, 16);
    assert_int_equal(r.spill_bytes, 28);
    assert_int_equal(r.shared_bytes, 1088);
    ptxas_parse_report("    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                       "ptxas info    : Used 8 registers, 368 bytes cmem[0]\n",
                       &r);
    assert_int_equal(r.registers, 8);
    assert_int_equal(r.spill_bytes, 0);
    assert_int_equal(r.shared_bytes, 0);
}

static void what_is_given_and_no_program_is_an_error(void **state)
{
    ptxas found;
    const char *error;
    assert_false(ptxas_find(*state, "/nowhere/ptxas", &found, &error));
    assert_string_equal(error, "/nowhere/ptxas is not a program that can be run");
}

static void a_program_that_is_not_ptxas_is_an_error(void **state)
{
    ptxas found;
    const char *error;
    assert_false(ptxas_find(*state, "/bin/false", &found, &error));
    assert_non_null(strstr(error, "/bin/false --version ended with status 1"));
    assert_false(ptxas_find(*state, "/bin/echo", &found, &error));
    assert_non_null(strstr(error, "does not answer as ptxas does"));
}

static const char *kept_variable(arena *a, const char *name)
{
    const char *value = getenv(name);
    return value ? arena_strdup(a, value) : NULL;
}

static void restore_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void a_toolkit_named_by_cuda_home_is_found(void **state)
{
    static const char script[] = "#!/bin/sh\necho \"release 1.0, V1.0.7 'sm_90'\"\n";
    arena *a = *state;
    const char *path = kept_variable(a, "PATH"), *home = kept_variable(a, "CUDA_HOME");
    const char *folder, *error;
    assert_true(os_temporary_directory(a, &folder, &error));
    const char *bin = arena_format(a, "%s/bin", folder), *file = arena_format(a, "%s/ptxas", bin);
    assert_true(os_make_directories(a, bin, &error));
    assert_true(os_write_file(a, file, script, sizeof script - 1, &error));
    assert_int_equal(chmod(file, 0700), 0);

    ptxas found = { 0 };
    setenv("PATH", "/nowhere", 1);
    setenv("CUDA_HOME", folder, 1);
    bool ok = ptxas_find(a, NULL, &found, &error);
    restore_variable("PATH", path);
    restore_variable("CUDA_HOME", home);
    os_remove_directory(a, bin);
    os_remove_directory(a, folder);

    assert_true(ok);
    assert_string_equal(found.path, file);
    assert_string_equal(found.version, "1.0.7");
    assert_int_equal(found.oldest->sm, 90);
}

static ptxas installed(void **state)
{
    ptxas found;
    const char *error;
    if (!ptxas_find(*state, NULL, &found, &error))
        skip();
    return found;
}

static void a_right_kernel_is_accepted_and_measured(void **state)
{
    ptxas assembler = installed(state);
    ptxas_result r;
    const char *error;
    assert_true(ptxas_run(*state, &assembler, good, sizeof good - 1, assembler.oldest, &r, &error));
    assert_true(r.accepted);
    assert_in_range(r.registers, 1, 64);
    assert_int_equal(r.spill_bytes, 0);
    assert_in_range(r.shared_bytes, 64, 2048);
}

static void a_wrong_kernel_is_rejected_with_what_ptxas_says(void **state)
{
    ptxas assembler = installed(state);
    ptxas_result r;
    const char *error;
    char *bad = arena_strdup(*state, good);
    memcpy(strstr(bad, "mov.u32"), "mov.u39", strlen("mov.u39"));
    assert_true(ptxas_run(*state, &assembler, bad, sizeof good - 1, assembler.oldest, &r, &error));
    assert_false(r.accepted);
    assert_non_null(strstr(r.message, "line 10"));
}

static void a_target_older_than_ptxas_knows_is_tried_as_the_oldest(void **state)
{
    ptxas assembler = installed(state);
    ptxas_result r;
    const char *error;
    const target ancient = { .name = "sm_20", .sm = 20 };
    assert_true(ptxas_run(*state, &assembler, good, sizeof good - 1, &ancient, &r, &error));
    assert_true(r.accepted);
}

static void a_target_newer_than_ptxas_knows_is_an_error(void **state)
{
    ptxas assembler = installed(state);
    ptxas_result r;
    const char *error = NULL;
    const target future = { .name = "sm_999", .sm = 999 };
    assert_false(ptxas_run(*state, &assembler, good, sizeof good - 1, &future, &r, &error));
    assert_non_null(strstr(error, "does not know sm_999"));
}

typedef struct parallel_runs {
    const ptxas *assembler;
    bool accepted[8];
} parallel_runs;

static void run_one(void *context, size_t i)
{
    parallel_runs *runs = context;
    arena *a = arena_new();
    ptxas_result r = { 0 };
    const char *error;
    runs->accepted[i] =
        ptxas_run(a, runs->assembler, good, sizeof good - 1, runs->assembler->oldest, &r, &error) &&
        r.accepted;
    arena_free(a);
}

static void several_threads_may_run_it(void **state)
{
    ptxas assembler = installed(state);
    parallel_runs runs = { .assembler = &assembler };
    os_parallel(4, sizeof runs.accepted, run_one, &runs);
    for (size_t i = 0; i < sizeof runs.accepted; i++)
        assert_true(runs.accepted[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_version_is_read_from_the_release_line),
        TEST(the_oldest_target_is_the_first_that_help_lists),
        TEST(figures_are_read_from_reports_of_new_and_old_versions),
        TEST(what_is_given_and_no_program_is_an_error),
        TEST(a_program_that_is_not_ptxas_is_an_error),
        TEST(a_toolkit_named_by_cuda_home_is_found),
        TEST(a_right_kernel_is_accepted_and_measured),
        TEST(a_wrong_kernel_is_rejected_with_what_ptxas_says),
        TEST(a_target_older_than_ptxas_knows_is_tried_as_the_oldest),
        TEST(a_target_newer_than_ptxas_knows_is_an_error),
        TEST(several_threads_may_run_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
