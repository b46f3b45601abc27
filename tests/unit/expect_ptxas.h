/* Checks that ptxas accepts a text, if ptxas is installed. */
#ifndef PTXGEN_TESTS_EXPECT_PTXAS_H
#define PTXGEN_TESTS_EXPECT_PTXAS_H

#include <stdbool.h>
#include <string.h>

#include "test.h"
#include "check/ptxas.h"

/* Fails the test if ptxas rejects the text for the architecture or spills registers. Returns false
 * if ptxas is not installed. */
static inline bool expect_ptxas_to_take(const char *text, const char *architecture)
{
    ptxas assembler;
    ptxas_result result;
    const char *error;
    arena *a = arena_new();
    bool there = ptxas_find(a, NULL, &assembler, &error);
    if (there) {
        if (!ptxas_run(a, &assembler, text, strlen(text), target_find(architecture), &result,
                       &error))
            fail_msg("%s", error);
        if (!result.accepted)
            fail_msg("%s\n%s", result.message, text);
        assert_int_equal(result.spill_bytes, 0);
    }
    arena_free(a);
    return there;
}

#endif
