/* What the emulated driver says on standard error, in a process of its own. For POSIX.1-2008. */
#ifndef PTXGEN_TESTS_DRIVER_REPORT_H
#define PTXGEN_TESTS_DRIVER_REPORT_H

#include "libcuda/driver_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a process that does this, and nothing with the driver before, writes to standard error until
 * it has ended. */
static inline const char *fresh_report_of(void (*work)(void))
{
    static char text[1 << 16];
    int ends[2];
    size_t length = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        work();
        exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, NULL, 0);
    return text;
}

static void (*work_in_context)(void);

static inline void do_in_context(void)
{
    make_context(NULL);
    work_in_context();
}

/* The same with a context for it. */
static inline const char *report_of(void (*work)(void))
{
    work_in_context = work;
    return fresh_report_of(do_in_context);
}

static inline void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

#endif
