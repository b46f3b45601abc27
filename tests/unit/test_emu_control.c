/* Divergence and reconvergence, barriers, and warp-wide instructions. */
#include "test_arena.h"
#include "test_emu_run.h"

#define STORE "cvt.u64.u32 %l1, %r1;\nst.global.u64 [%slot], %l1;\n"

TEST(nested_ifs_diverge_and_reconverge)
{
    run r = { .text =
                  KERNEL("setp.lt.u32 %p1, %t, 8; and.b32 %r2, %t, 1; setp.eq.u32 %p2, %r2, 1;\n"
                         "@!%p1 bra $else;\n"
                         "@!%p2 bra $even; mov.u32 %r1, 1; bra $meet;\n"
                         "$even: mov.u32 %r1, 2; bra $meet;\n"
                         "$else: setp.lt.u32 %p3, %t, 24; mov.u32 %r1, 3; @%p3 bra $meet;\n"
                         "and.b32 %r2, %t, 3; setp.eq.u32 %p2, %r2, 1; mov.u32 %r1, 5;\n"
                         "@%p2 mov.u32 %r1, 4;\n"
                         "$meet: activemask.b32 %r3; setp.ne.u32 %p4, %r3, 0xffffffff;\n"
                         "@%p4 trap;\n" STORE) };
    run_well(&r);
    expect_each(&r, 32, t < 8 ? (t % 2 ? 1 : 2) : t < 24 ? 3 : t % 4 == 1 ? 4 : 5);
}

TEST(lanes_that_leave_a_loop_wait_for_the_others)
{
    run r = { .text = KERNEL("mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
                             "$loop: add.u32 %r1, %r1, %r2; setp.ge.u32 %p1, %r2, %t;\n"
                             "@%p1 bra $out; add.u32 %r2, %r2, 1; bra $loop;\n"
                             "$out: shfl.sync.idx.b32 %r3, %r1, 31, 31, 0xffffffff;\n"
                             "setp.ne.u32 %p2, %r3, 496; @%p2 trap;\n" STORE) };
    run_well(&r);
    expect_each(&r, 32, t * (t + 1) / 2);
}

TEST(nested_loops_have_a_trip_count_per_lane)
{
    run r = { .text = KERNEL("rem.u32 %r5, %t, 5; rem.u32 %r6, %t, 3; mov.u32 %r1, 7;\n"
                             "mov.u32 %r2, 0;\n"
                             "$outer: setp.ge.u32 %p1, %r2, %r5; @%p1 bra $end;\n"
                             "mov.u32 %r3, 0;\n"
                             "$inner: setp.ge.u32 %p2, %r3, %r6; @%p2 bra $next;\n"
                             "add.u32 %r1, %r1, 10; add.u32 %r3, %r3, 1; bra $inner;\n"
                             "$next: add.u32 %r2, %r2, 1; bra $outer;\n"
                             "$end:\n" STORE) };
    run_well(&r);
    expect_each(&r, 32, (t % 5) * (t % 3) * 10 + 7);
}

TEST(lanes_that_return_early_do_not_participate)
{
    run r = { .text = KERNEL("setp.lt.u32 %p1, %t, 10; @%p1 ret; activemask.b32 %r1;\n" STORE) };
    run_well(&r);
    expect_each(&r, 32, t < 10 ? UINT64_MAX : 0xfffffc00);
}

TEST(lanes_reconverge_after_a_loop_that_others_return_from)
{
    run r = { .text = KERNEL("and.b32 %r4, %t, 1; setp.eq.u32 %p3, %r4, 1; mov.u32 %r2, 0;\n"
                             "$loop: setp.gt.u32 %p1, %r2, %t; @%p1 bra $out;\n"
                             "setp.eq.and.u32 %p2, %r2, %t, %p3; @%p2 bra $gone;\n"
                             "add.u32 %r2, %r2, 1; bra $loop;\n"
                             "$gone: ret;\n"
                             "$out: activemask.b32 %r1; popc.b32 %r1, %r1;\n" STORE) };
    run_well(&r);
    expect_each(&r, 32, t % 2 ? UINT64_MAX : 16);
}

TEST(code_after_forward_and_backward_jumps_runs_in_order)
{
    run r = { .text = KERNEL("mov.u32 %r1, %t; bra.uni $b;\n$a: bra $c;\n"
                             "$b: add.u32 %r1, %r1, 1; bra $a;\n$c:\n" STORE) };
    run_well(&r);
    expect_each(&r, 32, t + 1);
}

TEST(labels_and_registers_of_an_inner_scope_hide_outer_ones)
{
    run r = { .text = KERNEL(
                  "mov.u32 %r1, %t;\n"
                  "{ .reg .b32 %r<3>; mov.u32 %r1, 100; bra $x; mov.u32 %r1, 5; $x: }\n"
                  "{ .reg .b32 x; mov.u32 x, 1; bra $x; trap; $x: add.u32 %r1, %r1, x; }\n"
                  "{ .reg .b32 %r1; mov.u32 %r1, 100; { .reg .b32 %r<3>; mov.u32 %r1, 200; }\n"
                  "setp.ne.u32 %p1, %r1, 100; @%p1 trap; }\n" STORE) };
    run_well(&r);
    expect_each(&r, 32, t + 1);
}

TEST(a_barrier_makes_writes_of_all_warps_visible)
{
    run r = { .threads = 256,
              .text = KERNEL(
                  ".shared .align 4 .b8 tile[1024];\n"
                  "mov.u32 %r2, tile; shl.b32 %r3, %t, 2; add.u32 %r4, %r2, %r3;\n"
                  "st.shared.u32 [%r4], %t; bar.sync 0; sub.u32 %r5, 1020, %r3;\n"
                  "add.u32 %r5, %r5, %r2; ld.shared.u32 %r1, [%r5]; bar.sync 0;\n"
                  "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r1, [%r4];\n" STORE) };
    run_well(&r);
    expect_each(&r, 256, 255 - t);
}

TEST(named_barriers_hold_only_the_threads_they_count)
{
    run r = { .threads = 128,
              .text = KERNEL("setp.lt.u32 %p1, %t, 64; @%p1 bra $low;\n"
                             "bar.sync 2, 64; mov.u32 %r1, 128; bra $store;\n"
                             "$low: bar.sync 1, 64; mov.u32 %r1, 64;\n"
                             "$store: bar.sync 0;\n" STORE) };
    run_well(&r);
    expect_each(&r, 128, t < 64 ? 64 : 128);
}

TEST(bar_arrive_releases_the_consumers)
{
    run r = { .threads = 64,
              .text = KERNEL(".shared .align 4 .u32 value;\n"
                             "setp.ge.u32 %p1, %t, 32; mov.u32 %r1, 42; @%p1 bra $produce;\n"
                             "bar.sync 3, 64; ld.shared.u32 %r1, [value]; bra $store;\n"
                             "$produce: st.shared.u32 [value], 42; bar.arrive 3, 64;\n"
                             "$store:\n" STORE) };
    run_well(&r);
    expect_each(&r, 64, 42);
}

TEST(a_barrier_reduces_predicates_over_the_block)
{
    run r = { .threads = 96,
              .text = KERNEL("setp.ge.u32 %p1, %t, 48; bar.red.popc.u32 %r1, 0, %p1;\n"
                             "bar.red.or.pred %p2, 0, %p1; bar.red.and.pred %p3, 0, %p1;\n"
                             "@%p2 add.u32 %r1, %r1, 100; @%p3 add.u32 %r1, %r1, 1000;\n"
                             "shr.u32 %r2, %t, 5; mov.u32 %r3, 0;\n"
                             "$warp: setp.eq.u32 %p4, %r2, %r3; bar.red.and.pred %p3, 0, %p4;\n"
                             "@%p3 add.u32 %r1, %r1, 1000;\n"
                             "add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, 3; @%p5 bra $warp;\n"
                             "setp.lt.u32 %p4, %t, 96; bar.red.and.pred %p3, 0, %p4;\n"
                             "@!%p3 add.u32 %r1, %r1, 1000;\n" STORE) };
    run_well(&r);
    expect_each(&r, 96, 48 + 100);
}

/* shfl modes: operands b and c of a row, and the source lane of lane i. */
TEST(shuffles_stay_inside_their_segments)
{
    static const struct {
        const char *mode;
        unsigned b, c;
        unsigned from[4];  /* source lanes of lanes 0, 7, 8, 31 */
        unsigned in_range; /* predicate of the four lanes, one bit each */
    } rows[] = {
        { "up", 1, 0, { 0, 6, 7, 30 }, 14 },     { "up", 3, 0x1800, { 0, 4, 8, 28 }, 10 },
        { "down", 1, 31, { 1, 8, 9, 31 }, 7 },   { "down", 2, 0x181f, { 2, 7, 10, 31 }, 5 },
        { "bfly", 8, 31, { 8, 15, 0, 23 }, 15 }, { "bfly", 8, 0x181f, { 0, 7, 0, 23 }, 12 },
        { "idx", 5, 31, { 5, 5, 5, 5 }, 15 },    { "idx", 5, 0x181f, { 5, 5, 13, 29 }, 15 },
        { "idx", 37, 31, { 5, 5, 5, 5 }, 15 },   { "idx", 9, 7, { 0, 7, 8, 31 }, 0 },
    };
    static const unsigned lanes[] = { 0, 7, 8, 31 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2048], shuffle[128];
        snprintf(shuffle, sizeof shuffle, "shfl.sync.%s.b32 %%r1|%%p1, %%t, %u, 0x%x, 0xffffffff;",
                 rows[i].mode, rows[i].b, rows[i].c);
        snprintf(text, sizeof text, "%s%s%s",
                 PTX_HEAD
                 ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
                 ".reg .pred %p1; .reg .b32 %r<4>, %t; .reg .b64 %l1, %slot, %out;\n"
                 "ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %slot, %t, 8, %out;\n",
                 shuffle, "@%p1 add.u32 %r1, %r1, 100;\n" STORE "ret; }");
        run r = { .text = text };
        run_well(&r);
        for (int k = 0; k < 4; k++) {
            uint64_t expected = rows[i].from[k] + (rows[i].in_range >> k & 1 ? 100u : 0u);
            if (r.out[lanes[k]] != expected)
                fail_msg("%s: lane %u has %llu, expected %llu", shuffle, lanes[k],
                         (unsigned long long)r.out[lanes[k]], (unsigned long long)expected);
        }
    }
}

TEST(votes_matches_and_reductions_see_their_members_only)
{
    run r = { .text = KERNEL(
                  "setp.ge.u32 %p1, %t, 16; vote.sync.ballot.b32 %r1, %p1, 0xffffffff;\n"
                  "vote.ballot.sync.b32 %r9, %p1, -1; setp.ne.u32 %p2, %r9, %r1; @%p2 trap;\n"
                  "vote.any.sync.pred %p2, %p1, -1; @!%p2 trap;\n"
                  "vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, %p1, -1;\n"
                  "@!%p2 trap; @%p3 trap;\n"
                  "shr.u32 %r2, %t, 4; match.any.sync.b32 %r3, %r2, -1; popc.b32 %r4, %r3;\n"
                  "setp.ne.u32 %p4, %r4, 16; @%p4 trap;\n"
                  "match.all.sync.b32 %r3|%p4, %r2, -1; @%p4 trap;\n"
                  "redux.sync.add.u32 %r5, %t, -1; setp.ne.u32 %p4, %r5, 496; @%p4 trap;\n"
                  "redux.sync.max.s32 %r5, %t, -1; setp.ne.u32 %p4, %r5, 31; @%p4 trap;\n"
                  "redux.sync.xor.b32 %r5, %t, -1; setp.ne.u32 %p4, %r5, 0; @%p4 trap;\n"
                  "@%p1 bra $high; vote.sync.uni.pred %p5, %p1, 0x0000ffff; @!%p5 trap;\n"
                  "add.u32 %r1, %r1, 1; bra $store;\n"
                  "$high: vote.sync.all.pred %p5, %p1, 0xffff0000; @!%p5 trap;\n"
                  "add.u32 %r1, %r1, 2;\n"
                  "$store:\n" STORE) };
    run_well(&r);
    expect_each(&r, 32, 0xffff0000u + (t < 16 ? 1u : 2u));
}

/* A warp sum in a block of 20 threads, 4 of which return early. The expected value is lane 0's. */
#define SUM                                                                                        \
    "mov.u32 %r1, %t; mov.u32 %r2, 1;\n"                                                           \
    "$step: xor.b32 %r3, %t, %r2; shfl.sync.idx.b32 %r4, %r1, %r3, 31, -1;\n"                      \
    "add.u32 %r1, %r1, %r4; shl.b32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 16; @%p2 bra $step;\n"      \
    "bar.warp.sync -1; vote.sync.all.pred %p3, %p1, -1; @%p3 trap; vote.sync.ballot.b32 %r5, %p1," \
    " -1;\nsetp.ne.u32 %p3, %r5, 0; @%p3 trap; match.all.sync.b32 %r6|%p3, %r5, -1; @!%p3 trap;\n" \
    "setp.ne.u32 %p3, %r6, 0xffff; @%p3 trap; redux.sync.add.u32 %r7, 1, -1;\n"                    \
    "setp.ne.u32 %p3, %r7, 16; @%p3 trap; mov.u64 %l1, -2; cvt.u64.u32 %l2, %r1;\n"                \
    "setp.eq.u32 %p4, %t, 0; selp.b64 %l1, %l2, %l1, %p4; st.global.u64 [%slot], %l1;\n"

TEST(ended_or_absent_members_are_not_waited_for)
{
    static const char *const kernels[] = {
        KERNEL("setp.ge.u32 %p1, %t, 16; @%p1 ret;\n" SUM),
        KERNEL("setp.ge.u32 %p1, %t, 16; @%p1 bra $end;\n" SUM
               "$end:"), /* returns as compiled by nvcc */
        KERNEL("setp.ge.u32 %p1, %t, 16; @!%p1 bra $go;\nbra $end;\n$go:\n" SUM "$end:"),
        /* the returning lanes work first, and branch to the common end while the others are in the
         * loop */
        KERNEL("setp.ge.u32 %p1, %t, 16; @%p1 bra $late;\n" SUM "bra $end;\n"
               "$late: add.u32 %r9, %t, 1; setp.eq.u32 %p5, %r9, 0; @%p5 trap;\n$end:"),
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        run r = { .text = kernels[i], .threads = 20 };
        run_well(&r);
        expect_each(&r, 20, t == 0 ? 120 : t < 16 ? UINT64_MAX - 1 : UINT64_MAX);
    }
}

TEST(lanes_synchronize_at_different_lines_and_times)
{
    static const char *const kernels[] = {
        KERNEL(
            ".shared .align 4 .b8 tile[128]; mov.u32 %r9, tile; mad.lo.u32 %r8, %t, 4, %r9;\n"
            "setp.lt.u32 %p1, %t, 16; @%p1 bra $low;\n"
            "st.shared.u32 [%r8], %t; bar.warp.sync -1; bra $read;\n"
            "$low: st.shared.u32 [%r8], %t; bar.warp.sync -1;\n"
            "$read: sub.u32 %r1, 31, %t; mad.lo.u32 %r1, %r1, 4, %r9; ld.shared.u32 %r1, [%r1];\n"
            "bar.sync 0;\n" STORE),
        /* lane i reaches the exchange after i iterations */
        KERNEL("mov.u32 %r2, 0;\n$next: setp.ge.u32 %p1, %r2, %t; @%p1 bra $out;\n"
               "add.u32 %r2, %r2, 1; bra $next;\n"
               "$out: shfl.sync.bfly.b32 %r1, %r2, 31, 31, -1; bar.sync 0;\n" STORE),
        /* halves that reach the same exchange by different paths */
        KERNEL("setp.lt.u32 %p1, %t, 16; mov.u32 %r2, 0;\n"
               "$again: @%p1 bra $meet;\nadd.u32 %r2, %r2, 1; setp.eq.u32 %p2, %r2, 3;\n"
               "@!%p2 bra $again;\n$meet: shfl.sync.bfly.b32 %r1, %t, 31, 31, -1; bar.sync "
               "0;\n" STORE),
        /* a guarded exchange that the other lanes reach in the next iteration */
        KERNEL("setp.lt.u32 %p1, %t, 16; mov.u32 %r2, 0;\n"
               "$again: @%p1 shfl.sync.bfly.b32 %r1, %t, 31, 31, -1; @%p1 bra $end;\n"
               "setp.lt.u32 %p1, %t, 32; bra $again;\n$end: bar.sync 0;\n" STORE),
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        run r = { .text = kernels[i] };
        run_well(&r);
        expect_each(&r, 32, t ^ 31);
    }
}

TEST(a_spinning_warp_lets_other_warps_run)
{
    run r = { .text = KERNEL("setp.lt.u32 %p1, %t, 32; @%p1 bra $wait;\n"
                             "st.volatile.global.u32 [%out+4096], 7; bra $end;\n"
                             "$wait: ld.volatile.global.u32 %r1, [%out+4096];\n"
                             "setp.ne.u32 %p2, %r1, 7; @%p2 bra $wait;\n$end:"),
              .threads = 64,
              .limit = 10000000 };
    run_well(&r);
}

TEST(a_lane_that_holds_a_lock_runs_while_others_spin)
{
    static const emu_checks checks = { .actions = { [EMU_CHECK_BARRIER] = EMU_PASSES } };
    run r = { .text = KERNEL("setp.ne.u32 %p1, %t, 0; @%p1 bra $ready;\n"
                             "st.volatile.global.u32 [%out+4096], 0; st.volatile.global.u32 "
                             "[%out+4104], 0;\n$ready: bar.sync 0;\n"
                             "$try: atom.global.cas.b32 %r1, [%out+4096], 0, 1;\n"
                             "setp.ne.u32 %p1, %r1, 0; @%p1 bra $try;\n"
                             "ld.volatile.global.u32 %r2, [%out+4104]; add.u32 %r2, %r2, 1;\n"
                             "st.volatile.global.u32 [%out+4104], %r2; membar.gl;\n"
                             "atom.global.exch.b32 %r1, [%out+4096], 0; bar.sync 0;\n"),
              .threads = 64,
              .checks = &checks,
              .limit = 100000000 };
    run_well(&r);
    assert_int_equal((uint32_t)r.out[513], 64);
}

ARENA_TEST(special_registers_identify_the_thread)
{
    static uint32_t out[2 * 3 * 2 * 40];
    const char *text = PTX_HEAD
        ".visible .entry k(.param .u64 out) .maxntid 80 {\n"
        ".reg .b32 %r<20>; .reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;\n"
        "mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y; mad.lo.u32 %r5, %r2, %r3, %r1;\n"
        "mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %nctaid.x;\n"
        "mad.lo.u32 %r9, %r7, %r8, %r6; mul.lo.u32 %r10, %r3, %r4;\n"
        "mad.lo.u32 %r11, %r9, %r10, %r5; mul.wide.u32 %rd2, %r11, 4; add.u64 %rd1, %rd1, %rd2;\n"
        "mov.u32 %r12, %laneid; mov.u32 %r13, %warpid; shl.b32 %r13, %r13, 5;\n"
        "add.u32 %r12, %r12, %r13; mov.u32 %r14, %lanemask_lt; popc.b32 %r14, %r14;\n"
        "shl.b32 %r14, %r14, 16; or.b32 %r12, %r12, %r14; st.global.u32 [%rd1], %r12; ret; }";
    emu_memory *m = emu_memory_new(NULL);
    emu_report report;
    memset(out, 0xff, sizeof out);
    uint64_t to = emu_map(m, out, sizeof out, false);
    const void *params[] = { &to };
    emu_launch_config config = { .module = emu_load(a, text, strlen(text), &report),
                                 .entry = "k",
                                 .grid = { 2, 3, 1 },
                                 .block = { 20, 2, 1 },
                                 .params = params,
                                 .param_count = 1 };
    assert_non_null(config.module);
    assert_true(emu_launch(m, &config, NULL, &report));
    for (unsigned i = 0; i < 6 * 40; i++)
        assert_int_equal(out[i], (i % 40 % 32) << 16 | i % 40);
    emu_memory_free(m);
}

TEST(a_cluster_is_one_block_and_driver_registers_are_zero)
{
    run r = { .text = KERNEL(
                  "mov.u32 %r1, %clusterid.x; mov.u32 %r2, %ctaid.x; sub.u32 %r1, %r1, %r2;\n"
                  "mov.u32 %r3, %cluster_ctarank; add.u32 %r1, %r1, %r3;\n"
                  "mov.u32 %r3, %cluster_nctaid.y; add.u32 %r1, %r1, %r3;\n"
                  "mov.u32 %r3, %nclusterid.x; add.u32 %r1, %r1, %r3;\n"
                  "mov.u32 %r3, %envreg5; add.u32 %r1, %r1, %r3;\n"
                  "mov.u32 %r3, %reserved_smem_offset_begin; add.u32 %r1, %r1, %r3;\n" STORE),
              .blocks = 3 };
    run_well(&r);
    for (int i = 0; i < 32; i++)
        assert_int_equal(r.out[i], 4);
}

TEST(a_version_is_one_digit_a_dot_and_one_digit)
{
    static const struct {
        const char *text;
        bool known;
    } versions[] = { { "3.0", true },   { "9.0", true },   { "8.7", true }, { "2.9", false },
                     { "10.0", false }, { "99.0", false }, { "8.", false }, { "8.70", false },
                     { "8e1", false },  { "8", false } };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        arena *a = arena_new();
        emu_report report;
        const char *text = arena_format(a, ".version %s\n.target sm_80\n", versions[i].text);
        if ((emu_load(a, text, strlen(text), &report) != NULL) != versions[i].known)
            fail_msg("version %s", versions[i].text);
        arena_free(a);
    }
}

ARENA_TEST(a_gemv_with_vector_loads_gives_the_sums)
{
    enum { N = 5, K = 4096 };
    static float w[N][K], x[K], y[N];
    const char *text =
        ".version 6.3\n.target sm_75\n.address_size 64\n"
        ".visible .entry f32_gemv(\n    .param .u64 y,\n    .param .u64 w,\n    .param .u64 x)\n"
        ".reqntid 32, 1, 1\n{\n"
        "    .reg .pred  %p<3>;\n    .reg .b32   %r<4>;\n    .reg .f32   %f<11>;\n"
        "    .reg .b64   %rd<9>;\n"
        "    ld.param.u64        %rd1, [y];\n    ld.param.u64        %rd2, [w];\n"
        "    ld.param.u64        %rd3, [x];\n"
        "    mov.u32             %r1, %ctaid.x;              // row\n"
        "    mov.u32             %r2, %tid.x;                // lane\n"
        "    mul.wide.u32        %rd4, %r2, 16;\n    add.u64             %rd5, %rd3, %rd4;\n"
        "    mad.wide.u32        %rd6, %r1, 16384, %rd2;\n    add.u64 %rd6, %rd6, %rd4;\n"
        "    mov.f32             %f1, 0f00000000;\n    mov.u32             %r3, 0;\n"
        "$column_loop:\n"
        "    ld.global.nc.v4.f32 {%f2, %f3, %f4, %f5}, [%rd6];\n"
        "    ld.global.nc.v4.f32 {%f6, %f7, %f8, %f9}, [%rd5];\n"
        "    fma.rn.f32 %f1, %f2, %f6, %f1;\n    fma.rn.f32 %f1, %f3, %f7, %f1;\n"
        "    fma.rn.f32 %f1, %f4, %f8, %f1;\n    fma.rn.f32 %f1, %f5, %f9, %f1;\n"
        "    add.u64 %rd5, %rd5, 512;\n    add.u64 %rd6, %rd6, 512;\n    add.u32 %r3, %r3, 1;\n"
        "    setp.lt.u32 %p1, %r3, 32;\n    @%p1 bra $column_loop;\n"
        "    shfl.sync.bfly.b32 %f10, %f1, 16, 31, 0xffffffff; add.f32 %f1, %f1, %f10;\n"
        "    shfl.sync.bfly.b32 %f10, %f1, 8, 31, 0xffffffff; add.f32 %f1, %f1, %f10;\n"
        "    shfl.sync.bfly.b32 %f10, %f1, 4, 31, 0xffffffff; add.f32 %f1, %f1, %f10;\n"
        "    shfl.sync.bfly.b32 %f10, %f1, 2, 31, 0xffffffff; add.f32 %f1, %f1, %f10;\n"
        "    shfl.sync.bfly.b32 %f10, %f1, 1, 31, 0xffffffff; add.f32 %f1, %f1, %f10;\n"
        "    setp.ne.u32 %p2, %r2, 0;\n    @%p2 bra $done;\n"
        "    mul.wide.u32 %rd7, %r1, 4;\n    add.u64 %rd8, %rd1, %rd7;\n"
        "    st.global.f32 [%rd8], %f1;\n$done:\n    ret;\n}\n";
    for (int k = 0; k < K; k++) {
        x[k] = (float)(k % 7) - 3;
        for (int n = 0; n < N; n++)
            w[n][k] = (float)((k * (n + 3)) % 11) * 0.25f;
    }
    emu_memory *m = emu_memory_new(NULL);
    emu_report report;
    uint64_t to_y = emu_map(m, y, sizeof y, false), to_w = emu_map(m, w, sizeof w, true);
    uint64_t to_x = emu_map(m, x, sizeof x, true);
    const void *params[] = { &to_y, &to_w, &to_x };
    emu_stats stats = { 0 };
    emu_launch_config config = { .module = emu_load(a, text, strlen(text), &report),
                                 .entry = "f32_gemv",
                                 .grid = { N, 1, 1 },
                                 .block = { 32, 1, 1 },
                                 .params = params,
                                 .param_count = 3 };
    assert_non_null(config.module);
    assert_true(emu_launch(m, &config, &stats, &report));
    for (int n = 0; n < N; n++) {
        float sum = 0;
        for (int k = 0; k < K; k++)
            sum += w[n][k] * x[k];
        assert_true(y[n] == sum); /* small multiples of 1/4: the sum is exact in every order */
    }
    assert_true(emu_written(m, to_y, sizeof y));
    assert_int_equal(stats.global_load_bytes, N * 2 * K * 4);
    assert_int_equal(stats.global_load_sectors, N * 2 * K * 4 / 32);
    assert_int_equal(stats.global_store_bytes, N * 4);
    assert_int_equal(emu_loaded(m, to_w), N * K * 4);
    assert_int_equal(emu_loaded(m, to_x), N * K * 4);
    emu_memory_free(m);
}
