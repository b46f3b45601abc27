#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target.h"

static void targets_are_found_by_their_whole_name(void **state)
{
    (void)state;
    assert_int_equal(target_find("sm_80")->sm, 80);
    assert_int_equal(target_find("sm_100")->sm, 100);
    assert_null(target_find("sm_8"));
    assert_null(target_find("sm_800"));
    assert_null(target_find(""));
}

static void rows_go_from_old_to_new_and_hold_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < target_count; i++) {
        const target *t = &targets[i];
        assert_true(i == 0 || targets[i - 1].sm < t->sm);
        assert_true(t->shared_static <= t->shared_block && t->shared_block <= t->shared_sm);
        assert_true(t->isa >= 63 && t->isa <= 90);
    }
}

static void occupancy_is_bounded_by_warps_and_blocks(void **state)
{
    (void)state;
    const target *t = target_find("sm_80");
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 0), 32);
    assert_int_equal(target_blocks_per_sm(t, 1024, 16, 0), 2);
    assert_int_equal(target_blocks_per_sm(t, 96, 16, 0), 21);
}

static void occupancy_is_bounded_by_registers(void **state)
{
    (void)state;
    const target *t = target_find("sm_80");
    assert_int_equal(target_blocks_per_sm(t, 256, 64, 0), 4);
    assert_int_equal(target_blocks_per_sm(t, 256, 49, 0), 4); /* a thread's share is 56 */
    assert_int_equal(target_blocks_per_sm(t, 1024, 255, 0), 0);
}

static void occupancy_is_bounded_by_shared_memory(void **state)
{
    (void)state;
    const target *t = target_find("sm_80");
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 40 * 1024), 4);
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 163 * 1024), 1);
    assert_int_equal(target_blocks_per_sm(t, 32, 16, 164 * 1024), 0);
}

static void no_threads_is_no_block(void **state)
{
    (void)state;
    assert_int_equal(target_blocks_per_sm(target_find("sm_90"), 0, 16, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_found_by_their_whole_name),
        cmocka_unit_test(rows_go_from_old_to_new_and_hold_together),
        cmocka_unit_test(occupancy_is_bounded_by_warps_and_blocks),
        cmocka_unit_test(occupancy_is_bounded_by_registers),
        cmocka_unit_test(occupancy_is_bounded_by_shared_memory),
        cmocka_unit_test(no_threads_is_no_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
