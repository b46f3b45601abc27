/* Tests that list themselves: TEST(name) { … } is all there is to write of one. main is that of
 * test.c, which runs them in the order of the file. */
#ifndef PTXGEN_TESTS_TEST_H
#define PTXGEN_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Adds a test to those that test_run runs; what it points to must last. Of numbers, which need not
 * differ, PTXGEN_TEST_SHARE=N runs those that are multiples of N, or PTXGEN_TEST_PART=K more. */
void test_add(struct CMUnitTest test, size_t number);

/* Returns true if PTXGEN_TEST_TIER=full asks for all that takes too long for each change. */
bool test_is_full(void);

/* Which rows of a test's table run but in the tier full: a choice that is always the same. */
enum { EACH = 1, THIRD = 3, FOURTH = 4 };

/* Returns true if a row of a test's table is run: one in step, all in the tier full, or one in N by
 * PTXGEN_TEST_ROWS=N. Of pairs the row is the sum of both numbers, so that each item has some. */
bool test_takes_row(size_t row, size_t step);

/* Adds a test with the number of those that were listed before. */
void test_list(struct CMUnitTest test);

/* Runs all tests between the two (each may be NULL), for a main that has more to do. */
int test_run(CMFixtureFunction set_up_all, CMFixtureFunction tear_down_all);

/* A test between a set_up and a tear_down of its own (each may be NULL). */
#define TEST_WITH(name, set_up, tear_down)                                                      \
    static void name(void **state);                                                             \
    __attribute__((constructor)) static void list_##name(void)                                  \
    {                                                                                           \
        test_list((struct CMUnitTest)cmocka_unit_test_setup_teardown(name, set_up, tear_down)); \
    }                                                                                           \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

#endif
