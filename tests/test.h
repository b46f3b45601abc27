/* Tests that list themselves: TEST(name) { … } is all there is to write of one. main is that of
 * test.c, which runs all tests of a program in the order of its files. */
#ifndef PTXGEN_TESTS_TEST_H
#define PTXGEN_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A listed test. Its group is named for its file: "unit/spec" for tests/unit/test_spec.c. */
typedef struct test_case {
    const char *file, *group;
    struct CMUnitTest test;
    size_t number;
} test_case;

/* Lists a test of a file; what it points to must last. Numbers need not differ:
 * PTXGEN_TEST_SHARE=N runs tests whose numbers are multiples of N, or with PTXGEN_TEST_PART=K the
 * Kth ones behind these. */
void test_add(const char *file, struct CMUnitTest test, size_t number);

/* Lists a test with the number of those that its file has listed before. */
void test_add_next(const char *file, struct CMUnitTest test);

/* Calls a function that lists tests of a file when the program runs some of this file. */
void test_add_later(const char *file, void (*list)(void));

/* Sets what is done before a file's tests and after them; NULL: nothing. */
void test_add_fixture(const char *file, CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* Calls what test_add_later was given. */
void test_list_all(void);

/* Runs the listed tests that takes returns true for. Returns the number of failures. */
int test_run(bool (*takes)(const test_case *t, const void *context), const void *context);

/* Runs what a command line asks for, "[FILTER]... [OPTION]...": see usage in test.c. */
int test_main(int argc, char **argv);

/* How much is run: PTXGEN_TEST_TIER=quick, normal (default) or full. */
typedef enum test_tier { TIER_QUICK, TIER_NORMAL, TIER_FULL } test_tier;

test_tier test_tier_asked(void);

/* Returns true for groups that the tier quick leaves out where no filter names them. */
bool test_is_slow(const char *name);

/* Which rows of a test's table run but in the tier full: a choice that is always the same. */
enum { EACH = 1, THIRD = 3, FOURTH = 4 };

/* Returns true if a row of a test's table is run: one in step, all in the tier full, or one in N by
 * PTXGEN_TEST_ROWS=N. Of pairs the row is the sum of both numbers, so that each item has some. */
bool test_takes_row(size_t row, size_t step);

/* A test between a set_up and a tear_down of its own (each may be NULL). */
#define TEST_WITH(name, set_up, tear_down)                                                       \
    static void name(void **state);                                                              \
    __attribute__((constructor)) static void list_##name(void)                                   \
    {                                                                                            \
        test_add_next(__FILE__, (struct CMUnitTest)cmocka_unit_test_setup_teardown(name, set_up, \
                                                                                   tear_down));  \
    }                                                                                            \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* A test that is given what set_up made, by the name that a declaration has for it. */
#define TEST_OF(name, set_up, tear_down, declaration) \
    static void name##_of(declaration);               \
    TEST_WITH(name, set_up, tear_down)                \
    {                                                 \
        name##_of(*state);                            \
    }                                                 \
    static void name##_of(__attribute__((unused)) declaration)

/* What a file does before all of its tests and after them (each may be NULL). */
#define TEST_FIXTURE(set_up, tear_down)                        \
    __attribute__((constructor)) static void add_fixture(void) \
    {                                                          \
        test_add_fixture(__FILE__, set_up, tear_down);         \
    }

/* Tests of a table: LIST_TESTS { … } calls test_add for each. */
#define LIST_TESTS                                            \
    static void list_tests(void);                             \
    __attribute__((constructor)) static void list_later(void) \
    {                                                         \
        test_add_later(__FILE__, list_tests);                 \
    }                                                         \
    static void list_tests(void)

#endif
