/* verify_kernel must accept correct kernels and name the fault of wrong kernels: each mutation
 * below must be found, for the given reason. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/mutate.h"
#include "check/verify.h"
#include "kernel/generate.h"
#include "ref/reference.h"
#include "input/spec.h"

/* Each block has one thread, which computes rows in a grid-stride loop. */
static const char gemv_ptx[] = ".version 7.0\n"
                               ".target sm_75\n"
                               ".address_size 64\n"
                               ".visible .entry plain(\n"
                               "    .param .u64 y,\n"
                               "    .param .u64 w,\n"
                               "    .param .u64 x)\n"
                               ".reqntid 32, 1, 1\n"
                               "{\n"
                               "    .reg .pred %p<4>;\n"
                               "    .reg .b32 %r<8>;\n"
                               "    .reg .f32 %f<6>;\n"
                               "    .reg .b64 %rd<8>;\n"
                               "    mov.u32 %r6, 8;\n"
                               "    mov.u32 %r7, 100;\n"
                               "    mov.u32 %r1, %tid.x;\n"
                               "    setp.ne.u32 %p1, %r1, 0;\n"
                               "    @%p1 bra $done;\n"
                               "    ld.param.u64 %rd1, [y];\n"
                               "    ld.param.u64 %rd2, [w];\n"
                               "    ld.param.u64 %rd3, [x];\n"
                               "    mov.u32 %r2, %ctaid.x;\n"
                               "    mov.u32 %r3, %nctaid.x;\n"
                               "    shl.b32 %r5, %r6, 2;\n"
                               "$row_loop:\n"
                               "    setp.ge.u32 %p2, %r2, %r7;\n"
                               "    @%p2 bra $done;\n"
                               "    mad.wide.u32 %rd4, %r2, %r5, %rd2;\n"
                               "    mov.u64 %rd5, %rd3;\n"
                               "    mov.f32 %f1, 0f00000000;\n"
                               "    mov.u32 %r4, 0;\n"
                               "$column_loop:\n"
                               "    ld.global.nc.f32 %f2, [%rd4];\n"
                               "    ld.global.nc.f32 %f3, [%rd5];\n"
                               "    fma.rn.f32 %f1, %f2, %f3, %f1;\n"
                               "    add.u64 %rd4, %rd4, 4;\n"
                               "    add.u64 %rd5, %rd5, 4;\n"
                               "    add.u32 %r4, %r4, 1;\n"
                               "    setp.lt.u32 %p3, %r4, %r6;\n"
                               "    @%p3 bra $column_loop;\n"
                               "    mad.wide.u32 %rd6, %r2, 4, %rd1;\n"
                               "    st.global.f32 [%rd6], %f1;\n"
                               "    add.u32 %r2, %r2, %r3;\n"
                               "    bra $row_loop;\n"
                               "$done:\n"
                               "    ret;\n"
                               "}\n";

static const key gemv_keys[] = { KEY_K(4), KEY_N, KEY_DIMS, KEY_END };
static const param gemv_params[] = { OUT(F32, y, "n", 4), IN(F32, w, "n*k", 16), IN(F32, x, "k", 4),
                                     PARAM_END };
static const family gemv_family = {
    .name = "plain_gemv",
    .op = OP_GEMV,
    .keys = gemv_keys,
    .params = gemv_params,
    .launch = { .block = "32", .grid = { "min(n, sm_count*16)" } },
    .reference = ref_gemv,
    .tolerance = 1e-6,
};

/* Computes o[d] = sum of v[0,t,d] over the valid positions t: attention without softmax. */
static void sum_positions(const problem *p, unsigned output, uint64_t first, uint64_t count,
                          ref_value *values)
{
    (void)output;
    const problem_shape *s = &p->shape;
    int64_t valid = s->seq_len < s->max_seq_len ? s->seq_len : s->max_seq_len;
    for (uint64_t i = 0; i < count; i++) {
        values[i] = (ref_value){ 0, 0 };
        for (int64_t t = 0; t < valid; t++) {
            float v;
            problem_read(p, 0, (uint64_t)(t * s->head_dim) + first + i, 1, &v);
            values[i].value += (double)v;
            values[i].magnitude += fabs((double)v);
        }
    }
}

static const char cache_ptx[] = ".version 7.0\n"
                                ".target sm_75\n"
                                ".address_size 64\n"
                                ".visible .entry plain(\n"
                                "    .param .u64 o,\n"
                                "    .param .u64 v,\n"
                                "    .param .u32 seq_len)\n"
                                ".reqntid 32, 1, 1\n"
                                "{\n"
                                "    .reg .pred %p<4>;\n"
                                "    .reg .b32 %r<8>;\n"
                                "    .reg .f32 %f<6>;\n"
                                "    .reg .b64 %rd<8>;\n"
                                "    mov.u32 %r1, %tid.x;\n"
                                "    ld.param.u64 %rd1, [o];\n"
                                "    ld.param.u64 %rd2, [v];\n"
                                "    ld.param.u32 %r2, [seq_len];\n"
                                "    min.u32 %r2, %r2, 50;\n"
                                "    mov.f32 %f1, 0f00000000;\n"
                                "    mov.u32 %r3, 0;\n"
                                "    mul.wide.u32 %rd3, %r1, 4;\n"
                                "    add.u64 %rd4, %rd2, %rd3;\n"
                                "$position_loop:\n"
                                "    setp.ge.u32 %p1, %r3, %r2;\n"
                                "    @%p1 bra $done;\n"
                                "    ld.global.f32 %f2, [%rd4];\n"
                                "    add.f32 %f1, %f1, %f2;\n"
                                "    add.u64 %rd4, %rd4, 128;\n"
                                "    add.u32 %r3, %r3, 1;\n"
                                "    bra $position_loop;\n"
                                "$done:\n"
                                "    add.u64 %rd5, %rd1, %rd3;\n"
                                "    st.global.f32 [%rd5], %f1;\n"
                                "    ret;\n"
                                "}\n";

static const key cache_keys[] = {
    { .name = "head_dim", .field = KEY_FIELD(shape.head_dim), .tag = "d" },
    { .name = "num_kv_heads", .field = KEY_FIELD(shape.num_kv_heads), .tag = "kv" },
    { .name = "max_seq_len", .field = KEY_FIELD(shape.max_seq_len), .tag = "s" },
    KEY_END,
};
static const param cache_params[] = { OUT(F32, o, "head_dim", 16),
                                      KV_CACHE(v),
                                      { .name = "seq_len", .kind = PARAM_SEQ_LEN },
                                      PARAM_END };
static const family cache_family = {
    .name = "plain_cache",
    .op = OP_ATTENTION,
    .keys = cache_keys,
    .params = cache_params,
    .launch = { .block = "32" },
    .reference = sum_positions,
    .tolerance = 1e-5,
};

static const instance gemv_instance = { .family = &gemv_family,
                                        .name = "plain",
                                        .shape = { .k = 8, .n = 100 } };
static const instance cache_instance = {
    .family = &cache_family,
    .name = "plain",
    .shape = { .head_dim = 32, .num_kv_heads = 1, .max_seq_len = 50 }
};

static verify_result verify_text(arena *a, const instance *in, const char *text)
{
    kernel k = { .instance = in, .ptx = text, .ptx_length = strlen(text) };
    return verify_kernel(a, &k, 1, NULL, false, NULL);
}

static void check_right(arena *a, const instance *in, const char *text)
{
    verify_result r = verify_text(a, in, text);
    if (!r.right)
        fail_msg("%s", r.message);
    assert_true(r.worst < 1 && r.blocks > 0 && r.instructions > 0);
}

static void check_wrong(arena *a, const instance *in, const char *text, const char *why)
{
    verify_result r = verify_text(a, in, text);
    if (r.right)
        fail_msg("the kernel passes; expected the fault: %s", why);
    if (!strstr(r.message, why) || strncmp(r.message, "plain: ", 7) != 0)
        fail_msg("the message '%s' does not contain '%s'", r.message, why);
}

/* Verifies a kernel on three host threads and on one. The results must be equal. */
static void check_cores(arena *a, const kernel *k, bool right)
{
    verify_cores cores = { .count = 3, .unfinished = 1 };
    verify_result one = verify_kernel(a, k, 1, NULL, false, NULL),
                  r = verify_kernel(a, k, 1, &cores, false, NULL);
    assert_int_equal(one.right, right);
    assert_int_equal(r.right, right);
    assert_true(memcmp(&r.worst, &one.worst, sizeof r.worst) == 0);
    assert_int_equal(r.blocks, one.blocks);
    assert_int_equal(r.instructions, one.instructions);
    assert_int_equal(r.line, one.line);
    if (!r.right)
        assert_string_equal(r.message, one.message);
    assert_true(cores.speculated_blocks > 8);
}

ARENA_TEST(the_number_of_threads_changes_no_result)
{
    static const char text[] = "[ptxgen]\nprefix = t\ntargets = sm_80\n"
                               "[gemv]\nweights = q8_0\nk = 1024\nn = 3000\n";
    spec s;
    kernel_set set;
    diags d = diags_new(a);
    assert_true(spec_parse(a, "spec.ini", text, strlen(text), families, NULL, NULL, &s, &d) &&
                generate_kernels(a, &s, &set, &d));
    if (test_takes_row(0, EACH))
        check_cores(a, &set.kernels[0], true);
    kernel wrong = set.kernels[0];
    char *spoiled = arena_strdup(a, wrong.ptx);
    char *sum = strstr(spoiled, "add.rn.f32");
    assert_non_null(sum);
    memcpy(sum, "sub", strlen("sub"));
    wrong.ptx = spoiled;
    if (test_takes_row(1, EACH))
        check_cores(a, &wrong, false);
}

ARENA_TEST(right_kernels_pass)
{
    check_right(a, &gemv_instance, gemv_ptx);
    check_right(a, &cache_instance, cache_ptx);
}

ARENA_TEST(every_fault_of_a_gemv_is_found_and_named)
{
    static const struct {
        const char *from, *to, *why;
    } faults[] = {
        { "fma.rn.f32 %f1, %f2, %f3, %f1", "add.f32 %f1, %f1, %f2", " of its bound" },
        { "%f2, %f3, %f1;", "%f2, %f3, %f1;\n    mul.f32 %f1, %f1, 0f3F800020;", " of its bound" },
        { "0f00000000", "0f7FC00000", "y[0] is nan" },
        { "mov.u32 %r6, 8", "mov.u32 %r6, 4", " of its bound" },
        { "setp.lt.u32 %p3, %r4, %r6", "setp.le.u32 %p3, %r4, %r6", "out of bounds" },
        { "setp.ge.u32 %p2", "setp.gt.u32 %p2", "out of bounds" },
        { "%r7, 100", "%r7, 99", "y[99] is never written" },
        { "bra $row_loop", "bra $done", "y[32] is never written" },
        { "[%rd6], %f1", "[%rd1], %f1", "overwrites bytes that block (0, 0, 0) stored" },
        { "[%rd5]", "[%rd5+2]", "misaligned" },
        { "mov.f32 %f1, 0f00000000;", "", "undefined register" },
        { "add.u32 %r2, %r2, %r3", "add.u32 %r2, %r2, 0", "limit" },
        { ".reqntid 32", ".reqntid 64", "launch" },
        { "entry plain", "entry other", "launch" },
        { "fma.rn.f32", "fmma.rn.f32", "PTX line 35: fmma.rn.f32" },
        { "st.global.f32 [%rd6]", "st.global.f32 [%rd4]", "read-only" },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        check_wrong(a, &gemv_instance, mutate(a, gemv_ptx, faults[i].from, faults[i].to),
                    faults[i].why);
}

ARENA_TEST(a_message_says_how_to_repeat_the_case)
{
    check_wrong(a, &gemv_instance, mutate(a, gemv_ptx, "%r7, 100", "%r7, 99"),
                "(k 8, n 100, sm_count 132, normal inputs, seed 1)");
}

ARENA_TEST(a_fault_s_message_shows_its_line_and_thread)
{
    const char *text = mutate(a, gemv_ptx, "setp.lt.u32 %p3", "setp.le.u32 %p3");
    check_wrong(a, &gemv_instance, text, ": ld.global.nc.f32 %f");
    check_wrong(a, &gemv_instance, text, "thread 0");
}

ARENA_TEST(all_unknown_instructions_are_listed)
{
    const char *text = mutate(a, gemv_ptx, "fma.rn.f32", "fmma.rn.f32");
    text = mutate(a, text, "mov.f32 %f1, 0f00000000", "move.f32 %f1, 0f00000000");
    check_wrong(a, &gemv_instance, text, "unknown instruction 'fmma.rn.f32'");
    check_wrong(a, &gemv_instance, text, "unknown instruction 'move.f32'");
}

ARENA_TEST(a_wrong_result_s_message_shows_the_line_that_stores_it)
{
    const char *text =
        mutate(a, gemv_ptx, "fma.rn.f32 %f1, %f2, %f3, %f1", "add.f32 %f1, %f1, %f2");
    check_wrong(a, &gemv_instance, text, ", stored by PTX line 42: st.global.f32 [%rd6], %f1;");
    assert_int_equal(verify_text(a, &gemv_instance, text).line, 42);
    text = mutate(a, gemv_ptx, "%r7, 100", "%r7, 99");
    assert_int_equal(verify_text(a, &gemv_instance, text).line, 42);
    text = mutate(a, gemv_ptx, ".reqntid 32", ".reqntid 64");
    assert_int_equal(verify_text(a, &gemv_instance, text).line, 4);
    assert_int_equal(verify_text(a, &gemv_instance, gemv_ptx).line, 0);
}

ARENA_TEST(inputs_that_are_zero_tiny_or_huge_are_tried)
{
    static const struct {
        const char *to, *inputs;
    } faults[] = {
        { "%f1, %f2, %f3, %f1;\n    div.rn.f32 %f4, %f3, %f3;\n    fma.rn.f32 %f1, %f4, "
          "0f00000000, %f1;",
          "zero inputs" },
        { "%f1, %f2, %f3, %f1;\n    mul.f32 %f4, %f2, 0f7E967699;\n    fma.rn.f32 %f1, %f4, "
          "0f00000000, %f1;",
          "huge inputs" },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        check_wrong(a, &gemv_instance, mutate(a, gemv_ptx, "%f1, %f2, %f3, %f1;", faults[i].to),
                    faults[i].inputs);
}

static const char *with_rows(arena *a, const char *rows)
{
    return mutate(a, gemv_ptx, "%r7, 100", arena_format(a, "%%r7, %s", rows));
}

ARENA_TEST(a_large_grid_is_sampled_at_its_start_and_end)
{
    instance in = gemv_instance;
    in.shape.n = 700001;
    const char *text = with_rows(a, "700001");
    verify_result r = verify_text(a, &in, text);
    if (!r.right)
        fail_msg("%s", r.message);
    assert_true(r.instructions < 50000000 && r.blocks < 100);
    check_wrong(a, &in, with_rows(a, "700000"), "y[700000] is never written");
    check_wrong(a, &in, mutate(a, text, "setp.ge.u32 %p2", "setp.gt.u32 %p2"), "out of bounds");
    check_wrong(a, &in,
                mutate(a, text, "mov.u32 %r2, %ctaid.x;",
                       "mov.u32 %r2, %ctaid.x;\n    add.u32 %r2, %r2, 1;"),
                "y[0] is never written");
}

static const char *dynamic_ptx(arena *a)
{
    const char *text = mutate(a, gemv_ptx, ".param .u64 x)",
                              ".param .u64 x,\n    .param .u32 k_dim,\n    .param .u32 n_dim)");
    text = mutate(a, text, "mov.u32 %r6, 8;", "ld.param.u32 %r6, [k_dim];");
    return mutate(a, text, "mov.u32 %r7, 100;", "ld.param.u32 %r7, [n_dim];");
}

ARENA_TEST(dynamic_sizes_are_tried_with_other_values)
{
    instance in = gemv_instance;
    in.dims = DIMS_DYNAMIC;
    const char *text = dynamic_ptx(a);
    check_right(a, &in, text);
    check_wrong(a, &in, mutate(a, text, "ld.param.u32 %r6, [k_dim];", "mov.u32 %r6, 8;"),
                "(k 4, n 1");
    check_wrong(a, &in, mutate(a, text, "ld.param.u32 %r7, [n_dim];", "mov.u32 %r7, 100;"),
                "sm_count");
    in.shape = (problem_shape){ 0 };
    check_right(a, &in, text);
}

ARENA_TEST(sequence_lengths_at_the_edges_are_tried)
{
    const instance *in = &cache_instance;
    check_wrong(a, in, mutate(a, cache_ptx, "    min.u32 %r2, %r2, 50;\n", ""), "out of bounds");
    check_wrong(a, in, mutate(a, cache_ptx, "min.u32", "min.s32"), "seq_len 4294967295");
    check_wrong(a, in, mutate(a, cache_ptx, "%r2, %r2, 50", "%r2, %r2, 49"), "seq_len 51");
    check_wrong(a, in, mutate(a, cache_ptx, "add.u32 %r3, %r3, 1", "add.u32 %r3, %r3, 2"),
                " of its bound");
    check_wrong(a, in, mutate(a, cache_ptx, "setp.ge.u32", "setp.gt.u32"), "out of bounds");
    check_wrong(
        a, in, mutate(a, cache_ptx, "mov.u32 %r3, 0;", "mov.u32 %r3, 0;\n    max.u32 %r2, %r2, 1;"),
        "seq_len 0");
    check_wrong(a, in,
                mutate(a, cache_ptx, "mov.u32 %r3, 0;",
                       "mov.u32 %r3, 0;\n    or.b32 %r2, %r2, 2;\n    min.u32 %r2, %r2, 50;"),
                "is nan");
    check_wrong(a, in,
                mutate(a, cache_ptx, "mov.u32 %r3, 0;",
                       "mov.u32 %r3, 0;\n    setp.eq.u32 %p2, %r2, 0;\n    @%p2 ret;"),
                "o[0] is never written (seq_len 0");
}

ARENA_TEST(a_cache_larger_than_memory_is_tried)
{
    instance in = cache_instance;
    in.shape.num_kv_heads = 100;
    in.shape.max_seq_len = 5000;
    const char *text = mutate(a, cache_ptx, "%r2, %r2, 50", "%r2, %r2, 5000");
    check_right(a, &in, text);
    check_wrong(a, &in, mutate(a, text, "min.u32", "or.b32 %r2, %r2, 2;\n    min.u32"), "is nan");
}

ARENA_TEST(sizes_that_no_run_can_cover_are_refused_at_once)
{
    instance in = gemv_instance;
    in.shape.n = INT32_MAX;
    verify_result r = verify_text(a, &in, with_rows(a, "2147483647"));
    if (!r.right)
        fail_msg("%s", r.message);
    assert_true(r.instructions < 50000000 && r.blocks < r.of_blocks);
    check_wrong(a, &in, with_rows(a, "2147483646"), "y[2147483646] is never written");
    in.shape.k = INT32_MAX;
    check_wrong(a, &in, with_rows(a, "2147483647"), "w has 2e+19 bytes, too many");
    in.shape.n = 100;
    check_wrong(a, &in, with_rows(a, "100"), "instructions, too many to verify");
}
