/* Instruction counts of PTX text, by kind and by loop. */
#include "test.h"
#include "emit/ptx_stats.h"

TEST(every_instruction_is_counted_once_and_by_kind)
{
    ptx_stats s = ptx_stats_of("// add mul in a comment\n"
                               ".version 7.0\n"
                               ".visible .entry f(\n"
                               "    .param .u64 y)\n"
                               "{\n"
                               "    .reg .f32 %f<3>;\n"
                               "    ld.param.u64 %rd1, [y];\n"
                               "\n"
                               "    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n"
                               "    @%p1 ld.global.u16 %h1, [%rd1+16];\n"
                               "    st.shared.f32 [%r1], %f1;\n"
                               "    fma.rn.f32 %f1, %f2, %f3, %f4;\n"
                               "    add.rn.f16x2 %r1, %r2, %r3;\n"
                               "    dp4a.u32.s32 %r1, %r2, %r3, %r1;\n"
                               "    mad.wide.u32 %rd2, %r1, 4, %rd1; // .f32 of a comment\n"
                               "    cvt.f32.f16 %f1, %h1;\n"
                               "    mov.f32 %f1, 0f00000000;\n"
                               "    shfl.sync.bfly.b32 %r1, %r2, 16, 31, 0xffffffff;\n"
                               "    bar.sync 0;\n"
                               "    setp.lt.f32 %p1, %f1, %f2;\n"
                               "    @!%p1 bra $done;\n"
                               "    red.global.add.f32 [%rd1], %f1;\n"
                               "$done:\n"
                               "    ret;\n"
                               "}\n");
    static const unsigned expected[PTX_CLASS_COUNT] = {
        [PTX_GLOBAL] = 3,  [PTX_SHARED] = 2,  [PTX_FLOAT] = 2, [PTX_DOT] = 1,
        [PTX_INTEGER] = 1, [PTX_CONVERT] = 2, [PTX_WARP] = 2,  [PTX_CONTROL] = 3,
    };
    for (size_t i = 0; i < PTX_CLASS_COUNT; i++)
        if (s.all.by_class[i] != expected[i])
            fail_msg("%s: %u, not %u", ptx_class_names[i], s.all.by_class[i], expected[i]);
    assert_int_equal(s.all.instructions, 16);
    assert_int_equal(s.all.loads, 2);
    assert_int_equal(s.all.load_bytes, 16 + 2);
    assert_int_equal(s.hot.work, 0);
}

TEST(the_hot_loop_is_the_marked_innermost_one_with_the_most_work)
{
    ptx_stats s = ptx_stats_of("{\n"
                               "$first_loop:      // 8 weights a lane\n"
                               "    ld.global.u32 %r1, [%rd1];\n"
                               "    @%p1 bra $first_loop;\n"
                               "$outer_loop:      // 64 weights a lane\n"
                               "    add.u32 %r1, %r1, 1;\n"
                               "$inner_loop:      // 32 elements a lane\n"
                               "    ld.global.v2.u32 {%r1, %r2}, [%rd1];\n"
                               "    ld.global.u8 %r3, [%rd1];\n"
                               "    fma.rn.f32 %f1, %f2, %f3, %f4;\n"
                               "    @%p1 bra $inner_loop;\n"
                               "    @%p2 bra $outer_loop;\n"
                               "$last_loop:\n"
                               "    add.u32 %r1, %r1, 1;\n"
                               "    @%p1 bra $last_loop;\n"
                               "    bra $end;\n"
                               "$end:             // 99 weights, but no loop\n"
                               "    ret;\n"
                               "}\n");
    assert_int_equal(s.hot.work, 32);
    assert_string_equal(s.hot.unit, "elements");
    assert_int_equal(s.hot.count, 1);
    assert_int_equal(s.hot.numbers[0], 1);
    assert_int_equal(s.hot.counts.instructions, 4);
    assert_int_equal(s.hot.counts.by_class[PTX_FLOAT], 1);
    assert_int_equal(s.hot.counts.by_class[PTX_GLOBAL], 2);
    assert_int_equal(s.hot.counts.loads, 2);
    assert_int_equal(s.hot.counts.load_bytes, 9);
    assert_int_equal(s.all.instructions, 12);
}

TEST(loops_with_as_much_work_count_together)
{
    ptx_stats s = ptx_stats_of("{\n"
                               "$short_loop:      // 4 products a lane\n"
                               "    add.u32 %r1, %r1, 1;\n"
                               "    @%p1 bra $short_loop;\n"
                               "$k_loop:          // 16 products a lane\n"
                               "    ld.global.u32 %r1, [%rd1];\n"
                               "    @%p1 bra $k_loop;\n"
                               "$softmax_loop:\n"
                               "    ex2.approx.f32 %f1, %f1;\n"
                               "    @%p1 bra $softmax_loop;\n"
                               "$v_loop:          // 16 products a lane\n"
                               "    ld.global.u16 %h1, [%rd1];\n"
                               "    fma.rn.f32 %f1, %f2, %f3, %f4;\n"
                               "    @%p1 bra $v_loop;\n"
                               "    ret;\n"
                               "}\n");
    assert_int_equal(s.hot.work, 32);
    assert_int_equal(s.hot.count, 2);
    assert_int_equal(s.hot.numbers[0], 1);
    assert_int_equal(s.hot.numbers[1], 3);
    assert_int_equal(s.hot.counts.instructions, 5);
    assert_int_equal(s.hot.counts.load_bytes, 6);
}

TEST(a_loop_that_few_launches_come_to_is_marked)
{
    ptx_stats s = ptx_stats_of("{\n"
                               "$outer_loop:      // seldom\n"
                               "$inner_loop:      // 32 elements a lane\n"
                               "    @%p1 bra $inner_loop;\n"
                               "    @%p2 bra $outer_loop;\n"
                               "    ret;\n"
                               "}\n");
    assert_true(s.has_seldom);
    assert_int_equal(s.hot.work, 32);
    s = ptx_stats_of("{\n"
                     "$loop:            // 32 elements a lane\n"
                     "    @%p1 bra $loop;   // seldom\n"
                     "    ret;\n"
                     "}\n");
    assert_false(s.has_seldom);
}
