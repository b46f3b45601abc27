#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test_arena.h"
#include "base/os.h"
#include "base/os_process.h"
#include "check/ptxas.h"
#include "kernel/family.h"
#include "kernel/generate.h"
#include "input/spec.h"

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

ARENA_TEST(the_version_is_read_from_the_release_line)
{
    assert_string_equal(ptxas_parse_version(a, "ptxas: NVIDIA (R) Ptx optimizing assembler\n"
                                               "Cuda compilation tools, release 13.0, V13.0.88\n"
                                               "Build cuda_13.0.r13.0/compiler.36424714_0\n"),
                        "13.0.88");
    assert_null(ptxas_parse_version(a, "GNU assembler\n"));
}

TEST(targets_are_those_that_help_lists)
{
    assert_int_equal(ptxas_parse_targets("PTX for .target sm_75 …\n'sm_80','sm_86','sm_90'"),
                     target_bit(target_find("sm_80")) | target_bit(target_find("sm_86")) |
                         target_bit(target_find("sm_90")));
    assert_int_equal(ptxas_parse_targets("'compute_75','sm_50','sm_75'"),
                     target_bit(target_find("sm_75")));
    assert_int_equal(ptxas_parse_targets("'sm_100a','sm_103'"), target_bit(target_find("sm_103")));
    assert_int_equal(ptxas_parse_targets("sm_"), 0);
}

TEST(figures_are_read_from_reports_of_new_and_old_versions)
{
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

ARENA_TEST(a_given_path_that_is_not_a_program_is_an_error)
{
    ptxas found;
    const char *error;
    assert_false(ptxas_find(a, "/nowhere/ptxas", &found, &error));
    assert_string_equal(error, "/nowhere/ptxas is not an executable program");
}

ARENA_TEST(a_program_that_is_not_ptxas_is_an_error)
{
    ptxas found;
    const char *error;
    assert_false(ptxas_find(a, "/bin/false", &found, &error));
    assert_non_null(strstr(error, "/bin/false --version exited with status 1"));
    assert_false(ptxas_find(a, "/bin/echo", &found, &error));
    assert_non_null(strstr(error, "is not ptxas: its --version or --help is not as expected"));
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

ARENA_TEST(a_toolkit_named_by_cuda_home_is_found)
{
    static const char script[] = "#!/bin/sh\necho \"release 1.0, V1.0.7 'sm_90'\"\n";
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

static ptxas installed(arena *a)
{
    ptxas found;
    const char *error;
    if (!ptxas_find(a, NULL, &found, &error))
        skip();
    return found;
}

ARENA_TEST(a_right_kernel_is_accepted_and_measured)
{
    ptxas assembler = installed(a);
    ptxas_result r;
    const char *error;
    assert_true(ptxas_run(a, &assembler, good, sizeof good - 1, assembler.oldest, &r, &error));
    assert_true(r.accepted);
    assert_in_range(r.registers, 1, 64);
    assert_int_equal(r.spill_bytes, 0);
    assert_in_range(r.shared_bytes, 64, 2048);
}

ARENA_TEST(a_wrong_kernel_is_rejected_with_the_message_of_ptxas)
{
    ptxas assembler = installed(a);
    ptxas_result r;
    const char *error;
    char *bad = arena_strdup(a, good);
    memcpy(strstr(bad, "mov.u32"), "mov.u39", strlen("mov.u39"));
    assert_true(ptxas_run(a, &assembler, bad, sizeof good - 1, assembler.oldest, &r, &error));
    assert_false(r.accepted);
    assert_non_null(strstr(r.message, "line 10"));
}

ARENA_TEST(a_target_older_than_ptxas_knows_is_tried_as_the_oldest)
{
    ptxas assembler = installed(a);
    ptxas_result r;
    const char *error;
    const target ancient = { .name = "sm_20", .sm = 20 };
    assert_true(ptxas_run(a, &assembler, good, sizeof good - 1, &ancient, &r, &error));
    assert_true(r.accepted);
}

ARENA_TEST(a_target_newer_than_ptxas_knows_is_an_error)
{
    ptxas assembler = installed(a);
    ptxas_result r;
    const char *error = NULL;
    const target future = { .name = "sm_999", .sm = 999 };
    assert_false(ptxas_run(a, &assembler, good, sizeof good - 1, &future, &r, &error));
    assert_non_null(strstr(error, "does not support sm_999"));
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

ARENA_TEST(several_threads_may_run_it)
{
    ptxas assembler = installed(a);
    parallel_runs runs = { .assembler = &assembler };
    os_parallel(4, sizeof runs.accepted, run_one, &runs);
    for (size_t i = 0; i < sizeof runs.accepted; i++)
        assert_true(runs.accepted[i]);
}

ARENA_TEST(kernels_with_letters_are_assembled_only_for_their_target)
{
    static const char text[] = "[ptxgen]\nprefix = p\ntargets = sm_80, sm_90a\n"
                               "[mma_gemm_f16]\nweights = f16\nshape = 256x256\nm = 128\n";
    const ptxas assembler = { .known = ~(target_set)0, .oldest = target_find("sm_75") };
    diags d = diags_new(a);
    spec s;
    kernel_set set;
    assembly_plans plans = { 0 };
    size_t with_letters = 0;
    assert_true(spec_parse(a, "k.ini", text, sizeof text - 1, families, NULL, NULL, &s, &d));
    assert_true(generate_kernels(a, &s, &set, &d));
    kernel_plan_assemblies(a, &set, assembler.known, assembler.oldest, &plans);
    for (size_t i = 0; i < plans.count; i++) {
        const assembly_plan *one = &plans.items[i];
        if (one->kernel->specific)
            assert_string_equal(one->target->name, one->kernel->target->name);
        with_letters += one->kernel->specific;
    }
    assert_int_equal(with_letters, 1);
    assert_true(plans.count > 2);
}
