/* Every mistake that compute-sanitizer's four tools find (memcheck, racecheck, initcheck,
 * synccheck) must be found here, too. The correct forms beside them must pass. */
#include "test_emu_bad.h"

/* clang-format off */
TEST_FAULTS(memcheck_one_byte_outside_is_outside,
    { "ld.global.u8 %r1, [%in+-1];", 0, 0, EMU_OUT_OF_BOUNDS, "1 bytes before the start of an allocation of 4096", 32 },
    { "ld.global.u8 %r1, [%in+4096];", 0, 0, EMU_OUT_OF_BOUNDS, "0 bytes past the end of an allocation of 4096", 32 },
    { "st.global.u8 [%out+-1], %t;", 0, 0, EMU_OUT_OF_BOUNDS, "1 bytes before the start", 32 },
    { "setp.eq.u32 %p1, %t, 30;\n@%p1 st.global.u8 [%out+8192], %t;", 1, 30, EMU_OUT_OF_BOUNDS, "0 bytes past the end", 32 },
    { TILE "ld.shared.u8 %r1, [%r9+-1];", 2, 0, EMU_OUT_OF_BOUNDS, "1 bytes before the start of 'tile'", 32 },
    { TILE "st.shared.u8 [%r9+256], 1;", 2, 0, EMU_OUT_OF_BOUNDS, "0 bytes past the end of 'tile'", 32 },
    { TILE "cvt.u64.u32 %l1, %r9; cvta.shared.u64 %l1, %l1;\nst.u8 [%l1+256], 1;", 3, 0, EMU_OUT_OF_BOUNDS, "past the end of 'tile'", 32 },
    { ".shared .align 4 .b8 odd[6];\nst.shared.u32 [odd+4], 1;", 1, 0, EMU_OUT_OF_BOUNDS, "crosses the end of 'odd' of 6 bytes", 32 },
    { ".local .b8 l[8]; .reg .b32 %a; mov.u32 %a, l;\nst.local.u8 [%a+8], 1;", 1, 0, EMU_OUT_OF_BOUNDS, "past the end of 'l'", 32 },
    { ".local .b8 l[8]; .reg .b32 %a; mov.u32 %a, l;\nst.local.u8 [%a+-1], 1;", 1, 0, EMU_OUT_OF_BOUNDS, "before the start of 'l'", 32 },
    { TILE "atom.shared.add.u32 %r1, [%r9+256], 1;", 2, 0, EMU_OUT_OF_BOUNDS, "atomic", 32 },
    { TILE "cp.async.ca.shared.global [%r8+256], [%in], 4;", 2, 0, EMU_OUT_OF_BOUNDS, "past the end of 'tile'", 32 },
    { TILE "cp.async.ca.shared.global [%r8], [%in+4096], 4;", 2, 0, EMU_OUT_OF_BOUNDS, "global load", 32 },
    { TILE "cp.async.ca.shared.global [%r8], [%in+4092], 4, 3;\ncp.async.ca.shared.global [%r8+128], [%in+4096], 4, 1;", 3, 0,
      EMU_OUT_OF_BOUNDS, "0 bytes past the end", 32 },
    { "mov.u64 %l1, table; ld.const.u32 %r1, [%in];", 0, 0, EMU_SYNTAX, "'table' is not declared", 32 },
    { ".const .b32 table;\nld.const.u32 %r1, [%in];", 1, 0, EMU_OUT_OF_BOUNDS, "in no .const variable", 32 })

TEST_FAULTS(memcheck_an_access_is_aligned_to_its_size,
    { "ld.global.u16 %r1, [%in+1];", 0, 0, EMU_MISALIGNED, "not aligned to 2 bytes", 32 },
    { "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%in+8];", 0, 0, EMU_MISALIGNED, "not aligned to 16 bytes", 32 },
    { TILE "st.shared.u32 [%r8+2], 1;", 2, 0, EMU_MISALIGNED, "shared store", 32 },
    { ".local .align 8 .b8 l[16];\nst.local.u64 [l+4], %l1;", 1, 0, EMU_UNDEFINED_REGISTER, "%l1", 32 },
    { ".local .align 8 .b8 l[16]; mov.u64 %l1, 0;\nst.local.u64 [l+4], %l1;", 1, 0, EMU_MISALIGNED, "local store", 32 },
    { "atom.global.add.u32 %r1, [%out+2], 1;", 0, 0, EMU_MISALIGNED, "atomic", 32 },
    { TILE "cp.async.ca.shared.global [%r8], [%in+2], 4;", 2, 0, EMU_MISALIGNED, "global load", 32 },
    { TILE "cp.async.cg.shared.global [%r8], [%in], 16;", 2, 1, EMU_MISALIGNED, "shared store", 2 })

#define WARPS TILE "and.b32 %r1, %t, 31; mad.lo.u32 %r1, %r1, 4, %r9; setp.lt.u32 %p1, %t, 32;\n"

TEST_FAULTS(racecheck_warps_need_a_barrier_to_share,
    { WARPS "st.shared.u32 [%r1], %t;", 3, 32, EMU_RACE, "thread 0 of the block wrote", 64 },
    { WARPS "@%p1 st.shared.u32 [%r1], %t;\n@!%p1 ld.shared.u32 %r2, [%r1];", 4, 32, EMU_RACE, "load at byte 0 of 'tile', which thread 0 of the block wrote", 64 },
    { WARPS "@%p1 st.shared.u32 [%r1], %t;\nbar.sync 0;\n@!%p1 ld.shared.u32 %r2, [%r1];\n@%p1 st.shared.u32 [%r1], %t;", 6, 0,
      EMU_RACE, "thread 32 of the block read", 64 },
    /* a barrier that only the writer's warp has reached */
    { WARPS "@!%p1 bra $x;\nst.shared.u32 [%r1], %t; bar.sync 1, 32;\n$x: @!%p1 ld.shared.u32 %r2, [%r1];", 5, 32, EMU_RACE, "thread 0 of the block wrote", 64 },
    /* a byte of a word that another warp writes whole */
    { WARPS "@%p1 st.shared.u8 [%r1+3], 1;\n@!%p1 st.shared.u32 [%r1], 1;", 4, 32, EMU_RACE, "thread 0 of the block wrote", 64 },
    { WARPS "@%p1 st.shared.u32 [%r1], %t;\nbar.warp.sync -1;\n@!%p1 atom.shared.add.u32 %r2, [%r1], 1;", 5, 32, EMU_RACE, "atomic", 64 })

TEST_FAULTS(racecheck_lanes_need_a_synchronization_to_share,
    { TILE "st.shared.u32 [%r8], %t;\nxor.b32 %r1, %r8, 4;\nld.shared.u32 %r2, [%r1];", 4, 0, EMU_RACE, "thread 1 of the block wrote", 32 },
    { TILE "st.shared.u32 [%r8], %t;\nxor.b32 %r1, %r8, 4;\nst.shared.u32 [%r1], %t;", 4, 0, EMU_RACE, "thread 1 of the block wrote", 32 },
    { TILE "st.shared.u32 [%r8], %t; bar.warp.sync -1; xor.b32 %r1, %r8, 4;\nld.shared.u32 %r2, [%r1];\nst.shared.u32 [%r8], %r2;", 4, 0,
      EMU_RACE, "thread 1 of the block read", 32 },
    { TILE "st.shared.u32 [tile], %t;", 2, 1, EMU_RACE, "thread 0 of the block wrote", 32 },
    /* each half of the warp synchronizes by itself and then reads the other half's values */
    { TILE "st.shared.u32 [%r8], %t; setp.lt.u32 %p1, %t, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p1;\nbar.warp.sync %r1;\n"
      "xor.b32 %r3, %r8, 64;\nld.shared.u32 %r4, [%r3];", 5, 0, EMU_RACE, "thread 16 of the block wrote", 32 },
    /* shuffles and votes do not order memory accesses */
    { TILE "st.shared.u32 [%r8], %t; shfl.sync.bfly.b32 %r1, %t, 1, 31, -1;\nxor.b32 %r1, %r8, 4; ld.shared.u32 %r2, [%r1];", 3, 0, EMU_RACE, "thread 1 of the block wrote", 32 },
    { TILE "st.shared.u32 [%r8], %t; setp.eq.u32 %p1, %t, 0;\nvote.sync.any.pred %p2, %p1, -1; xor.b32 %r1, %r8, 4;\nld.shared.u32 %r2, [%r1];", 4, 0,
      EMU_RACE, "thread 1 of the block wrote", 32 },
    /* a lane outside of the synchronizing mask */
    { TILE "st.shared.u32 [%r8], %t; setp.ne.u32 %p1, %t, 31; @%p1 bar.warp.sync 0x7fffffff;\nadd.u32 %r1, %t, 31; and.b32 %r1, %r1, 31; mad.lo.u32 %r1, %r1, 4, %r9;\n"
      "ld.shared.u32 %r2, [%r1];", 4, 0, EMU_RACE, "thread 31 of the block wrote", 32 })

TEST_FAULTS(racecheck_an_asynchronous_copy_needs_a_wait,
    { TILE "cp.async.ca.shared.global [%r8], [%in], 4;\nld.shared.u32 %r1, [%r8];", 3, 0, EMU_RACE, "to which a cp.async of thread 0 of the block is in flight", 32 },
    { TILE "cp.async.ca.shared.global [%r8], [%in], 4;\ncp.async.commit_group; cp.async.wait_group 1;\nld.shared.u32 %r1, [%r8];", 4, 0,
      EMU_RACE, "in flight", 32 },
    { TILE "cp.async.ca.shared.global [%r8], [%in], 4;\ncp.async.wait_group 0;\nld.shared.u32 %r1, [%r8];", 4, 0, EMU_RACE, "in flight", 32 },
    { TILE "cp.async.ca.shared.global [%r8], [%in], 4;\nst.shared.u32 [%r8], 1;", 3, 0, EMU_RACE, "store", 32 },
    { TILE "cp.async.ca.shared.global [%r8], [%in], 4; bar.sync 0;\nxor.b32 %r1, %r8, 4;\nld.shared.u32 %r2, [%r1];", 4, 0, EMU_RACE, "cp.async of thread 1", 32 },
    { TILE "cp.async.ca.shared.global [%r8], [%in], 4; cp.async.wait_all;\nxor.b32 %r1, %r8, 4;\nld.shared.u32 %r2, [%r1];", 4, 0,
      EMU_RACE, "thread 1 of the block wrote", 32 },
    { TILE "cp.async.ca.shared.global [tile], [%in], 4;", 2, 1, EMU_RACE, "cp.async of thread 0", 32 },
    { TILE "st.shared.u32 [%r8], 1; bar.sync 0; xor.b32 %r1, %r8, 4; ld.shared.u32 %r2, [%r1];\ncp.async.ca.shared.global [%r8], [%in], 4;", 3, 0,
      EMU_RACE, "thread 1 of the block read", 32 })

TEST_FAULTS(initcheck_memory_is_written_before_it_is_read,
    { TILE "ld.shared.u32 %r1, [%r8];", 2, 0, EMU_UNINITIALISED, "byte 0 of 'tile'", 32 },
    { TILE "setp.lt.u32 %p1, %t, 7; @%p1 st.shared.u32 [%r8], 1; bar.sync 0;\nld.shared.u32 %r1, [%r8];", 3, 7, EMU_UNINITIALISED, "byte 28 of 'tile'", 32 },
    { TILE "st.shared.u16 [%r8], 1;\nld.shared.u32 %r1, [%r8];", 3, 0, EMU_UNINITIALISED, "", 32 },
    { TILE "red.shared.add.u32 [tile], 1;", 2, 0, EMU_UNINITIALISED, "atomic", 32 },
    { ".local .align 4 .b8 l[8];\nld.local.u32 %r1, [l+4];", 1, 0, EMU_UNINITIALISED, "local load", 32 })

TEST_FAULTS(synccheck_barriers_are_reached_by_all_they_count,
    { "setp.lt.u32 %p1, %t, 16;\n@%p1 bra $x;\nbar.sync 0;\n$x:", 2, 0, EMU_BARRIER, "reached by only lanes 0xffff0000", 32 },
    { "setp.lt.u32 %p1, %t, 16;\n@%p1 bar.sync 0;", 1, 16, EMU_BARRIER, "reached by only lanes 0x0000ffff", 32 },
    { "setp.lt.u32 %p1, %t, 32;\n@%p1 bar.sync 0;", 1, 0, EMU_BARRIER, "waits for 64 threads, but only 32 arrive", 64 },
    { "setp.eq.u32 %p1, %t, 3;\n@%p1 exit;\nbar.sync 0;", 2, 3, EMU_BARRIER, "has ended", 32 },
    { "bar.sync 1, 96;", 0, 0, EMU_BARRIER, "waits for 96 threads, but the block has 64", 64 },
    { "bar.sync 1, 48;", 0, 0, EMU_BARRIER, "48 threads, which is not a multiple of 32", 64 },
    { "bar.sync 16;", 0, 0, EMU_BARRIER, "barrier 16 does not exist", 32 },
    { "setp.lt.u32 %p1, %t, 32;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 1, 32;", 2, 32, EMU_BARRIER, "for 32 threads here, but for 64", 64 },
    { "setp.lt.u32 %p1, %t, 16;\n@%p1 bra.uni $x;\nadd.u32 %r1, %t, 1;\n$x:", 1, 16, EMU_BARRIER, "marked .uni", 32 },
    { "setp.lt.u32 %p1, %t, 16;\n@%p1 ret.uni;", 1, 16, EMU_BARRIER, "marked .uni", 32 })

TEST_FAULTS(synccheck_masks_name_the_lanes_that_take_part,
    { "setp.lt.u32 %p1, %t, 16;\n@%p1 shfl.sync.down.b32 %r1, %t, 1, 31, -1;\n@!%p1 shfl.sync.down.b32 %r1, %t, 1, 31, -1;", 1, 0,
      EMU_INACTIVE_LANE, "lane 16, which does not participate: it waits at line 16", 32 },
    { "setp.lt.u32 %p1, %t, 16;\n@!%p1 bra $x;\nvote.sync.ballot.b32 %r1, %p1, -1;\n$x: bar.sync 0;", 2, 0,
      EMU_INACTIVE_LANE, "lane 16, which does not participate: it is at line 17", 32 },
    { "match.any.sync.b32 %r1, %t, 0xfffffff0;", 0, 0, EMU_INACTIVE_LANE, "lane 0 is not in its own member mask", 32 },
    { "redux.sync.add.u32 %r1, %t, 0x0fffffff;", 0, 28, EMU_INACTIVE_LANE, "lane 28 is not in its own member mask", 32 },
    { "setp.lt.u32 %p1, %t, 16; selp.b32 %r2, -1, 0xffff0000, %p1;\nbar.warp.sync %r2;", 1, 0, EMU_INACTIVE_LANE, "names lane 16, whose own member mask is 0xffff0000", 32 },
    { "setp.lt.u32 %p1, %t, 4;\n@%p1 shfl.sync.idx.b32 %r1, %t, 9, 31, 0xf;", 1, 0, EMU_INACTIVE_LANE, "reads from lane 9", 32 })
/* clang-format on */

TEST(correct_forms_of_sharing_are_no_fault)
{
    static const char *const good[] = {
        KERNEL(TILE "st.shared.u32 [%r8], %t; bar.warp.sync -1;\n"
                    "xor.b32 %r1, %r8, 4; ld.shared.u32 %r2, [%r1];"),
        /* halves that synchronize by themselves and share nothing with each other */
        KERNEL(TILE "st.shared.u32 [%r8], %t; setp.lt.u32 %p1, %t, 16;\n"
                    "selp.b32 %r1, 0xffff, 0xffff0000, %p1; bar.warp.sync %r1;\n"
                    "xor.b32 %r2, %r8, 4; ld.shared.u32 %r3, [%r2]; bar.warp.sync %r1;\n"
                    "st.shared.u32 [%r8], %r3;"),
        /* quarters synchronize, then their leaders do: a leader sees the other quarters' stores */
        KERNEL(TILE "st.shared.u32 [%r8], %t; shr.u32 %r1, %t, 3; shl.b32 %r1, %r1, 3;\n"
                    "shl.b32 %r1, 255, %r1; bar.warp.sync %r1; and.b32 %r2, %t, 7;\n"
                    "setp.ne.u32 %p1, %r2, 0; @%p1 bra $end; bar.warp.sync 0x01010101;\n"
                    "sub.u32 %r3, 31, %t; mad.lo.u32 %r3, %r3, 4, %r9; ld.shared.u32 %r4, [%r3];\n"
                    "$end:"),
        /* two groups of copies: the older is complete while the newer is in flight */
        KERNEL(TILE "cp.async.ca.shared.global [%r8], [%out], 4; cp.async.commit_group;\n"
                    "cp.async.ca.shared.global [%r8+128], [%out+4], 4; cp.async.commit_group;\n"
                    "cp.async.wait_group 1; bar.sync 0; xor.b32 %r1, %r8, 4;\n"
                    "ld.shared.u32 %r2, [%r1]; cp.async.wait_all; bar.sync 0;\n"
                    "ld.shared.u32 %r2, [%r1+128];"),
        /* copies with a source size below the copy size, or with ignore-src: the rest is zero */
        KERNEL(TILE "mov.u32 %r2, 0; setp.eq.u32 %p1, %t, %t;\n"
                    "cp.async.ca.shared.global [%r8], [%in], 4, %r2;\n"
                    "cp.async.ca.shared.global [%r8+128], [%in], 4, %p1; cp.async.wait_all;\n"
                    "ld.shared.u32 %r1, [%r8]; ld.shared.u32 %r3, [%r8+128];\n"
                    "or.b32 %r1, %r1, %r3; setp.ne.u32 %p2, %r1, 0; @%p2 trap;"),
        KERNEL("setp.ge.u32 %p1, %t, 0; @%p1 bra.uni $x; trap; $x:"),
        /* strong stores are not reads */
        KERNEL(TILE "st.volatile.shared.u32 [%r8], %t; ld.volatile.shared.u32 %r1, [%r8];"),
        KERNEL(TILE "st.relaxed.cta.shared.u32 [%r8], %t; ld.shared.u32 %r1, [%r8];"),
        KERNEL(TILE "st.release.cta.shared.v2.u8 [%r8], {%r9, %r9}; ld.shared.u8 %r1, [%r8+1];"),
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        run r = { .text = good[i] };
        run_well(&r);
    }
}

/* Warp 3 reads and synchronizes with warp 0, warp 1 does the same, and then warp 0 writes. */
#define READ_IN_PAIRS(before_read)                                                          \
    KERNEL(TILE "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [tile], 7; bar.sync 0;\n"       \
                "shr.u32 %r1, %t, 5; setp.eq.u32 %p2, %r1, 3; setp.eq.u32 %p3, %r1, 1;\n"   \
                "@%p2 bra $three; @%p3 bra $one; setp.ne.u32 %p4, %r1, 0; @%p4 bra $end;\n" \
                "bar.sync 1, 64; bar.sync 2, 64; @%p1 st.shared.u32 [tile], 9; bra $end;\n" \
                "$three: ld.shared.u32 %r3, [tile]; bar.sync 1, 64; bra $end;\n"            \
                "$one: " before_read "ld.shared.u32 %r3, [tile]; bar.sync 2, 64;\n$end:")

TEST(a_fence_or_a_release_does_not_order_shared_memory)
{
    static const char *const good[] = {
        READ_IN_PAIRS(""),
        READ_IN_PAIRS("membar.gl; "),
        READ_IN_PAIRS("red.release.gpu.global.add.u32 [%out], 1; "),
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        run r = { .text = good[i], .threads = 128 };
        run_well(&r);
    }
}

TEST(leaks_are_live_allocations_at_the_end)
{
    emu_memory *m = emu_memory_new(NULL);
    emu_allocation list[4] = { 0 };
    uint64_t total, a = emu_alloc(m, 100), b = emu_alloc(m, 7), c = emu_alloc(m, 50);
    assert_int_equal(emu_live(m, list, 4, &total), 3);
    assert_int_equal(total, 157);
    assert_true(emu_free(m, b));
    assert_int_equal(emu_live(m, list, 1, &total), 2);
    assert_int_equal(total, 150);
    assert_int_equal(list[0].address, a);
    assert_int_equal(list[0].size, 100);
    assert_true(emu_free(m, a) && emu_free(m, c));
    assert_int_equal(emu_live(m, NULL, 0, NULL), 0);
    emu_memory_free(m);
}

TEST(freeing_twice_or_inside_of_an_allocation_is_found)
{
    emu_memory *m = emu_memory_new(NULL);
    uint64_t a = emu_alloc(m, 100);
    emu_allocation found;
    uint8_t byte = 0;
    assert_false(emu_free(m, a + 4));
    assert_false(emu_free(m, 0));
    assert_true(emu_find(m, a + 99, &found));
    assert_true(found.address == a && found.size == 100 && !found.freed);
    assert_true(emu_free(m, a));
    assert_false(emu_free(m, a));
    assert_true(emu_find(m, a, &found) && found.freed);
    assert_false(emu_write(m, a, &byte, 1));
    assert_false(emu_read(m, a, &byte, 1));
    assert_true(emu_alloc(m, 100) != a);
    assert_false(emu_find(m, 4096, &found));
    assert_true(emu_alloc(m, SIZE_MAX) == 0);
    emu_memory_free(m);
}

TEST(the_host_stays_inside_of_an_allocation)
{
    emu_memory *m = emu_memory_new(NULL);
    uint64_t a = emu_alloc(m, 100);
    uint8_t bytes[101] = { 0 };
    uint32_t word = 0x01020304;
    assert_true(emu_write(m, a, bytes, 100));
    assert_false(emu_write(m, a, bytes, 101));
    assert_false(emu_write(m, a - 1, bytes, 1));
    assert_false(emu_read(m, a + 1, bytes, 100));
    assert_true(emu_fill(m, a, &word, sizeof word, 25));
    assert_false(emu_fill(m, a, &word, sizeof word, 26));
    assert_false(emu_fill(m, a + 4, &word, sizeof word, UINT64_MAX / 4));
    assert_true(emu_read(m, a + 96, bytes, 4));
    assert_memory_equal(bytes, &word, 4);
    emu_memory_free(m);
}

TEST(copies_propagate_uninitialized_bytes)
{
    emu_memory *m = emu_memory_new(NULL);
    uint64_t a = emu_alloc(m, 64), b = emu_alloc(m, 64);
    uint8_t bytes[64];
    memset(bytes, 7, sizeof bytes);
    assert_true(emu_write(m, b, bytes, 64));
    assert_true(emu_write(m, a + 8, "12345678", 8));
    assert_true(emu_copy(m, b, a, 32));
    assert_false(emu_initialised(m, b, 8));
    assert_true(emu_initialised(m, b + 8, 8));
    assert_false(emu_initialised(m, b + 16, 1));
    assert_true(emu_initialised(m, b + 32, 32));
    assert_true(emu_copy(m, b + 10, b + 8, 8)); /* an overlapping copy */
    assert_true(emu_read(m, b + 8, bytes, 10));
    assert_memory_equal(bytes, "1212345678", 10);
    assert_false(emu_copy(m, b + 33, a, 32));
    emu_memory_free(m);
}

typedef struct found {
    unsigned count, line; /* expected number of warnings; line of the last warning */
    emu_fault fault;
} found;

static void note_warning(void *context, const emu_launch_config *launch, const emu_report *report)
{
    found *f = context;
    assert_string_equal(launch->entry, "k");
    f->count++;
    f->line = report->line;
    f->fault = report->fault;
}

#define TWICE(text)                                                 \
    "mov.u32 %r20, 0;\n$again:\n" text "\nadd.u32 %r20, %r20, 1;\n" \
    "setp.lt.u32 %p9, %r20, 2; @%p9 bra $again;\n"
#define END "mov.u64 %l1, 7; st.global.u64 [%slot], %l1;\n"

/* clang-format off */
static const struct {
    const char *text;
    emu_check check;
    emu_fault fault;
    unsigned line, threads, last; /* threads from `last` on do not reach the end */
} lenient[] = {
    { KERNEL(TILE TWICE("st.shared.u32 [tile], %t;") END), EMU_CHECK_RACE, EMU_RACE, 4, 32, 32 },
    { KERNEL(TILE "cp.async.ca.shared.global [%r8], [%in], 4; bar.sync 0;\n" TWICE("ld.shared.u32 %r1, [%r8];") END),
      EMU_CHECK_RACE, EMU_RACE, 5, 32, 32 },
    { KERNEL(TWICE("st.global.u32 [%out], %t;") "bar.sync 0;" END), EMU_CHECK_RACE, EMU_RACE, 2, 32, 32 },
    { KERNEL(TILE TWICE("ld.shared.u32 %r1, [%r8];") END), EMU_CHECK_UNINIT, EMU_UNINITIALISED, 4, 32, 32 },
    { KERNEL(".local .align 4 .b8 l[8];\n" TWICE("ld.local.u32 %r1, [l+4];") END), EMU_CHECK_UNINIT, EMU_UNINITIALISED, 3, 32, 32 },
    { KERNEL(TWICE("add.u32 %r2, %r1, 1;") END), EMU_CHECK_UNDEFINED, EMU_UNDEFINED_REGISTER, 2, 32, 32 },
    { KERNEL("setp.ge.u32 %p1, %t, 16; @%p1 ret;\n" TWICE("shfl.sync.bfly.b32 %r1, %t, 16, 31, -1;") 
             "setp.ne.u32 %p1, %r1, 0; @%p1 trap;\n" END), EMU_CHECK_LANES, EMU_INACTIVE_LANE, 3, 32, 16 },
    { KERNEL("setp.ge.u32 %p1, %t, 10; @%p1 ret;\n" TWICE("bar.sync 0;") END), EMU_CHECK_BARRIER, EMU_BARRIER, 3, 32, 10 },
    { KERNEL("setp.ge.u32 %p1, %t, 10; @%p1 bra $end;\n" TWICE("bar.sync 0;") END "$end:"), EMU_CHECK_BARRIER, EMU_BARRIER, 3, 32, 10 },
    { KERNEL("setp.ge.u32 %p1, %t, 32; @%p1 ret;\n" TWICE("bar.sync 0;") END), EMU_CHECK_BARRIER, EMU_BARRIER, 3, 96, 32 },
    { KERNEL("setp.ge.u32 %p1, %t, 40; @%p1 ret;\n" TWICE("bar.red.or.pred %p2, 0, %p1; @%p2 trap;") END),
      EMU_CHECK_BARRIER, EMU_BARRIER, 3, 64, 40 },
};
/* clang-format on */

TEST(live_lanes_that_never_reach_a_barrier_are_always_a_fault)
{
    static const emu_checks checks = { .actions = { [EMU_CHECK_BARRIER] = EMU_PASSES } };
    run r = { .text = KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bra $x;\nbar.sync 0; bra $end;\n"
                             "$x: bar.sync 0;\n$end:"),
              .checks = &checks };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.line, BODY_LINE + 1);
    assert_non_null(strstr(r.message, "lane 0, which does not participate: it waits at line 16"));
}

TEST(a_check_stops_a_kernel_or_warns_once_or_is_off)
{
    for (size_t i = 0; i < sizeof lenient / sizeof *lenient; i++) {
        static const uint32_t in[32];
        found f = { 0 };
        emu_checks checks = { .warn = note_warning, .context = &f };
        run r = { .text = lenient[i].text, .threads = lenient[i].threads, .checks = &checks };
        r.in = in;
        r.in_size = sizeof in;
        if (run_kernel(&r) || r.report.fault != lenient[i].fault ||
            r.report.line != BODY_LINE + lenient[i].line || f.count)
            fail_msg("%s\n  gives line %u: %s", r.text, r.report.line, r.message);
        checks.actions[lenient[i].check] = EMU_WARNS;
        run_well(&r);
        if (f.fault != lenient[i].fault || f.line != BODY_LINE + lenient[i].line)
            fail_msg("%s\n  warns of %s, line %u", r.text, emu_fault_name(f.fault), f.line);
        for (unsigned t = 0; t < lenient[i].threads; t++)
            assert_int_equal(r.out[t], t < lenient[i].last ? 7 : UINT64_MAX);
        assert_int_equal(f.count, 1);
        checks.actions[lenient[i].check] = EMU_PASSES;
        run_well(&r);
        assert_int_equal(f.count, 1);
    }
}
