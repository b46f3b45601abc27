/* The faults that earlier implementations of these kernels had, planted by hand in the files that
 * ptxgen wrote: --verify must fail, at the line of the file where a rule was broken or the wrong
 * value stored. Those that no edit of a kernel can plant are wrong specs here, or are tested with
 * the generator.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os.h"
#include "kernel/mutate.h"

enum { MAX_EDITS = 3 };

typedef struct trap {
    const char *name, *section;
    line_edit edits[MAX_EDITS]; /* ending NULL: of any text that is mnemonic, not of a line */
    const char *line;           /* how the line begins that the message names */
    const char *found;          /* a part of the message */
} trap;

#define ATTENTION "[incremental_attention]\nnum_heads = 4\nnum_kv_heads = 2\nmax_seq_len = 40\n"

static const trap traps[] = {
    { "trap_1_the_new_maximum_taken_for_the_old_one",
      ATTENTION "head_dim = 64",
      { { "sub.f32", "", 1, "    sub.f32 $1, $3, $3;" } },
      "st.global.v4.f32",
      " of its bound, stored by" },
    { "trap_2_lane_0_s_maximum_used_by_all_lanes",
      "[q8_1_quantize]\nk = 1024",
      { { "shfl.sync.bfly.b32", "", 0, "    shfl.sync.down.b32 $1, $2, $3, $4, $5;" } },
      "st.global.",
      " of its bound, stored by" },
    { "trap_3_warps_without_work_leave_before_a_barrier",
      "[mwv_q4k_gemv]\nk = 512\nn = 4\nnum_warps = 4",
      { { "bar.sync", "", 1,
          "    .reg .pred %out;\n    setp.ge.u32 %out, %r2, 64;\n    @%out ret;\n    $0" } },
      "bar.sync",
      "[barrier]" },
    { "trap_4_a_part_of_x_is_not_staged",
      "[tiled_q4k_gemv]\nk = 2048\nn = 4",
      { { "st.shared.v4.f32", "", 4, "" } },
      "ld.shared.v4.f32",
      "[uninitialised" },
    { "trap_5_a_chunk_is_staged_over_one_in_use",
      "[chunked_tiled_q4k_gemv]\nk = 8448\nn = 4",
      { { "bar.sync", "", 1, "" } },
      "st.shared.v4.f32",
      "[race]" },
    { "trap_6_a_grid_smaller_than_the_output_without_a_loop",
      "[mwv_dp4a_q4k_gemv]\nk = 1024\nn = 50",
      { { "@%p", " $row_loop;", 1, "" } },
      "st.global.f32",
      "y[16] is never written; what is, is stored by" },
    { "trap_7_shared_memory_from_address_0",
      "[mwv_q4k_gemv]\nk = 1024\nn = 50",
      { { "mov.u32", " partial;", 0, "    mov.u32 $1, 0;" } },
      "st.shared.f32",
      "[out of bounds]" },
    { "trap_8_nothing_divided_by_nothing",
      ATTENTION "head_dim = 64",
      { { "rcp.rn.f32", "", 1, "    $0\n    mov.f32 %kept, $1;" },
        { "selp.f32", "", 2, "    mov.f32 $1, %kept;" },
        { ".reg .f32", "", 1, "    $0\n    .reg .f32 %kept;" } },
      "st.global.v4.f32",
      "seq_len 0" },
    { "trap_9_high_nibbles_taken_for_low_ones",
      "[mwv_q4k_gemv]\nk = 1024\nn = 50",
      { { "shl.b32", ", 3;", 0, "    shr.u32 $1, $2, 1 ;" },
        { "shr.u32", ", 1;", 0, "    shl.b32 $1, $2, 3;" } },
      "st.global.f32",
      " of its bound, stored by" },
    { "trap_10_offsets_into_a_cache_wrap_at_2_to_the_32",
      "[incremental_attention]\nhead_dim = 256\nnum_heads = 4096\nnum_kv_heads = 4096\n"
      "max_seq_len = 2048",
      { { "mul.lo.u64", "", 1, "    $0\n    and.b64 $1, $1, 0xFFFFFFFF;" } },
      "st.global.v4.f32",
      " of its bound, stored by" },
    { "trap_11_k_is_not_whole_blocks",
      "[q4k_gemv]\nk = 1000\nn = 4",
      { { 0 } },
      "k = 1000",
      "k = 1000 is not a multiple of 256" },
    { "trap_12_the_built_k_in_a_kernel_for_any_k",
      "[q4k_gemv]\nk = 1024\nn = 50\ndims = dynamic",
      { { "ld.param.u32", "[k_dim];", 1, "    mov.u32 $1, 1024;" } },
      "ld.global.nc.",
      "[out of bounds]" },
    { "trap_13_another_number_of_threads_than_the_launch_has",
      "[mwv_q4k_gemv]\nk = 1024\nn = 3\nnum_warps = 4",
      { { ".reqntid 128", NULL, 0, ".reqntid 64" } },
      ".visible .entry",
      "requires 64" },
    { "trap_14_a_register_set_on_one_path_only",
      "[mwv_q4k_gemv]\nk = 1024\nn = 50",
      { { "mov.f32", "0f00000000;", 2, "" } },
      "mov.f32",
      "[undefined register]" },
    { "trap_16_the_end_of_a_wide_head_is_not_stored",
      ATTENTION "head_dim = 256",
      { { "st.global.v4.f32", "", 4, "" } },
      "st.global.v4.f32",
      "is never written" },
};

static int ptxgen(arena *a, const char *arguments)
{
    int how = system(arena_format(
        a, "\"$PTXGEN\" --spec t.ini --out build %s >.out 2>.err </dev/null", arguments));
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static const char *read_text(arena *a, const char *path)
{
    char *bytes;
    size_t size;
    const char *error;
    assert_true(os_read_file(a, path, &bytes, &size, &error));
    return bytes;
}

static void write_text(arena *a, const char *path, const char *text)
{
    const char *error;
    assert_true(os_write_file(a, path, text, strlen(text), &error));
}

/* The file of the only kernel. */
static const char *kernel_path(arena *a)
{
    assert_int_equal(system("ls build/*.ptx >.name"), 0);
    const char *name = read_text(a, ".name");
    return arena_copy(a, name, strcspn(name, "\n"));
}

static const char *line_of(const char *text, unsigned line)
{
    for (unsigned i = 1; i < line; i++)
        text = strchr(text, '\n') + 1;
    return text + strspn(text, " ");
}

static const char *edited(arena *a, const char *text, const line_edit *e)
{
    return e->ending ? edit_lines(a, text, e) : mutate(a, text, e->mnemonic, e->to);
}

static void check_message(arena *a, const char *path, const trap *t)
{
    unsigned line = 0, column = 0;
    const char *message = read_text(a, ".err");
    size_t length = strlen(path);
    if (strncmp(message, path, length) != 0 ||
        sscanf(message + length, ":%u:%u: error: ", &line, &column) != 2 ||
        !strstr(message, t->found))
        fail_msg("'%s' is said of %s, not '%s'", message, path, t->found);
    const char *named = line_of(read_text(a, path), line);
    if (strncmp(named, t->line, strlen(t->line)) != 0)
        fail_msg("line %u is named, '%.*s', not a line '%s'", line, (int)strcspn(named, "\n"),
                 named, t->line);
}

static void is_found_in_a_written_kernel(void **state)
{
    const trap *t = *state;
    arena *a = arena_new();
    const char *folder, *error, *path = "t.ini";
    assert_true(os_temporary_directory(a, &folder, &error));
    assert_int_equal(chdir(folder), 0);
    write_text(a, "t.ini", arena_format(a, "[ptxgen]\ntargets = sm_75\n%s\n", t->section));
    if (t->edits[0].mnemonic) {
        assert_int_equal(ptxgen(a, "--verify"), 0);
        path = kernel_path(a);
        const char *text = read_text(a, path);
        for (unsigned i = 0; i < MAX_EDITS && t->edits[i].mnemonic; i++)
            text = edited(a, text, &t->edits[i]);
        write_text(a, path, text);
    }
    assert_int_equal(ptxgen(a, "--verify"), 1);
    check_message(a, path, t);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(system(arena_format(a, "rm -rf '%s'", folder)), 0);
    arena_free(a);
}

int main(void)
{
    enum { COUNT = sizeof traps / sizeof *traps };
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){ .name = traps[i].name,
                                        .test_func = is_found_in_a_written_kernel,
                                        .initial_state = (void *)(uintptr_t)&traps[i] };
    return cmocka_run_group_tests_name("edited_traps", tests, NULL, NULL);
}
