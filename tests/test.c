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

/* PTXGEN_TEST_SHARE=N leaves one test in N, for builds in which all take too long. */
static void keep_share(void)
{
    const char *share = getenv("PTXGEN_TEST_SHARE");
    size_t step = share ? strtoul(share, NULL, 10) : 1, kept = 0;
    for (size_t i = 0; step > 1 && i < test_count; i += step)
        tests[kept++] = tests[i];
    test_count = step > 1 ? kept : test_count;
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
