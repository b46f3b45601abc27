/* The generated header, compared as text and compiled by the installed compilers. */
#include <string.h>

#include "test_arena.h"
#include "base/os.h"
#include "base/os_process.h"
#include "emit/emit.h"
#include "emit_sample.h"

enum { LONG_PTX_LINES = 2250, SPLIT_PTX_LINES = 1200, LONG_LINE = 20000 };

/* MSVC's limits for one string literal and for concatenated literals, in bytes. */
enum { LITERAL_LIMIT = 16380, STRING_LIMIT = 65535 };

static const char *header(arena *a, const char *prefix)
{
    kernel kernels[SAMPLE_KERNELS];
    const target *found[2];
    kernel_set set = sample_set(prefix, kernels, found);
    described_set d = describe_set(a, &set);
    strbuf out = strbuf_new(a);
    emit_header(&out, &d);
    return out.text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("not in the header: %s", part);
}

ARENA_TEST(contents_list_families_with_their_counts)
{
    const char *text = header(a, "llama");
    assert_has(text, " * 6 kernels for sm_75, sm_80:\n");
    assert_has(text, " *     4  plain_gemv               fixed grid\n");
    assert_has(text, " *     1  striding_gemv            grid by the number of SMs\n");
}

ARENA_TEST(one_comment_line_tells_all_about_a_kernel)
{
    const char *text = header(a, "llama");
    assert_has(text,
               "/* y[14336] = W[14336,4096] x[4096], weights q4_k, activations f32, num_warps 4.  "
               "sm_75, block 128, grid 14336, 16 bytes shared, 40 registers. */\n"
               "extern const ptxgen_kernel llama_plain_gemv_k4096_n14336_w4;\n");
    assert_has(text,
               "/* o[32,64] = softmax(q K^T / head_dim) V, activations f32, num_kv_heads 8, "
               "max_seq_len 4096, "
               "indirect seq_len.  sm_75, block 32, grid 32 x 2, 256 bytes dynamic shared. */\n");
}

ARENA_TEST(run_time_sizes_keep_their_names_in_the_comment)
{
    assert_has(header(a, "llama"),
               "/* y[n] = W[n,k] x[k], weights q4_k, activations f32, num_warps 4, dynamic dims.  "
               "sm_75, block 128, grid n. */\n");
}

ARENA_TEST(kernels_for_newer_targets_have_their_own_names)
{
    const char *text = header(a, "llama");
    assert_has(text, "extern const ptxgen_kernel llama_plain_gemv_k4096_n14336_w4;\n");
    assert_has(text, "extern const ptxgen_kernel llama_plain_gemv_k4096_n14336_w4_sm_80;\n");
}

ARENA_TEST(a_launch_function_has_its_kernels_parameters)
{
    const char *text = header(a, "llama");
    assert_has(text, "/* y out f32[n], w in q4_k[n*k], x in f32[k], k_dim in u32, n_dim in u32 */\n"
                     "static inline ptxgen_result llama_plain_gemv_dynamic_launch(\n"
                     "    const llama_cuda *cuda, ptxgen_stream stream,\n"
                     "    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x, "
                     "uint32_t k_dim, uint32_t n_dim)\n"
                     "{\n"
                     "    void *arguments[] = { &y, &w, &x, &k_dim, &n_dim };\n");
    assert_has(text,
               " *     r = llama_plain_gemv_k4096_n14336_w4_launch(&cuda, stream, y, w, x);\n");
}

ARENA_TEST(kernels_for_several_targets_have_one_launch_function)
{
    const char *text = header(a, "llama");
    const char *first = strstr(text, "ptxgen_result llama_plain_gemv_k4096_n14336_w4_launch(");
    const char *next = strstr(text, "ptxgen_result llama_plain_gemv_dynamic_launch(");
    assert_has(
        text, "static inline ptxgen_result llama_plain_gemv_k4096_n14336_w4_load(llama_cuda *cuda, "
              "ptxgen_load_error *error)\n"
              "{\n"
              "    static const ptxgen_kernel *const kernels[] = { "
              "&llama_plain_gemv_k4096_n14336_w4, "
              "&llama_plain_gemv_k4096_n14336_w4_sm_80 };\n");
    assert_non_null(first);
    assert_non_null(next);
    assert_null(strstr(text, "_sm_80_launch"));
    assert_ptr_equal(strstr(first, "&cuda->kernels[0]"), strstr(first, "&cuda->kernels["));
    assert_ptr_equal(strstr(next, "&cuda->kernels[2]"), strstr(next, "&cuda->kernels["));
    assert_has(text, "    ptxgen_loaded_kernel kernels[6];\n");
}

/* Attention of attention's output. The first result reaches the second step through the workspace.
 */
static const pipeline_step two_table[] = {
    { .family = "attention",
      .bind = { { "o", "between" }, { "q", "q" }, { "seq_len", "seq_len" } } },
    { .family = "attention",
      .bind = { { "o", "result" }, { "q", "between" }, { "seq_len", "seq_len" } } },
    { .n = NULL }
};
static const family two_steps = {
    .name = "two_steps",
    .computes = "o = attention(attention(q))",
    .keys = (const key[]){ KEY_END },
    .steps = two_table,
};
static const instance attention_step = {
    .family = &attention,
    .name = "attention_d64_h32_g8_s4096",
    .shape = { .head_dim = 64, .num_heads = 32, .num_kv_heads = 8, .max_seq_len = 4096 }
};
static const instance two_steps_instance = { .family = &two_steps, .name = "two_steps" };

ARENA_TEST(a_pipeline_takes_buffers_then_its_workspace_then_numbers)
{
    static const pipeline_launch launches[] = { { &two_table[0], &attention_step },
                                                { &two_table[1], &attention_step } };
    const pipeline p = { .instance = &two_steps_instance, .steps = launches, .step_count = 2 };
    kernel kernels[SAMPLE_KERNELS];
    const target *found[2];
    kernel_set set = sample_set("llama", kernels, found);
    kernels[SAMPLE_KERNELS - 1].instance = &attention_step;
    set.pipelines = &p;
    set.pipeline_count = 1;
    described_set d = describe_set(a, &set);
    strbuf out = strbuf_new(a);
    emit_header(&out, &d);
    assert_has(out.text, "#define LLAMA_TWO_STEPS_WORKSPACE ((size_t)8192)\n");
    assert_has(out.text,
               "/* result out f32 (8192 bytes), q in f32 (8192 bytes), seq_len in u32, workspace "
               "(8192 bytes) */\n"
               "static inline ptxgen_result llama_two_steps_launch(\n"
               "    const llama_cuda *cuda, ptxgen_stream stream,\n"
               "    ptxgen_deviceptr result, ptxgen_const_deviceptr q,\n"
               "    ptxgen_deviceptr workspace, size_t workspace_bytes, uint32_t seq_len)\n"
               "{\n"
               "    void *arguments[] = { &result, &q, &seq_len };\n");
    assert_has(out.text,
               "llama_two_steps_step_0[] = { { PTXGEN_WORKSPACE, 0 }, { 1, 0 }, { 2, 0 } };\n");
    assert_has(out.text,
               "llama_two_steps_step_1[] = { { 0, 0 }, { PTXGEN_WORKSPACE, 0 }, { 2, 0 } };\n");
    assert_has(out.text, "    { \"attention_d64_h32_g8_s4096\", 5, llama_two_steps_step_0, 3 },\n");
}

ARENA_TEST(no_placeholder_is_left_over)
{
    assert_null(strchr(header(a, "llama"), '@'));
}

ARENA_TEST(the_same_set_gives_the_same_bytes)
{
    assert_string_equal(header(a, "llama"), header(a, "llama"));
}

/* A program that looks up kernels of two headers in one file. It exits with the line of the first
 * failed check, counted from 1 at the first CHECK. */
static const char user[] =
    "#define LLAMA_KERNELS_IMPLEMENTATION\n"
    "#include \"llama_kernels.h\"\n"
    "#define PTXGEN_KERNELS_IMPLEMENTATION\n"
    "#include \"ptxgen_kernels.h\"\n"
    "#include \"llama_kernels.h\"\n"
    "#include \"Llama_kernels.h\"\n" /* a header with its own prefix */
    "#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)\n"
    "static int is(const ptxgen_kernel *k, const char *name, unsigned sm)\n"
    "{ return k && strcmp(k->name, name) == 0 && k->sm == sm; }\n"
    "int main(void)\n"
    "{\n"
    "    ptxgen_query q;\n"
    "    ptxgen_run run = { 0, 0, 0, 20 };\n"
    "    unsigned grid[3];\n"
    "    memset(&q, 0, sizeof q);\n"
    "    q.op = PTXGEN_GEMV; q.weights = PTXGEN_Q4_K; q.activations = PTXGEN_F32;\n"
    "    q.k = 4096; q.n = 14336; q.sm = 90;\n"
    "#line 1\n"
    "    CHECK(is(llama_find(&q), \"plain_gemv_k4096_n14336_w4\", 80));\n"
    "    q.sm = 75; CHECK(is(llama_find(&q), \"plain_gemv_k4096_n14336_w4\", 75));\n"
    "    q.sm = 70; CHECK(!llama_find(&q));\n"
    "    q.sm = 0; CHECK(is(llama_find(&q), \"plain_gemv_k4096_n14336_w4\", 75));\n"
    "    q.m = 1; CHECK(is(llama_find(&q), \"plain_gemv_k4096_n14336_w4\", 75));\n"
    "    q.m = 2; CHECK(!llama_find(&q)); q.m = 0;\n"
    "    q.weights = PTXGEN_Q6_K; CHECK(!llama_find(&q)); q.weights = PTXGEN_NONE;\n"
    "    q.activations = PTXGEN_Q8_1; CHECK(!llama_find(&q)); q.activations = PTXGEN_NONE;\n"
    "    q.op = PTXGEN_QUANTIZE; CHECK(!llama_find(&q)); q.op = PTXGEN_ANY_OPERATION;\n"
    "    q.n = 4096; CHECK(is(llama_find(&q), \"striding_gemv_k4096_n4096_w3\", 75));\n"
    "    CHECK(!ptxgen_grid(llama_find(&q), NULL, grid));\n"
    "    CHECK(ptxgen_grid(llama_find(&q), &run, grid) && grid[0] == 320 && grid[1] == 1);\n"
    "    q.family = \"plain_gemv\"; CHECK(is(llama_find(&q), \"plain_gemv_k4096_n4096_w4\", 75));\n"
    "    CHECK(ptxgen_grid(llama_find(&q), NULL, grid) && grid[0] == 4096 && grid[2] == 1);\n"
    "    q.family = \"none\"; CHECK(!llama_find(&q)); q.family = NULL;\n"
    "    q.n = 0; CHECK(is(llama_find(&q), \"striding_gemv_k4096_n4096_w3\", 75));\n"
    "    q.family = \"plain_gemv\"; CHECK(is(llama_find(&q), \"plain_gemv_k4096_n14336_w4\", "
    "75));\n"
    "    q.family = NULL;\n"
    "    q.n = 7; CHECK(is(ptxgen_find(&q), \"plain_gemv_dynamic\", 75));\n"
    "    CHECK(!ptxgen_grid(ptxgen_find(&q), &run, grid));\n"
    "    run.n = 7; CHECK(ptxgen_grid(ptxgen_find(&q), &run, grid) && grid[0] == 7);\n"
    "    q.k = 1000; CHECK(!ptxgen_find(&q)); q.k = 0; q.n = 0;\n"
    "    q.head_dim = 64; q.num_heads = 32; q.num_kv_heads = 8;\n"
    "    CHECK(!llama_find(&q)); q.seq_len_indirect = 1;\n"
    "    CHECK(is(llama_find(&q), \"attention_d64_h32_g8_s4096_indirect\", 75));\n"
    "    q.max_seq_len = 4096; CHECK(llama_find(&q)); q.max_seq_len = 8192;\n"
    "    CHECK(!llama_find(&q)); q.max_seq_len = 0;\n"
    "    CHECK(llama_find(&q)->seq_len_indirect && llama_find(&q)->shared_dynamic == 256);\n"
    "    q.head_dim = 128; CHECK(!llama_find(&q));\n"
    "    CHECK(Llama_kernel_count == 6 && Llama_kernels[0] != llama_kernels[0]);\n"
    "    CHECK(llama_kernel_count == 6 && llama_kernels[0] == &llama_plain_gemv_k4096_n14336_w4);\n"
    "    CHECK(llama_kernels[0]->ptx_length == strlen(llama_kernels[0]->ptx));\n"
    "    CHECK(strncmp(llama_kernels[0]->ptx, \"// \\303\\251 \\\"quoted\\\" \\\\ back?\" "
    "\"?=sl\", 25) == "
    "0);\n"
    "    for (size_t i = 0; i < llama_kernel_count; i++)\n"
    "        CHECK(strlen(llama_kernels[i]->ptx) == llama_kernels[i]->ptx_length);\n"
    "    CHECK(llama_kernels[4]->ptx_length > 3 * 16380 && llama_kernels[5]->ptx_length > 65535);\n"
    "    CHECK(strncmp(llama_kernels[5]->ptx + llama_kernels[5]->ptx_length - 5, \"\\303\\251 "
    "1;\", 5)"
    " == 0);\n"
    "    CHECK(strncmp(llama_kernels[4]->ptx + llama_kernels[4]->ptx_length - 5, \"xxx?\\n\", 5)"
    " == 0);\n"
    "    CHECK(llama_kernels[0]->registers == 40 && llama_kernels[0]->blocks_per_sm == 8);\n"
    "    CHECK(llama_kernels[1]->registers == 0 && llama_kernels[1]->blocks_per_sm == 0);\n"
    "    CHECK(llama_kernels[0]->params[1].bytes == 33030144 &&\n"
    "          llama_kernels[0]->params[1].format == PTXGEN_Q4_K);\n"
    "    return 0;\n"
    "}\n";

static void write(arena *a, const char *folder, const char *name, const char *text)
{
    const char *error;
    assert_true(
        os_write_file(a, arena_format(a, "%s/%s", folder, name), text, strlen(text), &error));
}

static const char *temporary_folder(arena *a)
{
    const char *folder, *error;
    assert_true(os_temporary_directory(a, &folder, &error));
    return folder;
}

static void make_long(arena *a, kernel *k, int lines, const char *end)
{
    strbuf text = strbuf_new(a);
    for (int i = 0; i < lines; i++)
        strbuf_format(&text, "    add.u32 %%r%d, %%r%d, 1;\n", i, i);
    strbuf_put(&text, end);
    k->ptx = text.text;
    k->ptx_length = text.length;
}

/* Returns a header whose last two kernels exceed MSVC's limits of one literal and of all. */
static const char *long_header(arena *a)
{
    kernel kernels[SAMPLE_KERNELS];
    const target *found[2];
    kernel_set set = sample_set("llama", kernels, found);
    char *line = arena_alloc(a, LONG_LINE);
    memset(line, 'x', LONG_LINE);
    memcpy(line + LONG_LINE - 3, "?\n", sizeof "?\n");
    make_long(a, &kernels[4], SPLIT_PTX_LINES, line);
    make_long(a, &kernels[5], LONG_PTX_LINES, "\303\251 1;");
    described_set d = describe_set(a, &set);
    strbuf out = strbuf_new(a);
    emit_header(&out, &d);
    return out.text;
}

/* Returns the end of the literal at text and adds its length to *bytes. */
static const char *skip_literal(const char *text, size_t *bytes)
{
    for (text++; *text != '"'; text++) {
        if (strncmp(text, "\\\n", 2) == 0) {
            text++;
            continue;
        }
        if (*text == '\\')
            text += text[1] >= '0' && text[1] <= '3' ? 3 : 1;
        ++*bytes;
    }
    return text + 1;
}

ARENA_TEST(no_string_exceeds_compiler_limits)
{
    size_t literals = 0, together = 0, longest = 0;
    for (const char *c = strstr(long_header(a), "#define llama_KERNELS_IMPLEMENTED"); *c;) {
        if (strncmp(c, "/*", 2) == 0) {
            c = strstr(c, "*/") + 2;
        } else if (*c == '\'') {
            c += c[1] == '\\' ? strcspn(c + 2, "'") + 3 : 3;
        } else if (*c == '"') {
            size_t bytes = 0;
            c = skip_literal(c, &bytes);
            assert_in_range(bytes, 0, LITERAL_LIMIT);
            together += bytes;
            longest = together > longest ? together : longest;
            assert_in_range(together, 0, STRING_LIMIT - 1);
            literals++;
        } else {
            if (!strchr(" \n", *c))
                together = 0;
            c++;
        }
    }
    assert_in_range(literals, 10, 1000);
    assert_in_range(longest, 3 * LITERAL_LIMIT, STRING_LIMIT);
}

/* Writes two headers and the program that includes them. */
static const char *write_program(arena *a)
{
    const char *text = long_header(a);
    assert_has(text, "llama_attention_d64_h32_g8_s4096_indirect_ptx[] = {\n");

    const char *folder = temporary_folder(a);
    write(a, folder, "llama_kernels.h", text);
    write(a, folder, "ptxgen_kernels.h", header(a, "ptxgen"));
    write(a, folder, "Llama_kernels.h", header(a, "Llama"));
    write(a, folder, "user.c", user);
    write(a, folder, "user.cc", user);
    return folder;
}

static int run(arena *a, const char *const *argv, char **output)
{
    const char *error;
    int status;
    assert_true(os_run(a, argv, output, &status, &error));
    return status;
}

static void compile_and_run(arena *a, const char *folder, const char *compiler,
                            const char *standard, const char *source)
{
    char *output;
    const char *program = arena_format(a, "%s/user", folder);
    const char *const compile[] = {
        compiler,
        standard,
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wshadow",
        "-Wconversion",
        "-Werror",
        "-o",
        program,
        arena_format(a, "%s/%s", folder, source),
        NULL,
    };
    if (run(a, compile, &output) != 0)
        fail_msg("%s %s: %s", compiler, standard, output);
    int line = run(a, (const char *const[]){ program, NULL }, &output);
    if (line != 0)
        fail_msg("%s %s: check %d of the program failed", compiler, standard, line);
}

ARENA_TEST(it_compiles_without_a_warning_and_finds_fitting_kernels)
{
    static const struct {
        const char *compiler, *standard, *source;
    } ways[] = {
        { "gcc", "-std=c99", "user.c" },        { "gcc", "-std=c11", "user.c" },
        { "gcc", "-std=c17", "user.c" },        { "g++", "-std=c++11", "user.cc" },
        { "g++", "-std=c++17", "user.cc" },     { "g++", "-std=c++20", "user.cc" },
        { "clang", "-std=c99", "user.c" },      { "clang", "-std=c11", "user.c" },
        { "clang", "-std=c17", "user.c" },      { "clang++", "-std=c++11", "user.cc" },
        { "clang++", "-std=c++17", "user.cc" }, { "clang++", "-std=c++20", "user.cc" },
    };
    const char *folder = write_program(a);
    size_t compiled = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *compiler = os_find_program(a, ways[i].compiler);
        if (!compiler)
            continue;
        compile_and_run(a, folder, compiler, ways[i].standard, ways[i].source);
        compiled++;
    }
    os_remove_directory(a, folder);
    if (!compiled)
        skip();
}

ARENA_TEST(headers_of_two_abis_do_not_mix)
{
    const char *compiler = os_find_program(a, "cc");
    if (!compiler)
        skip();
    const char *folder = temporary_folder(a);
    write(a, folder, "llama_kernels.h", header(a, "llama"));
    write(a, folder, "user.c", "#define PTXGEN_ABI 0\n#include \"llama_kernels.h\"\n");
    char *output;
    int status = run(a,
                     (const char *const[]){ compiler, "-fsyntax-only",
                                            arena_format(a, "%s/user.c", folder), NULL },
                     &output);
    os_remove_directory(a, folder);
    assert_int_not_equal(status, 0);
    assert_has(output, "differ in PTXGEN_ABI");
}
