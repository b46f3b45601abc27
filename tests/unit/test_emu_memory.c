/* Device memory, loads and stores of every size and space, and atomic operations. */
#include "test_arena.h"
#include "expect_ptxas.h"
#include "test_emu_run.h"

static const uint8_t bytes[] = { 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87,
                                 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f };

/* Runs a body that leaves the same value in %l1 of all threads. Returns the value. */
static uint64_t value_of(const char *body)
{
    char with_store[2048];
    snprintf(with_store, sizeof with_store, "%s\nst.global.u64 [%%slot], %%l1;", body);
    run r = { .text = kernel_of(with_store), .in = bytes, .in_size = sizeof bytes };
    run_well(&r);
    for (int i = 1; i < 32; i++)
        assert_true(r.out[i] == r.out[0]);
    return r.out[0];
}

typedef struct body_value {
    const char *body;
    uint64_t expected;
} body_value;

static void expect_values(const body_value *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t got = value_of(rows[i].body);
        if (got != rows[i].expected)
            fail_msg("%s gives %llx, expected %llx", rows[i].body, (unsigned long long)got,
                     (unsigned long long)rows[i].expected);
    }
}

TEST(loads_extend_by_the_sign_of_their_type)
{
    static const body_value rows[] = {
        { "ld.global.u8 %l1, [%in];", 0x80 },
        { "ld.global.s8 %l1, [%in];", UINT64_C(0xffffffffffffff80) },
        { "ld.global.s8 %r1, [%in+1]; cvt.u64.u32 %l1, %r1;", 0xffffff81 },
        { "ld.global.s8 %h1, [%in+1]; cvt.u64.u16 %l1, %h1;", 0xff81 },
        { "ld.global.b8 %h1, [%in+1]; cvt.u64.u16 %l1, %h1;", 0x81 },
        { "ld.global.s16 %r1, [%in+2]; cvt.u64.u32 %l1, %r1;", 0xffff8382 },
        { "ld.global.u16 %l1, [%in+2];", 0x8382 },
        { "ld.global.s32 %l1, [%in+4];", UINT64_C(0xffffffff87868584) },
        { "ld.global.nc.b64 %l1, [%in+8];", UINT64_C(0x8f8e8d8c8b8a8988) },
        { "ld.global.nc.v4.u8 {%r1,%r2,%r3,%r4}, [%in+4]; cvt.u64.u32 %l1, %r4;", 0x87 },
        { "ld.global.v2.b64 {%l2, %l1}, [%in];", UINT64_C(0x8f8e8d8c8b8a8988) },
        { "ld.global.v4.b32 {_, _, %r1, _}, [%in]; cvt.u64.u32 %l1, %r1;", 0x8b8a8988 },
        { "ld.global.nc.L1::no_allocate.L2::128B.v2.f32 {%f1, %f2}, [%in]; mov.b32 %r1, %f2; "
          "cvt.u64.u32 %l1, %r1;",
          0x87868584 },
        { "ld.volatile.global.u32 %r1, [%in]; cvt.u64.u32 %l1, %r1;", 0x83828180 },
        { "ld.relaxed.gpu.global.u32 %r1, [%in]; cvt.u64.u32 %l1, %r1;", 0x83828180 },
        { "ld.global.acquire.gpu.u32 %r1, [%in]; cvt.u64.u32 %l1, %r1;", 0x83828180 },
        { "ld.v2.global.gpu.relaxed.u32 {%r1, %r2}, [%in]; cvt.u64.u32 %l1, %r2;", 0x87868584 },
        { "ld.b32 %r1, [%in]; cvt.u64.u32 %l1, %r1;", 0x83828180 },
        { "ld.param.b32 %r1, [in+4]; cvt.u64.u32 %l1, %r1;", 0x10001 },
        { "mov.b64 %l2, in; ld.param.u64 %l3, [%l2]; sub.u64 %l1, %l3, %in;", 0 },
        { ".shared .align 4 .b32 s[4]; mov.u32 %r1, s; mov.u32 %r2, s[3]; sub.u32 %r1, %r2, %r1; "
          "cvt.u64.u32 %l1, %r1;",
          12 },
        { ".local .align 2 .b16 l[4]; st.local.b16 l[2], 5; ld.local.u16 %l1, [l+4];", 5 },
    };
    expect_values(rows, sizeof rows / sizeof *rows);
}

TEST(spaces_and_generic_addresses_name_the_same_memory)
{
    static const body_value rows[] = {
        { ".shared .align 8 .b8 s[512]; .reg .b64 %a; mov.u64 %a, s; mad.wide.u32 %a, %t, 8, %a;\n"
          "mov.u64 %l2, 5; st.shared.u64 [%a], %l2; cvta.shared.u64 %l3, %a; ld.u64 %l1, [%l3];\n"
          "add.u64 %l1, %l1, 1; st.u64 [%l3], %l1; cvta.to.shared.u64 %l4, %l3; ld.shared.u64 %l1, "
          "[%l4];",
          6 },
        { ".local .align 8 .b8 s[16]; mov.u64 %l2, s; cvta.local.u64 %l3, %l2;\n"
          "mov.u64 %l4, 9; st.u64 [%l3+8], %l4; ld.local.u64 %l1, [%l2+8];",
          9 },
        { "cvta.to.global.u64 %l2, %in; cvta.global.u64 %l3, %l2; ld.u8 %l1, [%l3+2];", 0x82 },
        { "isspacep.global %p1, %in; isspacep.shared %p2, %in; selp.u64 %l1, 1, 0, %p1; @%p2 "
          "mov.u64 %l1, 7;",
          1 },
        { ".shared .b32 s; mov.u64 %l2, s; cvta.shared.u64 %l2, %l2; isspacep.shared %p2, %l2; "
          "selp.u64 %l1, 1, 0, %p2;",
          1 },
        { ".shared .align 16 .b8 s[64]; mov.u32 %r1, s; setp.eq.u32 %p1, %t, 0;\n"
          "@%p1 st.shared.v4.b32 [%r1+16], {%t, 1, 2, 3}; bar.sync 0; ld.shared.v2.b32 {%r2, %r3}, "
          "[s+24]; cvt.u64.u32 %l1, %r3;",
          3 },
    };
    expect_values(rows, sizeof rows / sizeof *rows);
}

/* One thread applies an operation to old. A row has the returned value and the value left in
 * memory. */
TEST(atomic_operations_return_the_old_value_and_leave_the_new)
{
    static const struct {
        const char *operation;
        uint64_t old, b, c, left;
    } rows[] = {
        { "add.u32 %r1, [A], %r2", 5, 3, 0, 8 },
        { "add.f32 %r1, [A], %r2", 0x3f800000, 0x3f800000, 0, 0x40000000 },
        { "min.s32 %r1, [A], %r2", 5, 0xffffffff, 0, 0xffffffff },
        { "min.u32 %r1, [A], %r2", 5, 0xffffffff, 0, 5 },
        { "max.s32 %r1, [A], %r2", 5, 0xffffffff, 0, 5 },
        { "inc.u32 %r1, [A], %r2", 5, 5, 0, 0 },
        { "inc.u32 %r1, [A], %r2", 4, 5, 0, 5 },
        { "dec.u32 %r1, [A], %r2", 0, 5, 0, 5 },
        { "dec.u32 %r1, [A], %r2", 3, 5, 0, 2 },
        { "exch.b32 %r1, [A], %r2", 3, 5, 0, 5 },
        { "cas.b32 %r1, [A], %r2, %r3", 3, 3, 9, 9 },
        { "cas.b32 %r1, [A], %r2, %r3", 3, 4, 9, 3 },
        { "and.b32 %r1, [A], %r2", 12, 10, 0, 8 },
        { "or.b32 %r1, [A], %r2", 12, 10, 0, 14 },
        { "xor.b32 %r1, [A], %r2", 12, 10, 0, 6 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int shared = 0; shared < 2; shared++) {
            char body[1024], operation[128];
            snprintf(operation, sizeof operation, "%s", rows[i].operation);
            char *at = strchr(operation, 'A');
            *at = 0;
            snprintf(body, sizeof body,
                     ".shared .align 4 .b8 s[4]; setp.ne.u32 %%p1, %%t, 0; @%%p1 ret;\n"
                     "mov.b32 %%r2, 0x%llx; mov.b32 %%r3, 0x%llx; mov.b32 %%r4, 0x%llx;\n"
                     "st.global.b32 [%%out], %%r4; st.shared.b32 [s], %%r4;\n"
                     "atom.%s.%s%s%s;\nld.global.b32 %%r5, [%%out]; ld.shared.b32 %%r6, [s];\n"
                     "selp.b32 %%r5, %%r6, %%r5, %s;\nst.global.v2.b32 [%%out], {%%r1, %%r5};\n",
                     (unsigned long long)rows[i].b, (unsigned long long)rows[i].c,
                     (unsigned long long)rows[i].old, shared ? "shared" : "global", operation,
                     shared ? "s" : "%out", at + 1, shared ? "1" : "0");
            run r = { .text = kernel_of(body) };
            run_well(&r);
            if (r.out[0] != (rows[i].left << 32 | rows[i].old))
                fail_msg("%s on %llx gives %llx", rows[i].operation,
                         (unsigned long long)rows[i].old, (unsigned long long)r.out[0]);
        }
}

/* Lane 1 adds to lane 0's result, element by element. */
#define VECTORS(name, result, value)                                                          \
    ".version 8.1\n.target sm_90\n.address_size 64\n"                                         \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                                 \
    ".reg .pred %p; .reg .b16 %h<9>; .reg .b32 %t, %r<9>; .reg .f32 %f<9>;\n"                 \
    ".reg .b64 %out, %l1;\nld.param.u64 %out, [out]; mov.u32 %t, %tid.x;\n"                   \
    "setp.gt.u32 %p, %t, 1; @%p ret; mul.wide.u32 %l1, %t, 16;\nadd.u64 %l1, %l1, %out;\n"    \
    "mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40000000; mov.b16 %h1, 0x3c00;\n"                \
    "mov.b16 %h2, 0x4000; mov.b32 %r1, 0x40003c00;\n"                                         \
    "setp.ne.u32 %p, %t, 0; @%p bra $add; mov.b64 %l1, 0; st.global.v2.b64 [%out+64], {%l1, " \
    "%l1};\nmov.u64 %l1, %out;\n$add: bar.warp.sync 3;\n" name " " result "[%out+64], " value \
    ";\n"

TEST(vector_atomics_apply_to_each_element)
{
    static const struct {
        const char *text;
        uint64_t old[2], left[2]; /* value returned to lane 1, and value after both lanes */
    } rows[] = {
        { VECTORS("atom.global.add.v2.f32", "{%f3, %f4}, ",
                  "{%f1, %f2}") "st.global.v2.f32 [%l1], {%f3, %f4}; ret; }\n",
          { UINT64_C(0x400000003f800000), UINT64_MAX },
          { UINT64_C(0x4080000040000000), 0 } },
        { VECTORS("atom.relaxed.gpu.global.add.v4.f32", "{%f3, %f4, %f5, %f6}, ",
                  "{%f1, %f2, %f2, %f1}") "st.global.v4.f32 [%l1], {%f3, %f4, %f5, %f6}; ret; }\n",
          { UINT64_C(0x400000003f800000), UINT64_C(0x3f80000040000000) },
          { UINT64_C(0x4080000040000000), UINT64_C(0x4000000040800000) } },
        { VECTORS("atom.global.add.noftz.v2.f16", "{%h3, %h4}, ",
                  "{%h1, %h2}") "mov.b32 %r2, {%h3, %h4}; st.global.b32 [%l1], %r2; ret; }\n",
          { UINT64_C(0xffffffff40003c00), UINT64_MAX },
          { UINT64_C(0x44004000), 0 } },
        { VECTORS("red.global.add.noftz.v2.f16x2", "", "{%r1, %r1}") "ret; }\n",
          { UINT64_MAX, UINT64_MAX },
          { UINT64_C(0x4400400044004000), 0 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run r = { .text = rows[i].text };
        expect_ptxas_to_take(rows[i].text, "sm_90");
        run_well(&r);
        for (int e = 0; e < 2; e++)
            if (r.out[2 + e] != rows[i].old[e] || r.out[8 + e] != rows[i].left[e])
                fail_msg("%s\nfinds %llx and leaves %llx", rows[i].text,
                         (unsigned long long)r.out[2 + e], (unsigned long long)r.out[8 + e]);
    }
    run r = { .text = VECTORS(
                  "red.global.add.v4.f32", "",
                  "{%f1, %f1, %f1, %f1}; add.u64 %out, "
                  "%out, 8; red.global.add.v4.f32 [%out], {%f1, %f1, %f1, %f1}") "ret; }\n" };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.fault, EMU_MISALIGNED);
}

TEST(atomics_of_all_lanes_add_up)
{
    run r = { .threads = 256,
              .blocks = 4,
              .text = KERNEL("cvt.u64.u32 %l2, %t; red.global.add.u64 [%out], %l2;\n"
                             "mov.b64 %d1, 0d3ff0000000000000; red.add.f64 [%out+8], %d1;\n") };
    run_well(&r);
    assert_int_equal(r.out[0], 4 * 255 * 128 - 1); /* all ones are -1 */
}

/* Returns a one-block launch of kernel k of a text. */
static emu_launch_config block_of(arena *a, const char *text, unsigned threads, const void **params,
                                  size_t param_count)
{
    emu_report report;
    emu_launch_config config = { .module = emu_load(a, text, strlen(text), &report),
                                 .entry = "k",
                                 .grid = { 1, 1, 1 },
                                 .block = { threads, 1, 1 },
                                 .params = params,
                                 .param_count = param_count };
    assert_non_null(config.module);
    return config;
}

ARENA_TEST(variables_of_the_module_keep_their_content_between_launches)
{
    static const char text[] = PTX_HEAD
        ".const .align 4 .u32 table[2][2] = {{10, 20}, {30}};\n"
        ".visible .global .align 4 .f32 scale = 0f40000000;\n"
        ".global .u32 counter;\n"
        ".entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<3>;\n"
        "ld.param.u64 %l1, [out]; mov.u64 %l2, table; ld.const.u32 %r1, [%l2+8];\n"
        "ld.const.u32 %r2, [table+12]; ld.global.f32 %f1, [scale]; cvt.rzi.u32.f32 %r3, %f1;\n"
        "atom.global.add.u32 %r4, [counter], 1; st.global.v4.u32 [%l1], {%r1, %r2, %r3, %r4}; ret; "
        "}";
    emu_memory *m = emu_memory_new(NULL);
    emu_report report;
    uint32_t out[4];
    uint64_t to = emu_map(m, out, sizeof out, false);
    const void *params[] = { &to };
    emu_launch_config config = block_of(a, text, 1, params, 1);
    for (unsigned launch = 0; launch < 3; launch++) {
        assert_true(emu_launch(m, &config, NULL, &report));
        const uint32_t expected[] = { 30, 0, 2, launch };
        assert_memory_equal(out, expected, sizeof out);
    }
    emu_memory_free(m);
}

TEST(allocations_are_apart_and_checked)
{
    emu_memory *m = emu_memory_new(NULL);
    uint32_t word = 7, mapped[4] = { 1, 2, 3, 4 };
    uint64_t a = emu_alloc(m, 1000), b = emu_map(m, mapped, sizeof mapped, false);
    assert_int_equal(a % 256, 0);
    assert_true(b > a + 1000 + (UINT64_C(1) << 30));
    assert_false(emu_write(m, a + 997, &word, 4));
    assert_false(emu_write(m, a - 1, &word, 1));
    assert_false(emu_read(m, a + UINT64_MAX - 2, &word, 4));
    assert_false(emu_written(m, a, 4));
    assert_true(emu_write(m, a + 8, &word, 4));
    assert_true(emu_written(m, a + 8, 4));
    assert_false(emu_written(m, a + 8, 5));
    assert_false(emu_written(m, a + 7, 2));
    assert_true(emu_write(m, a + 101, "thirteen bytes", 13));
    assert_true(emu_written(m, a + 101, 13));
    assert_false(emu_written(m, a + 101, 14));
    assert_false(emu_written(m, a + 100, 13));
    emu_clear_written(m, a);
    assert_false(emu_written(m, a + 8, 1));
    assert_false(emu_written(m, b, 1));
    assert_true(emu_read(m, b + 12, &word, 4));
    assert_int_equal(word, 4);
    assert_false(emu_free(m, a + 4));
    assert_true(emu_free(m, a));
    assert_false(emu_free(m, a));
    assert_false(emu_read(m, a + 8, &word, 4));
    emu_memory_free(m);
}

TEST(writes_to_large_allocations_are_read_back)
{
    static const uint64_t sizes[] = { 1 << 20, UINT64_C(1) << 40 };
    for (size_t i = 0; i < 2; i++) {
        emu_memory *m = emu_memory_new(NULL);
        uint64_t size = sizes[i], a = i ? emu_alloc_sparse(m, size) : emu_alloc(m, size);
        assert_true(emu_next_written(m, a, 0) == size);
        assert_true(emu_write(m, a + size - 5, "abcd", 4));
        uint64_t found = emu_next_written(m, a, 0);
        assert_true(found <= size - 5 && found > size - (1 << 17));
        assert_true(emu_next_written(m, a, size - 3) >= size - 3);
        assert_true(emu_written(m, a + size - 5, 4));
        assert_false(emu_written(m, a + size - 5, 5));
        emu_memory_free(m);
    }
}

ARENA_TEST(a_pattern_has_its_size_and_keeps_writes)
{
    emu_memory *m = emu_memory_new(NULL);
    const uint64_t size = UINT64_C(1) << 34;
    uint64_t at = emu_map_pattern(m, size, "abcdefg", 7, false);
    uint64_t next = emu_alloc(m, 16);
    char got[4];
    assert_true(next > at + size + (UINT64_C(1) << 30));
    assert_true(emu_read(m, at + size - 4, got, 4));
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(got[i], "abcdefg"[(size - 4 + i) % 7]);
    assert_false(emu_read(m, at + size - 3, got, 4));
    assert_true(emu_write(m, at + 65534, "WXYZ", 4));
    assert_true(emu_read(m, at + 65533, got, 4));
    assert_int_equal(got[0], "abcdefg"[65533 % 7]);
    assert_memory_equal(got + 1, "WXY", 3);
    assert_true(emu_written(m, at + 65534, 4));
    assert_false(emu_written(m, at + 65533, 4));
    emu_clear_written(m, at);
    assert_false(emu_written(m, at + 65534, 1));
    assert_true(emu_read(m, at + 65534, got, 4));
    assert_memory_equal(got, "WXYZ", 4);

    static const char text[] = PTX_HEAD
        ".entry k(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %l<4>; ld.param.u64 %l1, [p];\n"
        "add.u64 %l1, %l1, 0x3ffffff00; ld.global.u8 %r1, [%l1]; add.u32 %r1, %r1, 1;\n"
        "st.global.u8 [%l1+1], %r1; ret; }";
    emu_report report;
    const void *params[] = { &at };
    emu_launch_config config = block_of(a, text, 1, params, 1);
    assert_true(emu_launch(m, &config, NULL, &report));
    assert_true(emu_read(m, at + 0x3ffffff01, got, 1));
    assert_int_equal(got[0], "abcdefg"[UINT64_C(0x3ffffff00) % 7] + 1);
    emu_memory_free(m);
}

/* Lanes read words of a repeated pattern: within a repetition, across its end, across pages of
 * which one was written, and across a missing page. */
ARENA_TEST(a_warp_reads_any_words_of_a_pattern)
{
    enum { WORDS = 48, LANES = 32, PAGE = 1 << 16 };
    static const char text[] =
        PTX_HEAD ".entry k(.param .u64 out, .param .u64 in) { .reg .b32 %r<4>; .reg .b64 %l<4>;\n"
                 "ld.param.u64 %l1, [in]; ld.param.u64 %l2, [out]; mov.u32 %r1, %tid.x;\n"
                 "mad.wide.u32 %l1, %r1, 4, %l1; mad.wide.u32 %l2, %r1, 4, %l2;\n"
                 "ld.global.u32 %r2, [%l1]; st.global.u32 [%l2], %r2; ret; }";
    static const uint64_t starts[] = { 0, 4 * 20, 4 * 40, PAGE - 64, 2 * PAGE - 64, 5 * PAGE - 64 };
    uint32_t words[WORDS], written[WORDS], got[LANES];
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = 1000 + i;
        written[i] = 5000 + i;
    }
    emu_memory *m = emu_memory_new(NULL);
    const uint64_t size = 5 * PAGE;
    uint64_t in = emu_map_pattern(m, size, words, sizeof words, true), out = emu_alloc(m, 128);
    assert_true(emu_write(m, in + PAGE, written, sizeof written));
    emu_report report;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        uint64_t from = in + starts[i];
        const void *params[] = { &out, &from };
        emu_launch_config config = block_of(a, text, LANES, params, 2);
        bool inside = starts[i] + sizeof got <= size;
        assert_int_equal(emu_launch(m, &config, NULL, &report), inside);
        if (!inside) {
            assert_int_equal(report.fault, EMU_OUT_OF_BOUNDS);
            continue;
        }
        assert_true(emu_read(m, out, got, sizeof got));
        for (uint64_t lane = 0; lane < LANES; lane++) {
            uint64_t at = starts[i] / 4 + lane;
            bool changed = at >= PAGE / 4 && at < PAGE / 4 + WORDS;
            assert_int_equal(got[lane], changed ? written[at - PAGE / 4] : words[at % WORDS]);
        }
        const void *swapped[] = { &from, &out };
        config.params = swapped;
        assert_false(emu_launch(m, &config, NULL, &report));
        assert_int_equal(report.fault, EMU_READ_ONLY);
    }
    emu_memory_free(m);
}

ARENA_TEST(use_after_free_and_uninitialized_use_are_reported)
{
    static const char text[] = PTX_HEAD
        ".entry k(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %l<4>; ld.param.u64 %l1, [p];\n"
        "ld.global.u32 %r1, [%l1+4]; st.global.u32 [%l1], %r1; ret; }";
    emu_memory *m = emu_memory_new(NULL);
    emu_report report;
    uint64_t at = emu_alloc(m, 64);
    const void *params[] = { &at };
    emu_launch_config config = block_of(a, text, 32, params, 1);
    assert_false(emu_launch(m, &config, NULL, &report));
    assert_int_equal(report.fault, EMU_UNINITIALISED);
    assert_int_equal(report.line, 5);
    assert_int_equal(report.address, at + 4);
    assert_true(emu_write(m, at + 4, "1234", 4));
    assert_true(emu_launch(m, &config, NULL, &report));
    assert_true(emu_written(m, at, 8));
    assert_true(emu_free(m, at));
    assert_false(emu_launch(m, &config, NULL, &report));
    assert_int_equal(report.fault, EMU_OUT_OF_BOUNDS);
    assert_non_null(strstr(report.message, "use after free"));
    emu_memory_free(m);
}

/* Each kernel writes a byte and the next word, and loads both. A pragma says that one or two bytes
 * of the first word are used. */
ARENA_TEST(unused_bytes_of_a_load_may_be_uninitialized)
{
    static const struct {
        const char *body, *place;
    } kernels[] = { { "", "global" },
                    { ".shared .align 8 .b8 t[8]; mov.u64 %l1, t;", "shared" },
                    { ".local .align 8 .b8 t[8]; mov.u64 %l1, t;", "local" } };
    static const char *const masks[] = { "241", "0xf1", "243", "-1" };
    for (size_t i = 0; i < 4 * sizeof kernels / sizeof *kernels; i++) {
        const char *place = kernels[i / 4].place;
        const char *text = arena_format(
            a,
            PTX_HEAD ".entry k(.param .u64 p) { .reg .b32 %%r<4>; .reg .b64 %%l<4>;\n"
                     "ld.param.u64 %%l1, [p]; %s st.%s.u8 [%%l1], 7; st.%s.u32 [%%l1+4], 8;\n"
                     ".pragma \"used_bytes_mask %s\";\n"
                     "ld.%s.v2.u32 {%%r1, %%r2}, [%%l1];\n"
                     "ld.%s.v2.u32 {%%r1, %%r2}, [%%l1]; ret; }",
            kernels[i / 4].body, place, place, masks[i % 4], place, place);
        emu_memory *m = emu_memory_new(NULL);
        emu_report report;
        uint64_t at = emu_alloc(m, 64);
        const void *params[] = { &at };
        emu_launch_config config = block_of(a, text, 1, params, 1);
        assert_false(emu_launch(m, &config, NULL, &report));
        assert_int_equal(report.fault, EMU_UNINITIALISED);
        assert_int_equal(report.line, i % 4 < 2 ? 8 : 7);
        emu_memory_free(m);
    }
}

TEST(bank_conflicts_are_counted_in_extra_passes)
{
    static const struct {
        unsigned stride;
        uint64_t conflicts;
    } rows[] = { { 4, 0 }, { 8, 1 }, { 128, 31 }, { 132, 0 }, { 0, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 PTX_HEAD
                 ".entry k(.param .u64 out, .param .u64 in) { .shared .align 4 .b8 s[8192];\n"
                 ".reg .b32 %%r<9>; mov.u32 %%r1, %%tid.x; mov.u32 %%r2, s;\n"
                 "mad.lo.u32 %%r3, %%r1, %u, %%r2; st.shared.u32 [%%r3], 1; ret; }",
                 rows[i].stride);
        run r = { .text = text };
        run_well(&r);
        assert_int_equal(r.stats.shared_bank_conflicts, rows[i].conflicts);
    }
}

/* One allocation of each kind, with contents. Mapped allocations repeat or hold "abcdefg". */
typedef struct several_kinds {
    emu_memory *m;
    uint64_t filled, mapped, pattern, fixed;
    char bytes[8];
} several_kinds;

static void make_several(several_kinds *k)
{
    *k = (several_kinds){ .m = emu_memory_new(NULL), .bytes = "abcdefg" };
    k->filled = emu_alloc(k->m, 64);
    k->mapped = emu_map(k->m, k->bytes, sizeof k->bytes, false);
    k->pattern = emu_map_pattern(k->m, UINT64_C(1) << 34, "abcdefg", 7, false);
    k->fixed = emu_map(k->m, k->bytes, sizeof k->bytes, true);
    assert_true(emu_write(k->m, k->filled + 8, "1234", 4));
    assert_true(emu_write(k->m, k->pattern + (UINT64_C(1) << 33), "1234", 4));
}

ARENA_TEST(a_snapshot_finds_and_reverts_each_change)
{
    several_kinds k;
    make_several(&k);
    const struct {
        uint64_t address;
        const char *bytes;
        uint64_t differs; /* address of the first difference; 0 = equal */
    } rows[] = {
        { k.filled + 8, "1234", 0 },
        { k.filled + 8, "1239", k.filled + 11 },
        { k.filled + 48, "\0\0\0\0", k.filled + 48 }, /* not written before */
        { k.mapped + 2, "cdxx", k.mapped + 4 },
        { k.pattern + (UINT64_C(1) << 33) + 2, "35", k.pattern + (UINT64_C(1) << 33) + 3 },
        { k.pattern + 70, "abcd", 0 }, /* another page, with its old contents */
        { k.pattern + 70, "axcd", k.pattern + 71 },
    };
    const emu_snapshot *s = emu_snapshot_new(a, k.m);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t address = 0;
        size_t size = rows[i].bytes[0] ? strlen(rows[i].bytes) : 4;
        assert_true(emu_write(k.m, rows[i].address, rows[i].bytes, size));
        assert_int_equal(emu_snapshot_differs(s, k.m, &address), rows[i].differs != 0);
        assert_int_equal(address, rows[i].differs);
        emu_snapshot_restore(s, k.m);
        assert_false(emu_snapshot_differs(s, k.m, &address));
    }
    assert_true(emu_written(k.m, k.filled + 8, 4));
    assert_false(emu_initialised(k.m, k.filled + 48, 1));
    assert_false(emu_written(k.m, k.mapped, 1));
    assert_int_equal(emu_next_written(k.m, k.pattern, 0), UINT64_C(1) << 33);
    emu_memory_free(k.m);
}
