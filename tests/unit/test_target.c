#include "test.h"
#include "kernel/target.h"

TEST(targets_are_found_by_their_full_name)
{
    assert_int_equal(target_find("sm_80")->sm, 80);
    assert_int_equal(target_find("sm_100")->sm, 100);
    assert_null(target_find("sm_8"));
    assert_null(target_find("sm_800"));
    assert_null(target_find(""));
}

TEST(rows_are_sorted_and_consistent)
{
    for (size_t i = 0; i < target_count; i++) {
        const target *t = &targets[i];
        assert_true(i == 0 || targets[i - 1].sm < t->sm ||
                    (targets[i - 1].sm == t->sm && t->specific && !targets[i - 1].specific));
        assert_true(t->shared_static <= t->shared_block && t->shared_block <= t->shared_sm);
        assert_true(t->isa >= 63 && t->isa <= 90);
    }
}

TEST(occupancy_is_bounded_by_warps_and_blocks)
{
    const target *t = target_find("sm_80");
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 0), 32);
    assert_int_equal(target_blocks_per_sm(t, 1024, 16, 0), 2);
    assert_int_equal(target_blocks_per_sm(t, 96, 16, 0), 21);
}

TEST(occupancy_is_bounded_by_registers)
{
    const target *t = target_find("sm_80");
    assert_int_equal(target_blocks_per_sm(t, 256, 64, 0), 4);
    assert_int_equal(target_blocks_per_sm(t, 256, 49, 0), 4); /* a thread may have 56 registers */
    assert_int_equal(target_blocks_per_sm(t, 1024, 255, 0), 0);
}

/* An H200 refused a block of 18 warps with 107 registers, allocated as 112. These are 61,632
 * registers and fit an SM, but one of its four partitions would need registers for five warps. */
TEST(the_warps_of_a_block_are_spread_over_four_partitions)
{
    assert_int_equal(target_warps_with(112), 16);
    assert_int_equal(target_blocks_per_sm(target_find("sm_90"), 18 * 32, 107, 0), 0);
    assert_int_equal(target_registers_for(18), 96);
    assert_int_equal(target_registers_for(16), 128);
    for (unsigned warps = 1; warps <= 32; warps++) {
        unsigned registers = target_registers_for(warps);
        assert_true(target_warps_with(registers) >= warps);
        assert_true(target_warps_with(registers + 1) < warps);
    }
}

TEST(occupancy_is_bounded_by_shared_memory)
{
    const target *t = target_find("sm_80");
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 40 * 1024), 4);
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 163 * 1024), 1);
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 164 * 1024), 0);
}

TEST(occupancy_of_no_threads_is_zero)
{
    assert_int_equal(target_blocks_per_sm(target_find("sm_90"), 0, 16, 0), 0);
}
