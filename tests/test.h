/* Self-registering tests: TEST(name) { … } defines and lists a test. test.c has main, which runs
 * all tests of a program in the order of its files. */
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

/* Lists a test of a file. The strings must stay valid. PTXGEN_TEST_SHARE=N runs only tests whose
 * number modulo N is PTXGEN_TEST_PART, default 0. */
void test_add(const char *file, struct CMUnitTest test, size_t number);

/* Lists a test of a file and numbers it from 0 in its file. */
void test_add_next(const char *file, struct CMUnitTest test);

/* Registers a function that lists tests of a file. It is called if the program runs any of them. */
void test_add_later(const char *file, void (*list)(void));

/* Sets functions to call before and after a file's tests; NULL = no call. */
void test_add_fixture(const char *file, CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* Calls the functions registered by test_add_later. */
void test_list_all(void);

/* Runs the listed tests for which `takes` returns true. Returns the number of failures. */
int test_run(bool (*takes)(const test_case *t, const void *context), const void *context);

/* Runs the tests of a command line "[FILTER]... [OPTION]...", see usage in test.c. Returns the exit
 * status. */
int test_main(int argc, char **argv);

/* The extent of a run: PTXGEN_TEST_TIER=quick, normal (default) or full. */
typedef enum test_tier { TIER_QUICK, TIER_NORMAL, TIER_FULL } test_tier;

test_tier test_tier_asked(void);

/* Returns true for groups that tier quick runs only if a filter names them. */
bool test_is_slow(const char *name);

/* Fractions of a test's table that run in tiers below full. The chosen rows are always the same. */
enum { EACH = 1, THIRD = 3, FOURTH = 4 };

/* Returns true if a row of a test's table runs: every `step`-th row, every row in tier full, or
 * every N-th row with PTXGEN_TEST_ROWS=N. For pairs, pass the sum of both indices, so that each
 * item is covered. */
bool test_takes_row(size_t row, size_t step);

/* Defines a test with its own set_up and tear_down functions, each may be NULL. */
#define TEST_WITH(name, set_up, tear_down)                                                       \
    static void name(void **state);                                                              \
    __attribute__((constructor)) static void list_##name(void)                                   \
    {                                                                                            \
        test_add_next(__FILE__, (struct CMUnitTest)cmocka_unit_test_setup_teardown(name, set_up, \
                                                                                   tear_down));  \
    }                                                                                            \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Defines a test that gets set_up's object as the declared parameter. */
#define TEST_OF(name, set_up, tear_down, declaration) \
    static void name##_of(declaration);               \
    TEST_WITH(name, set_up, tear_down)                \
    {                                                 \
        name##_of(*state);                            \
    }                                                 \
    static void name##_of(__attribute__((unused)) declaration)

/* Sets functions to run before and after all tests of a file, each may be NULL. */
#define TEST_FIXTURE(set_up, tear_down)                        \
    __attribute__((constructor)) static void add_fixture(void) \
    {                                                          \
        test_add_fixture(__FILE__, set_up, tear_down);         \
    }

/* LIST_TESTS { … } defines a function that calls test_add for each row of a table. */
#define LIST_TESTS                                            \
    static void list_tests(void);                             \
    __attribute__((constructor)) static void list_later(void) \
    {                                                         \
        test_add_later(__FILE__, list_tests);                 \
    }                                                         \
    static void list_tests(void)

#endif
