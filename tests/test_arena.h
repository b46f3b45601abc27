/* ARENA_TEST(name) { … } defines a test that gets its own arena as a. */
#ifndef PTXGEN_TESTS_TEST_ARENA_H
#define PTXGEN_TESTS_TEST_ARENA_H

#include "base/arena.h"
#include "test.h"

static inline int make_test_arena(void **state)
{
    *state = arena_new();
    return 0;
}

static inline int free_test_arena(void **state)
{
    arena_free(*state);
    return 0;
}

#define ARENA_TEST(name) TEST_OF(name, make_test_arena, free_test_arena, arena *a)

#endif
