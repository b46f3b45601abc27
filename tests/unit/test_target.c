#include "test.h"
#include "target.h"

TEST(targets_are_found_by_their_whole_name)
{
    assert_int_equal(target_find("sm_80")->sm, 80);
    assert_int_equal(target_find("sm_100")->sm, 100);
    assert_null(target_find("sm_8"));
    assert_null(target_find("sm_800"));
    assert_null(target_find(""));
}

TEST(rows_go_from_old_to_new_and_hold_together)
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
    assert_int_equal(target_blocks_per_sm(t, 256, 49, 0), 4); /* a thread's share is 56 */
    assert_int_equal(target_blocks_per_sm(t, 1024, 255, 0), 0);
}

TEST(occupancy_is_bounded_by_shared_memory)
{
    const target *t = target_find("sm_80");
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 40 * 1024), 4);
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 163 * 1024), 1);
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 164 * 1024), 0);
}

TEST(no_threads_is_no_block)
{
    assert_int_equal(target_blocks_per_sm(target_find("sm_90"), 0, 16, 0), 0);
}
