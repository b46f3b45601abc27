/* Tests that fail, for the script that reports them:
 * - with a message of two lines
 * - by a comparison of cmocka
 * - by a signal that cmocka catches
 * - by a signal that ends the program
 *
 * With PTXGEN_TEST_HANG=SECONDS another test sleeps as long. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

TEST(two_is_right)
{
    assert_int_equal(1 + 1, 2);
}

TEST(a_sum_is_wrong)
{
    fail_msg("y[3] is %g, expected %g:\n0.5 of its bound", 1.25, 2.5);
}

TEST(two_is_three)
{
    assert_int_equal(2, 3);
}

TEST(nothing_is_read)
{
    raise(SIGSEGV);
}

TEST(one_takes_long)
{
    const char *seconds = getenv("PTXGEN_TEST_HANG");
    sleep(seconds ? (unsigned)atoi(seconds) : 0);
}

TEST(the_program_ends)
{
    abort();
}

TEST(three_is_right)
{
    assert_int_equal(1 + 2, 3);
}
