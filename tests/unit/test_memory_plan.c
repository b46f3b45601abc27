/* The placement of buffers in memory that they share over time. */
#include <stdbool.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/memory_plan.h"
#include "ref/random.h"

ARENA_TEST(buffers_with_overlapping_lifetimes_do_not_overlap)
{
    memory_part parts[] = { { 100, 0, 1, -1 }, { 300, 1, 2, -1 }, { 10, 1, 1, -1 } };
    int64_t needed = memory_plan(a, parts, 3);
    assert_int_equal(parts[1].offset, 0);
    assert_int_equal(parts[0].offset, 512);
    assert_int_equal(parts[2].offset, 768);
    assert_int_equal(needed, 778);
}

ARENA_TEST(buffers_with_disjoint_lifetimes_share_memory)
{
    memory_part parts[] = { { 1000, 0, 1, -1 }, { 1000, 2, 3, -1 }, { 900, 4, 9, -1 } };
    assert_int_equal(memory_plan(a, parts, 3), 1000);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(parts[i].offset, 0);
}

ARENA_TEST(a_gap_between_two_parts_is_used)
{
    memory_part parts[] = { { 1024, 0, 9, -1 },
                            { 512, 0, 1, -1 },
                            { 512, 5, 9, -1 },
                            { 256, 0, 9, -1 },
                            { 500, 2, 4, -1 } };
    assert_int_equal(memory_plan(a, parts, 5), 1024 + 512 + 256);
    assert_int_equal(parts[1].offset, 1024);
    assert_int_equal(parts[2].offset, 1024);
    assert_int_equal(parts[4].offset, 1024);
    assert_int_equal(parts[3].offset, 1536);
}

ARENA_TEST(an_empty_plan_needs_no_memory)
{
    memory_part empty = { 0, 0, 0, -1 };
    assert_int_equal(memory_plan(a, NULL, 0), 0);
    assert_int_equal(memory_plan(a, &empty, 1), 0);
    assert_int_equal(empty.offset, 0);
}

ARENA_TEST(huge_sizes_do_not_overflow)
{
    memory_part parts[] = { { INT64_MAX, 0, 1, -1 }, { INT64_MAX - 5, 0, 1, -1 }, { 8, 0, 1, -1 } };
    assert_int_equal(memory_plan(a, parts, 3), INT64_MAX);
    for (size_t i = 0; i < 3; i++)
        assert_true(parts[i].offset >= 0);
}

/* Hundreds of launches, like a model's step. */
ARENA_TEST(random_plans_are_valid_and_reproducible)
{
    enum { PARTS = 300, STEPS = 400, LONGEST = 12, ROUNDS = 20 };
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
                assert_false(together && p->offset < q->offset + q->bytes &&
                             q->offset < p->offset + p->bytes);
            }
        }
        assert_int_equal(end, needed);
        assert_in_range(needed, least, side_by_side);
        assert_true(needed < 2 * least);
    }
}
