#include "test.h"

#include <stdlib.h>

static struct CMUnitTest *tests;
static size_t test_count;

void test_add(struct CMUnitTest test)
{
    tests = realloc(tests, (test_count + 1) * sizeof *tests);
    if (!tests)
        abort();
    tests[test_count++] = test;
}

static size_t number_of(const char *variable, size_t otherwise)
{
    const char *value = getenv(variable);
    return value ? strtoul(value, NULL, 10) : otherwise;
}

/* One in so many is run: N of always, for builds in which all take too long, and one in by_turn of
 * these where there are turns. */
static size_t step_of(const char *always, const char *by_turn)
{
    return number_of(always, 1) * (getenv("PTXGEN_TEST_TURN") ? number_of(by_turn, 1) : 1);
}

/* Whether one in so many is this one: N turns in a row take all. */
static bool has_turn(size_t number, size_t step)
{
    return step <= 1 || number % step == number_of("PTXGEN_TEST_TURN", 0) % step;
}

bool test_takes_row(size_t row)
{
    return has_turn(row, step_of("PTXGEN_TEST_ROWS", "PTXGEN_TEST_ROWS_BY_TURN"));
}

static void keep_share(void)
{
    size_t step = step_of("PTXGEN_TEST_SHARE", "PTXGEN_TEST_SHARE_BY_TURN"), kept = 0;
    for (size_t i = 0; i < test_count; i++)
        if (has_turn(i, step))
            tests[kept++] = tests[i];
    test_count = kept;
}

int test_run(CMFixtureFunction set_up_all, CMFixtureFunction tear_down_all)
{
    keep_share();
    return _cmocka_run_group_tests("tests", tests, test_count, set_up_all, tear_down_all);
}

__attribute__((weak)) int main(void)
{
    return test_run(NULL, NULL);
}
