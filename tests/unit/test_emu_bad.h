/* Runs kernels that must fault, and checks the fault's code, line, thread and message. */
#ifndef PTXGEN_TEST_EMU_BAD_H
#define PTXGEN_TEST_EMU_BAD_H

#include "test_emu_run.h"

typedef struct bad {
    const char *body; /* starts at line BODY_LINE of the module */
    unsigned line;    /* expected line of the fault, counted from 0 in the body */
    unsigned thread;
    emu_fault fault;
    const char *message; /* a substring of the expected message */
    unsigned threads;
} bad;

static inline void check_bad(const bad *b)
{
    static const uint32_t in[1024];
    run r = { .text = kernel_of(b->body),
              .threads = b->threads,
              .in = in,
              .in_size = sizeof in,
              .limit = 100000 };
    bool good = run_kernel(&r);
    if (good || r.report.fault != b->fault || r.report.line != BODY_LINE + b->line ||
        r.report.thread[0] != b->thread || !strstr(r.message, b->message))
        fail_msg("%s\n  gives %s, line %u, thread %u: %s\n  expected %s, line %u, thread %u: %s",
                 b->body, emu_fault_name(r.report.fault), r.report.line - BODY_LINE,
                 r.report.thread[0], r.message, emu_fault_name(b->fault), b->line, b->thread,
                 b->message);
}

#define TEST_FAULTS(name, ...)                                  \
    TEST(name)                                                  \
    {                                                           \
        static const bad rows[] = { __VA_ARGS__ };              \
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) \
            check_bad(&rows[i]);                                \
    }

#define TILE ".shared .align 4 .b8 tile[256];\nmov.u32 %r9, tile; mad.lo.u32 %r8, %t, 4, %r9;\n"

#endif
