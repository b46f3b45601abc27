#include "test.h"

#include <stdlib.h>
#include <string.h>

static struct CMUnitTest *tests;
static size_t test_count;

static size_t number_of(const char *variable, size_t otherwise)
{
    const char *value = getenv(variable);
    return value ? strtoul(value, NULL, 10) : otherwise;
}

void test_add(struct CMUnitTest test, size_t number)
{
    if (number % number_of("PTXGEN_TEST_SHARE", 1) != number_of("PTXGEN_TEST_PART", 0))
        return;
    tests = realloc(tests, (test_count + 1) * sizeof *tests);
    if (!tests)
        abort();
    tests[test_count++] = test;
}

void test_list(struct CMUnitTest test)
{
    static size_t listed;
    test_add(test, listed++);
}

bool test_is_full(void)
{
    const char *tier = getenv("PTXGEN_TEST_TIER");
    return tier && strcmp(tier, "full") == 0;
}

bool test_takes_row(size_t row, size_t step)
{
    return row % number_of("PTXGEN_TEST_ROWS", test_is_full() ? 1 : step) == 0;
}

int test_run(CMFixtureFunction set_up_all, CMFixtureFunction tear_down_all)
{
    return _cmocka_run_group_tests("tests", tests, test_count, set_up_all, tear_down_all);
}

__attribute__((weak)) int main(void)
{
    return test_run(NULL, NULL);
}
