/* Reading an uninitialized register is valid as long as no result depends on it. */
#include "test_emu_bad.h"

/* A kernel body and the line of its expected fault, or EMU_OK. */
typedef struct row {
    const char *body;
    unsigned line, thread;
    const char *message;
} row;

static const emu_checks carrying = { .carries = true };

static void check_rows(const row *rows, size_t count, bool good)
{
    static const uint32_t in[32];
    for (size_t i = 0; i < count; i++) {
        const row *w = &rows[i];
        run r = { .text = kernel_of(w->body), .in = in, .in_size = sizeof in, .checks = &carrying };
        if (run_kernel(&r) == good &&
            (good || (r.report.fault == EMU_UNDEFINED_REGISTER && r.report.thread[0] == w->thread &&
                      r.report.line == BODY_LINE + w->line && strstr(r.message, w->message))))
            continue;
        fail_msg("%s\n  gives %s, line %u, thread %u: %s\n  expected line %u, thread %u: %s",
                 w->body, emu_fault_name(r.report.fault), r.report.line - BODY_LINE,
                 r.report.thread[0], r.message, w->line, w->thread,
                 w->message ? w->message : "no fault");
    }
}

#define STORE "st.global.u32 [%slot], %r1;"
#define WIDE  ".shared .align 8 .b8 wide[256];\nmov.u32 %r9, wide; mad.lo.u32 %r8, %t, 8, %r9;\n"
#define HALF  "setp.lt.u32 %p1, %t, 16;\n" /* line 0 */

/* clang-format off */
TEST(unused_values_may_be_undefined)
{
    static const row rows[] = {
        { .body = "add.u32 %r1, %r2, 1; mov.u32 %r3, %r1; shl.b32 %r4, %r3, %t;" },
        /* compiled form of a variable that one iteration of a loop sets */
        { .body = "mov.u32 %r2, 0;\n$next: setp.eq.u32 %p1, %r2, %t; selp.b32 %r1, %t, %r1, %p1;\n"
                  "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 32; @%p2 bra $next;\n" STORE },
        { .body = HALF "@%p1 mov.u32 %r1, %t; @%p1 " STORE },
        { .body = HALF "@%p1 mov.u32 %r1, %t; selp.b32 %r1, %r1, 5, %p1;\n" STORE },
        { .body = HALF "selp.b64 %l1, %l2, %l3, %p1; mov.b64 {%r5, %r6}, %l1; mov.u32 %r1, 1;\n" STORE },
        /* the defined operand decides the result */
        { .body = HALF "and.pred %p2, %p1, %p3; not.pred %p4, %p1; and.pred %p2, %p2, %p4; @%p2 trap;" },
        { .body = "setp.lt.u32 %p1, %t, 32; or.pred %p2, %p3, %p1; @!%p2 trap;" },
        { .body = "setp.lt.u32 %p1, %t, 32; setp.eq.and.u32 %p2, %r5, 3, !%p1; @%p2 trap;" },
        { .body = "setp.lt.u32 %p1, %t, 32; setp.eq.or.u32 %p2, %r5, 3, %p1; @!%p2 trap;" },
        { .body = HALF "@%p1 mov.u32 %r2, %t; shfl.sync.idx.b32 %r1, %r2, 7, 31, -1;\n" STORE },
        { .body = TILE HALF "@%p1 mov.u32 %r2, %t; st.shared.u32 [%r8], %r2; bar.sync 0;\n"
                  "and.b32 %r3, %t, 15; mad.lo.u32 %r3, %r3, 4, %r9; ld.shared.u32 %r1, [%r3];\n" STORE },
        { .body = WIDE "st.shared.v2.u32 [%r8], {%r2, %r3}; st.shared.v2.u32 [%r8], {%t, %t};\n"
                  "ld.shared.u32 %r1, [%r8+4];\n" STORE },
        { .body = TILE "st.shared.u32 [%r8], %r2; atom.shared.exch.b32 %r3, [%r8], %t; ld.shared.u32 %r1, [%r8];\n" STORE },
        { .body = TILE "st.shared.u32 [%r8], %r2; cp.async.ca.shared.global [%r8], [%in], 4; cp.async.wait_all;\n"
                  "ld.shared.u32 %r1, [%r8];\n" STORE },
        { .body = ".local .align 8 .b8 l[16]; .reg .b64 %a; mov.u64 %a, l; cvta.local.u64 %a, %a;\n"
                  "st.v2.u32 [%a], {%r2, %t}; ld.u32 %r1, [%a+4];\n" STORE },
    };
    check_rows(rows, sizeof rows / sizeof *rows, true);
}

TEST(an_undefined_value_is_found_where_a_result_depends_on_it)
{
    static const row rows[] = {
        { "add.u32 %r1, %r2, 1;\n" STORE, 1, 0, "register %r1 holds a value that this thread never initialised, and it is stored to global memory" },
        { HALF "@%p1 mov.u32 %r1, %t;\n" STORE, 2, 16, "%r1" },
        { HALF "@!%p1 mov.u32 %r2, 1;\nselp.b32 %r1, %r2, %t, %p1;\n" STORE, 3, 0, "%r1" },
        { "selp.b32 %r1, 1, 2, %p1;\n" STORE, 1, 0, "%r1" },
        { "ld.global.u32 %r1, [%l1];", 0, 0, "register %l1 holds a value that this thread never initialised, and it is used as an address" },
        { "mul.wide.u32 %l1, %r1, 4;\nst.global.u32 [%l1], %t;", 1, 0, "%l1 holds a value that this thread never initialised, and it is used as an address" },
        { "@%p1 mov.u32 %r1, 0;", 0, 0, "register %p1 holds a value that this thread never initialised, and it guards this instruction" },
        { "setp.lt.u32 %p1, %r1, 5;\n@%p1 bra $x;\n$x:", 1, 0, "%p1" },
        { HALF "@%p1 mov.u32 %r2, 1; setp.eq.u32 %p2, %r2, 1;\nand.pred %p3, %p2, %p2;\n@%p3 bra $x;\n$x:", 3, 16, "%p3" },
        { HALF "setp.eq.and.u32 %p2, %r5, 3, %p1;\n@%p2 trap;", 2, 0, "%p2" },
        { HALF "or.pred %p2, %p3, %p1;\n@%p2 bra $x;\n$x:", 2, 16, "%p2" },
        { HALF "xor.pred %p2, %p1, %p3;\n@%p2 bra $x;\n$x:", 2, 0, "%p2" },
        { HALF "@%p1 mov.u32 %r2, %t;\nshfl.sync.up.b32 %r1|%p3, %r2, 1, 0, -1; @!%p3 mov.u32 %r1, 0;\n" STORE, 3, 17, "%r1" },
        { HALF "@%p1 mov.u32 %r2, %t; setp.eq.u32 %p2, %r2, 1;\nvote.sync.ballot.b32 %r1, %p2, -1;\n" STORE, 3, 0, "%r1" },
        { TILE HALF "@%p1 mov.u32 %r2, %t; st.shared.u32 [%r8], %r2; bar.sync 0;\n"
          "mad.lo.u32 %r3, %t, -4, %r9; ld.shared.u32 %r1, [%r3+124];\n" STORE, 5, 0, "%r1" },
        { WIDE "st.shared.v2.u32 [%r8], {%t, %r3};\nld.shared.u8 %r1, [%r8+7];\n" STORE, 4, 0, "%r1" },
        { ".local .align 8 .b8 l[16];\nst.local.v2.u32 [l], {%t, %r3}; ld.local.v2.u32 {%r4, %r1}, [l];\n" STORE, 2, 0, "%r1" },
        { "atom.global.add.u32 %r2, [%out], %r1;", 0, 0, "register %r1 holds a value that this thread never initialised, and this instruction depends on it" },
        { "bar.sync %r1;", 0, 0, "%r1" },
    };
    check_rows(rows, sizeof rows / sizeof *rows, false);
}
/* clang-format on */

TEST(blocks_begin_with_uninitialized_shared_memory)
{
    run r = { .text = KERNEL(TILE "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;\n"
                                  "@%p1 mov.u32 %r2, 1; @%p1 st.shared.u32 [%r8], %r2;\n"
                                  "@!%p1 st.shared.u32 [%r8], %r2; ld.shared.u32 %r3, [%r8];\n"
                                  "@%p1 st.global.u32 [%slot], %r3; @%p1 ret;\n"
                                  "st.global.u32 [%slot], %r3;"),
              .blocks = 2,
              .checks = &carrying };
    assert_false(run_kernel(&r));
    assert_true(r.report.fault == EMU_UNDEFINED_REGISTER && r.report.block[0] == 1 &&
                r.report.line == BODY_LINE + 6);
}
