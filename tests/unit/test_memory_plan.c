/* The memory that buffers share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "family/memory_plan.h"
#include "ref/random.h"

static int set_up(void **state)
{
    *state = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static bool overlap(int64_t a, int64_t a_end, int64_t b, int64_t b_end)
{
    return a < b_end && b < a_end;
}

static void parts_whose_lives_overlap_lie_side_by_side(void **state)
{
    memory_part parts[] = { { 100, 0, 1, -1 }, { 300, 1, 2, -1 }, { 10, 1, 1, -1 } };
    int64_t needed = memory_plan(*state, parts, 3);
    assert_int_equal(parts[1].offset, 0);
    assert_int_equal(parts[0].offset, 512);
    assert_int_equal(parts[2].offset, 768);
    assert_int_equal(needed, 778);
}

static void parts_that_never_live_together_share_memory(void **state)
{
    memory_part parts[] = { { 1000, 0, 1, -1 }, { 1000, 2, 3, -1 }, { 900, 4, 9, -1 } };
    assert_int_equal(memory_plan(*state, parts, 3), 1000);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(parts[i].offset, 0);
}

static void a_gap_between_two_parts_is_used(void **state)
{
    memory_part parts[] = { { 1024, 0, 9, -1 },
                            { 512, 0, 1, -1 },
                            { 512, 5, 9, -1 },
                            { 256, 0, 9, -1 },
                            { 500, 2, 4, -1 } };
    assert_int_equal(memory_plan(*state, parts, 5), 1024 + 512 + 256);
    assert_int_equal(parts[1].offset, 1024);
    assert_int_equal(parts[2].offset, 1024);
    assert_int_equal(parts[4].offset, 1024);
    assert_int_equal(parts[3].offset, 1536);
}

static void nothing_needs_nothing(void **state)
{
    memory_part empty = { 0, 0, 0, -1 };
    assert_int_equal(memory_plan(*state, NULL, 0), 0);
    assert_int_equal(memory_plan(*state, &empty, 1), 0);
    assert_int_equal(empty.offset, 0);
}

static void sizes_beyond_all_memory_do_not_wrap_around(void **state)
{
    memory_part parts[] = { { INT64_MAX, 0, 1, -1 }, { INT64_MAX - 5, 0, 1, -1 }, { 8, 0, 1, -1 } };
    assert_int_equal(memory_plan(*state, parts, 3), INT64_MAX);
    for (size_t i = 0; i < 3; i++)
        assert_true(parts[i].offset >= 0);
}

/* Hundreds of launches, as a model's step has. */
static void random_plans_are_right_and_the_same_again(void **state)
{
    enum { PARTS = 300, STEPS = 400, LONGEST = 12, ROUNDS = 20 };
    arena *a = *state;
    random_source random = { 1 };
    for (int round = 0; round < ROUNDS; round++) {
        memory_part parts[PARTS], again[PARTS];
        int64_t side_by_side = 0, at_once[STEPS + LONGEST] = { 0 }, least = 0;
        for (size_t i = 0; i < PARTS; i++) {
            size_t first = random_below(&random, STEPS);
            parts[i] = (memory_part){ (int64_t)(random_below(&random, 5000)), first,
                                      first + random_below(&random, LONGEST), -1 };
            side_by_side += parts[i].bytes + MEMORY_ALIGNMENT;
            for (size_t step = first; step <= parts[i].last; step++) {
                at_once[step] += parts[i].bytes;
                least = at_once[step] > least ? at_once[step] : least;
            }
        }
        memcpy(again, parts, sizeof parts);
        int64_t needed = memory_plan(a, parts, PARTS), end = 0;
        assert_int_equal(memory_plan(a, again, PARTS), needed);
        for (size_t i = 0; i < PARTS; i++) {
            const memory_part *p = &parts[i];
            assert_int_equal(p->offset % MEMORY_ALIGNMENT, 0);
            assert_int_equal(p->offset, again[i].offset);
            end = p->offset + p->bytes > end ? p->offset + p->bytes : end;
            for (size_t j = 0; j < i; j++) {
                const memory_part *q = &parts[j];
                bool together = p->first <= q->last && q->first <= p->last;
                assert_false(together && overlap(p->offset, p->offset + p->bytes, q->offset,
                                                 q->offset + q->bytes));
            }
        }
        assert_int_equal(end, needed);
        assert_in_range(needed, least, side_by_side);
        assert_true(needed < 2 * least);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_whose_lives_overlap_lie_side_by_side),
        TEST(parts_that_never_live_together_share_memory),
        TEST(a_gap_between_two_parts_is_used),
        TEST(nothing_needs_nothing),
        TEST(sizes_beyond_all_memory_do_not_wrap_around),
        TEST(random_plans_are_right_and_the_same_again),
    };
    return cmocka_run_group_tests_name("memory_plan", tests, NULL, NULL);
}
