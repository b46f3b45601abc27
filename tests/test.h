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

/* Adds a test to those that test_run runs; what it points to must last. */
void test_add(struct CMUnitTest test);

/* Whether a run takes a row of a test's table: all, or by PTXGEN_TEST_ROWS=N one in N, of which
 * PTXGEN_TEST_TURN says which. PTXGEN_TEST_ROWS_BY_TURN=N leaves one in N of these where there are
 * turns; of whole tests PTXGEN_TEST_SHARE and PTXGEN_TEST_SHARE_BY_TURN say the same. */
bool test_takes_row(size_t row);

/* Runs all tests between the two (each may be NULL), for a main that has more to do. */
int test_run(CMFixtureFunction set_up_all, CMFixtureFunction tear_down_all);

/* A test between a set_up and a tear_down of its own (each may be NULL). */
#define TEST_WITH(name, set_up, tear_down)                                                     \
    static void name(void **state);                                                            \
    __attribute__((constructor)) static void list_##name(void)                                 \
    {                                                                                          \
        test_add((struct CMUnitTest)cmocka_unit_test_setup_teardown(name, set_up, tear_down)); \
    }                                                                                          \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

#endif
