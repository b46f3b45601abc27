/* Calls, jump tables, and the properties that a module reports. */
#include "test_arena.h"
#include "test_emu_bad.h"

#define CALLER(functions, body)                                                                 \
    PTX_HEAD functions                                                                          \
        "\n.visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                             \
        ".reg .pred %p<4>; .reg .b32 %r<9>, %t; .reg .b64 %l1, %out, %slot;\n"                  \
        "ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %slot, %t, 8, %out;\n" body \
        "cvt.u64.u32 %l1, %r1; st.global.u64 [%slot], %l1; ret;\n}\n"

static void expect_threads(const run *r, uint64_t (*value)(unsigned thread))
{
    expect_each(r, 32, value(t));
}

#define TWICE_IN_REGISTERS                                                                     \
    ".func (.reg .u32 result) twice(.reg .u32 value)\n"                                        \
    "{ .reg .pred %p<2>; setp.lt.u32 %p1, value, 10; @%p1 bra $few; mov.u32 result, 0; ret;\n" \
    "$few: shl.b32 result, value, 1; add.u32 result, result, 1; }\n"
#define TWICE_IN_MEMORY                                                                 \
    ".func (.param .b32 result) twice(.param .b32 value)\n"                             \
    "{ .reg .pred %p<2>; .reg .b32 %r<3>; ld.param.u32 %r1, [value]; mov.u32 %r2, 0;\n" \
    "setp.ge.u32 %p1, %r1, 10; st.param.b32 [result], %r2; @%p1 ret;\n"                 \
    "mad.lo.u32 %r2, %r1, 2, 1; st.param.b32 [result], %r2; ret; }\n"

TEST(a_call_passes_registers_and_memory)
{
    static const char *const texts[] = {
        CALLER(TWICE_IN_REGISTERS, "call (%r1), twice, (%t);\n"),
        CALLER(TWICE_IN_MEMORY, "call.uni (%r1), twice, (%t);\n"),
        CALLER(TWICE_IN_MEMORY, "{ .param .b32 given, got; st.param.b32 [given], %t;\n"
                                "call (got), twice, (given); ld.param.b32 %r1, [got]; }\n"),
        /* a nested call; the outer function has its own $few and %r1 */
        CALLER(
            TWICE_IN_REGISTERS
            ".func (.reg .b32 r) outer(.reg .b32 v) { .reg .b32 %r<2>; mov.b32 %r1, v; bra $few;\n"
            "trap; $few: call (r), twice, (%r1); }\n",
            "mov.b32 %r1, 99; call (%r1), outer, (%t);\n"),
        /* a declaration before the call, the body after it */
        CALLER(".func (.reg .u32 result) twice(.reg .u32 value);\n", "call (%r1), twice, (%t);\n")
            TWICE_IN_REGISTERS,
        /* only some lanes call */
        CALLER(TWICE_IN_REGISTERS,
               "mov.b32 %r1, 0; setp.lt.u32 %p1, %t, 10; @!%p1 bra $no; call (%r1), twice, (%t);\n"
               "$no: bar.warp.sync -1;\n"),
        CALLER(".func note(.reg .b64 to, .reg .b32 v) { .reg .b32 %r1; mad.lo.u32 %r1, v, 2, 1;\n"
               "st.global.b32 [to], %r1; }\n",
               "mov.b32 %r1, 0; st.global.b32 [%slot], %r1; setp.ge.u32 %p1, %t, 10;\n"
               "@!%p1 call note, (%slot, %t); ld.global.b32 %r1, [%slot];\n"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        run r = { .text = texts[i] };
        run_well(&r);
        expect_each(&r, 32, t < 10 ? 2 * t + 1 : 0);
    }
}

#define SIXTEEN(text) \
    text text text text text text text text text text text text text text text text
#define CALLS_SIXTEEN_TIMES(name, called) ".func " name "() { " SIXTEEN("call " called "; ") "}\n"

TEST(an_invalid_call_is_refused)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *message;
    } rows[] = {
        { CALLER("", "call nobody, (%t);\n"), 9, "'nobody' has no body in this module" },
        { CALLER(".func f(.reg .b32 v) { call g, (v); }\n.func g(.reg .b32 v) {\ncall f, (v); }\n",
                 "call f, (%t);\n"),
          6, "'f' calls itself" },
        { CALLER(".func a() { ret; }\n" CALLS_SIXTEEN_TIMES("b", "a") CALLS_SIXTEEN_TIMES("c", "b")
                     CALLS_SIXTEEN_TIMES("d", "c"),
                 "call d;\n"),
          7, "too many calls" },
        { CALLER(TWICE_IN_REGISTERS, "call twice, (%t);\n"), 12, "more results than this call" },
        { CALLER(TWICE_IN_REGISTERS, "call (%r1), twice;\n"), 12, "more arguments than this call" },
        { CALLER(TWICE_IN_REGISTERS, "call (%r1), twice, (%t, 1);\n"), 12,
          "has 1 arguments; this call has 2" },
        { CALLER(TWICE_IN_MEMORY, "{ .param .b64 v; call (%r1), twice, (v); }\n"), 13,
          "'v' has 8 bytes; the function's 'value' has 4" },
        { CALLER(TWICE_IN_REGISTERS, "call (%r1), twice, (%l1);\n"), 12, "%l1 is a .b64" },
        { CALLER("", "call 5;\n"), 9, "expected a function's name before '5'" },
        { CALLER(".func f() { add.u32 %r1, %t, 1; }\n", "call f;\n"), 4, "'%r1' is not declared" },
        { CALLER(".func f() { bra $there; }\n", "call f; $there:\n"), 4,
          "'$there' is not declared" },
        { CALLER("", "bra $in; { $in: }\n"), 9, "'$in' is not declared" },
        { CALLER("", "brx.idx %t, $none;\n"), 9, "name of a .branchtargets" },
        { CALLER("", "$table: .branchtargets $a, $b; brx.idx %t, $table; $a:\n"), 9,
          "'$b' is not declared" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run r = { .text = rows[i].text };
        if (run_kernel(&r) || r.report.fault != EMU_SYNTAX || r.report.line != rows[i].line ||
            !strstr(r.message, rows[i].message))
            fail_msg("%s\n  gives line %u: %s\n  expected line %u: %s", rows[i].text, r.report.line,
                     r.message, rows[i].line, rows[i].message);
    }
}

/* Recursive functions:
 * - the sum of 1 to n, in n calls
 * - each call has its own local array, which its callee writes to
 * - mutual recursion
 * - two results, of which the first must survive the second call
 */
#define GIVEN(value) "{ .param .b32 given, got; st.param.b32 [given], " value ";\n"
#define SUM                                                                                        \
    ".func (.param .b32 r) sum(.param .b32 n)\n"                                                   \
    "{ .reg .pred %p<2>; .reg .b32 %r<5>; ld.param.u32 %r1, [n]; mov.b32 %r3, 0;\n"                \
    "setp.eq.u32 %p1, %r1, 0; @%p1 bra $end; sub.u32 %r2, %r1, 1;\n" GIVEN(                        \
        "%r2") "call.uni (got), sum, (given); ld.param.b32 %r3, [got]; } add.u32 %r3, %r3, %r1;\n" \
               "$end: st.param.b32 [r], %r3; ret; }\n"
#define SUM_IN_ARRAYS                                                                      \
    ".func add(.param .b64 to, .param .b32 n)\n"                                           \
    "{ .local .align 8 .b32 own[2]; .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %l<4>;\n" \
    "ld.param.u64 %l1, [to]; ld.param.u32 %r1, [n]; mov.b32 %r2, 0; mov.u64 %l2, own;\n"   \
    "st.local.b32 [%l2+4], %r2; setp.eq.u32 %p1, %r1, 0; @%p1 bra $end;\n"                 \
    "sub.u32 %r3, %r1, 1; { .param .b64 a; .param .b32 b; st.param.b64 [a], %l2;\n"        \
    "st.param.b32 [b], %r3; call.uni add, (a, b); }\n"                                     \
    "ld.local.b32 %r2, [own+4]; add.u32 %r2, %r2, %r1; $end: st.local.b32 [%l1+4], %r2; ret; }\n"
#define EVEN_AND_ODD                                                                           \
    ".func (.param .b32 r) odd(.param .b32 n);\n"                                              \
    ".func (.param .b32 r) even(.param .b32 n)\n"                                              \
    "{ .reg .pred %p<2>; .reg .b32 %r<3>; ld.param.u32 %r1, [n]; mov.b32 %r2, 1;\n"            \
    "setp.eq.u32 %p1, %r1, 0; @%p1 bra $end; sub.u32 %r1, %r1, 1;\n" GIVEN(                    \
        "%r1") "call (got), odd, (given); ld.param.b32 %r2, [got]; }\n"                        \
               "$end: st.param.b32 [r], %r2; ret; }\n"                                         \
               ".func (.param .b32 r) odd(.param .b32 n)\n"                                    \
               "{ .reg .pred %p<2>; .reg .b32 %r<3>; ld.param.u32 %r1, [n]; mov.b32 %r2, 0;\n" \
               "setp.eq.u32 %p1, %r1, 0; @%p1 bra $end; sub.u32 %r1, %r1, 1;\n" GIVEN(         \
                   "%r1") "call (got), even, (given); ld.param.b32 %r2, [got]; }\n"            \
                          "$end: st.param.b32 [r], %r2; ret; }\n"
#define FIBONACCI                                                                           \
    ".func (.param .b32 r) fib(.param .b32 n)\n"                                            \
    "{ .reg .pred %p<2>; .reg .b32 %r<6>; ld.param.u32 %r1, [n]; mov.b32 %r2, %r1;\n"       \
    "setp.lt.u32 %p1, %r1, 2; @%p1 bra $end; sub.u32 %r3, %r1, 1;\n" GIVEN(                 \
        "%r3") "call (got), fib, (given); ld.param.b32 %r4, [got]; } sub.u32 %r3, %r1, "    \
               "2;\n" GIVEN("%r3") "call (got), fib, (given); ld.param.b32 %r5, [got]; }\n" \
                                   "add.u32 %r2, %r4, %r5; $end: st.param.b32 [r], %r2; ret; }\n"

static uint64_t sum_up_to(unsigned t)
{
    return t * (t + 1) / 2;
}

static uint64_t one_where_even(unsigned t)
{
    return t % 2 == 0;
}

static uint64_t fibonacci_below_12(unsigned t)
{
    uint64_t a = 0, b = 1;
    for (t %= 12; t--; b = a + b, a = b - a)
        continue;
    return a;
}

TEST(a_function_calls_itself)
{
    static const struct {
        const char *text;
        uint64_t (*value)(unsigned thread);
    } rows[] = {
        { CALLER(SUM, GIVEN("%t") "call (got), sum, (given); ld.param.b32 %r1, [got]; }\n"),
          sum_up_to },
        { CALLER(SUM, "mov.b32 %r1, 0; setp.ge.u32 %p1, %t, 3;\n" GIVEN(
                          "%t") "@%p1 call (got), sum, (given); @%p1 ld.param.b32 %r1, [got]; }\n"
                                "setp.eq.u32 %p2, %t, 1; @%p2 mov.b32 %r1, 1;\n"
                                "setp.eq.u32 %p2, %t, 2; @%p2 mov.b32 %r1, 3;\n"),
          sum_up_to },
        { CALLER(SUM_IN_ARRAYS, ".local .align 8 .b32 top[2]; .reg .b64 %l9; mov.u64 %l9, top;\n"
                                "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %l9;\n"
                                "st.param.b32 [b], %t; call.uni add, (a, b); }\n"
                                "ld.local.b32 %r1, [top+4];\n"),
          sum_up_to },
        { CALLER(EVEN_AND_ODD,
                 GIVEN("%t") "call (got), even, (given); ld.param.b32 %r1, [got]; }\n"),
          one_where_even },
        { CALLER(FIBONACCI, "rem.u32 %r2, %t, 12;\n" GIVEN(
                                "%r2") "call (got), fib, (given); ld.param.b32 %r1, [got]; }\n"),
          fibonacci_below_12 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run r = { .text = rows[i].text, .stack_size = 4096 };
        run_well(&r);
        expect_threads(&r, rows[i].value);
    }
}

#define DEEP CALLER(SUM, GIVEN("70") "call (got), sum, (given); ld.param.b32 %r1, [got]; }\n")

TEST(calls_have_the_stack_of_the_launch)
{
    run r = { .text = DEEP };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.fault, EMU_OUT_OF_BOUNDS);
    assert_non_null(strstr(r.message, "stack overflow: 1024 of the thread's 1024 bytes"));
    r = (run){ .text = DEEP, .stack_size = 2048 };
    run_well(&r);
    expect_each(&r, 32, 70 * 71 / 2);
}

/* A register that this call has not written, although its caller has. */
TEST(each_call_has_its_own_registers)
{
    run r = { .text = CALLER(".func f(.param .b32 n)\n"
                             "{ .reg .pred %p<2>; .reg .b32 %r<4>; ld.param.u32 %r1, [n];\n"
                             "setp.eq.u32 %p1, %r1, 0; @%p1 bra $zero; mov.b32 %r2, 5;\n"
                             "{ .param .b32 a; mov.b32 %r3, 0; st.param.b32 [a], %r3;\n"
                             "call f, (a); } ret;\n$zero: add.u32 %r3, %r2, 1; ret; }\n",
                             "{ .param .b32 a; mov.b32 %r1, 1; st.param.b32 [a], %r1;\n"
                             "call f, (a); }\n") };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.fault, EMU_UNDEFINED_REGISTER);
    assert_non_null(strstr(r.message, "register %r2 is read"));
}

/* Allocates t + 1 words for thread t, and writes and reads the last word. */
#define TAKES(behind)                                                                       \
    ".reg .b64 %n, %a, %q, %s; cvt.u64.u32 %n, %t; shl.b64 %n, %n, 2; add.u64 %n, %n, 4;\n" \
    "stacksave.u64 %s; alloca.u64 %a, %n, 16; add.u64 %q, %a, %n;\n"                        \
    "st.local.b32 [%q+-4], %t;\n" behind

TEST(alloca_returns_stack_memory)
{
    static const char *const texts[] = {
        CALLER("", TAKES("ld.local.b32 %r1, [%q+-4];\n")),
        /* aligned, and the same address again after stackrestore */
        CALLER("", TAKES("mov.b64 %n, %a; stackrestore.u64 %s; alloca.u64 %a, 4, 16;\n"
                         "sub.u64 %n, %n, %a; rem.u64 %q, %a, 16; or.b64 %n, %n, %q;\n"
                         "cvt.u32.u64 %r1, %n; add.u32 %r1, %r1, %t;\n")),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        run r = { .text = texts[i] };
        run_well(&r);
        expect_each(&r, 32, t);
    }
    static const struct {
        const char *text, *says;
        emu_fault fault;
    } faults[] = {
        { CALLER("", TAKES("alloca.u64 %a, 1000, 8; mov.b32 %r1, 0;\n")),
          "alloca of 1000 bytes with 28 of", EMU_OUT_OF_BOUNDS },
        { CALLER("", TAKES("stackrestore.u64 %s; alloca.u64 %a, 4; ld.local.b32 %r1, [%a];\n")),
          "reads bytes that were never written", EMU_UNINITIALISED },
        { CALLER("", TAKES("stackrestore.u64 %q; stackrestore.u64 %s; stackrestore.u64 %q;\n"
                           "mov.b32 %r1, 0;\n")),
          "a value that stacksave has not returned", EMU_OUT_OF_BOUNDS },
        { CALLER("", TAKES("ld.local.b32 %r1, [%a+2048];\n")), "'(stack)' of 1024 bytes",
          EMU_OUT_OF_BOUNDS },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        run r = { .text = faults[i].text };
        if (run_kernel(&r) || r.report.fault != faults[i].fault ||
            !strstr(r.message, faults[i].says))
            fail_msg("%s gives %s", faults[i].text, r.message);
    }
}

#define FREES(pointer)                                            \
    CALLER("", "call (%l1), malloc, (64); st.u32 [%l1+60], %t;\n" \
               "ld.global.u32 %r1, [%l1+60]; " pointer "\ncall free, (%l1);\n")

TEST(a_kernel_frees_its_allocations_exactly_once)
{
    static const char *const right[] = { FREES(""), FREES("mov.u64 %l1, 0;") };
    static const char *const wrong[] = { FREES("add.u64 %l1, %l1, 8;"), FREES("mov.u64 %l1, %out;"),
                                         FREES("call free, (%l1);") };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        run r = { .text = right[i] };
        run_well(&r);
        expect_each(&r, 32, t);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        run r = { .text = wrong[i] };
        if (run_kernel(&r) || r.report.fault != EMU_OUT_OF_BOUNDS || r.report.line != 11 ||
            !strstr(r.message, "free: "))
            fail_msg("%s\n  gives line %u: %s", wrong[i], r.report.line, r.message);
    }
}

#define FUNCTIONS                                                                        \
    ".func (.param .b32 r) plus(.param .b32 x);\n"                                       \
    ".global .align 8 .u64 table[3] = {plus, generic(twice), other+0};\n"                \
    ".func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x];\n" \
    "add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }\n"                                 \
    ".func (.param .b64 r) other(.param .b32 x) { trap; }\n"                             \
    ".func (.param .b32 r) plus(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x];\n"  \
    "add.u32 %v, %v, 100; st.param.b32 [r], %v; ret; }\n"                                \
    ".func (.reg .b32 r) zero() { mov.u32 r, 0; ret; }\n"
#define CALL_POINTER                                                               \
    "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %t; st.param.b32 [q], 1;\n" \
    "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"                   \
    "@!%p2 call (q),\n%l1, (p), proto; ld.param.b32 %r1, [q]; }\n"
#define LOAD_POINTER(index)                                                            \
    "rem.u32 %r2, %t, " index "; mov.u64 %l1, table; mad.wide.u32 %l1, %r2, 8, %l1;\n" \
    "ld.global.u64 %l1, [%l1]; setp.eq.u32 %p2, %t, 7;\n"

TEST(a_call_through_a_pointer_calls_each_thread_s_function)
{
    run r = { .text = CALLER(FUNCTIONS, LOAD_POINTER("2") CALL_POINTER) };
    run_well(&r);
    expect_each(&r, 32, t == 7 ? 1 : t % 2 ? 2 * t : t + 100);
    r.text =
        CALLER(FUNCTIONS, "and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 0; setp.ne.u32 %p2, %t, %t;\n"
                          "mov.u64 %l1, plus; @%p1 mov.u64 %l1, zero;\n"
                          "@%p1 call (%r1), %l1, none; @%p1 bra $end;\n" CALL_POINTER "$end:\n");
    run_well(&r);
    expect_each(&r, 32, t % 2 ? t + 100 : 0);
}

TEST(a_call_through_a_pointer_to_no_such_function_is_a_fault)
{
    run r = { .text = CALLER(FUNCTIONS, LOAD_POINTER("3") CALL_POINTER) };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.fault, EMU_OUT_OF_BOUNDS);
    assert_int_equal(r.report.thread[0], 2); /* other returns 8 bytes */
    assert_non_null(strstr(r.message, "which is no function with these parameters"));
    r.text = CALLER(FUNCTIONS, "mov.u64 %l1, 0; setp.ne.u32 %p2, %t, 9;\n" CALL_POINTER);
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.thread[0], 9);
    r.text =
        CALLER(FUNCTIONS,
               "mov.u64 %l1, zero; setp.ne.u32 %p2, %t, %t; add.u64 %l1, %l1, 1;\n" CALL_POINTER);
    assert_false(run_kernel(&r));
}

TEST(variables_start_with_addresses)
{
    static const char *const texts[] = {
        CALLER(".global .b32 a[4] = {5, 6, 7, 8};\n.global .align 8 .u64 p = generic(a)+8;\n",
               "ld.global.u64 %l1, [p]; ld.u32 %r1, [%l1];\n"),
        CALLER(".global .b32 a[4] = {5, 6, 7, 8};\n.const .align 8 .b64 p[2] = {a, a+8};\n",
               "ld.const.u64 %l1, [p+8]; ld.global.u32 %r1, [%l1];\n"),
        CALLER(
            ".global .b32 a[4] = {5, 6, 7, 8};\n.global .align 8 .b8 p[10] = {1, 2, 3, 4, 5, 6, 7, "
            "8, 9, 10};\n.global .align 8 .b8 q[16] = {1, 0, 0, 0, 0, 0, 0, 0, 0xFF(generic(a)+8), "
            "0xFF00(generic(a)+8), 0xFF0000(generic(a)+8), 0xFF000000(generic(a)+8),\n"
            "0xFF00000000(generic(a)+8), 0xFF0000000000(generic(a)+8), "
            "0xFF000000000000(generic(a)+8), 0xFF00000000000000(generic(a)+8)};\n",
            "ld.global.u64 %l1, [q+8]; ld.u32 %r1, [%l1];\n"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        run r = { .text = texts[i] };
        run_well(&r);
        expect_each(&r, 32, 7);
    }
}

#define TABLE "$table: .branchtargets $zero, $one, $seven;\n"
#define CASES                                                                     \
    "trap; $zero: mov.u32 %r1, 5; bra $meet; $one: mov.u32 %r1, 15; bra $meet;\n" \
    "$seven: mov.u32 %r1, 7; $meet: bar.warp.sync -1;\n"

TEST(a_jump_through_a_table_follows_the_index)
{
    static const char *const texts[] = {
        CALLER("", "rem.u32 %r2, %t, 3; " TABLE "brx.idx %r2, $table;\n" CASES),
        CALLER("", "rem.u32 %r2, %t, 3; setp.ne.u32 %p1, %r2, 2; mov.u32 %r1, 7;\n" TABLE
                   "@%p1 brx.idx %r2, $table; bra $meet;\n" CASES),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        run r = { .text = texts[i] };
        run_well(&r);
        expect_each(&r, 32, t % 3 == 2 ? 7 : t % 3 * 10 + 5);
    }
    run r = { .text = CALLER("", TABLE "brx.idx %t, $table;\n" CASES) };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.thread[0], 3);
    assert_non_null(strstr(r.message, "index 3 is past the end of its table"));
}

TEST(a_failed_assertion_is_reported_where_it_is_called)
{
    run r = { .text = CALLER(".extern .func __assertfail(.param .b64 a);\n",
                             "mov.u32 %r1, 1; setp.eq.u32 %p1, %t, 9; mov.b64 %l1, 0;\n"
                             "@%p1 call __assertfail, (%l1);\n") };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.thread[0], 9);
    assert_int_equal(r.report.line, 11);
    assert_int_equal(r.report.fault, EMU_ASSERT);
}

#define STRINGS                                                  \
    ".global .align 1 .b8 file[5] = {102, 46, 99, 117, 0};\n"    \
    ".global .align 1 .b8 text[6] = {120, 32, 60, 32, 49, 0};\n" \
    ".const .align 1 .b8 name[2] = {102};\n"
#define CALL_ASSERT                                                                            \
    "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"      \
    "mov.u64 %l1, text; st.param.b64 [p0], %l1; mov.u64 %l1, file; st.param.b64 [p1], %l1;\n"  \
    "st.param.b32 [p2], 7; mov.u64 %l1, name; st.param.b64 [p3], %l1; st.param.b64 [p4], 1;\n" \
    "call.uni __assertfail, (p0, p1, p2, p3, p4); }\n"

TEST(a_failed_assertion_prints_its_text_and_place_for_each_thread)
{
    run r = { .text =
                  CALLER(STRINGS, "mov.u32 %r1, 1; and.b32 %r2, %t, 15; setp.ne.u32 %p1, %r2, 9; "
                                  "@%p1 bra $fine;\n" CALL_ASSERT "$fine:\n") };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.fault, EMU_ASSERT);
    assert_int_equal(r.report.thread[0], 9);
    assert_string_equal(r.message,
                        "f.cu:7: f: block: [0,0,0], thread: [9,0,0] Assertion `x < 1` failed.\n"
                        "f.cu:7: f: block: [0,0,0], thread: [25,0,0] Assertion `x < 1` failed.");
}

ARENA_TEST(a_module_lists_its_entries_and_variables)
{
    static const char text[] = ".version 7.1\n.target sm_86\n.address_size 64\n"
                               ".const .b8 unit = 1; .const .align 4 .b32 factors[2] = {3, "
                               "4};\n.global .b64 counter = 5;\n"
                               ".entry a(.param .u8 flag, .param .u64 to) .maxntid 64, 2 {\n"
                               ".local .b8 scratch[24]; .shared .b8 tile[100]; .reg .b32 %r<4>; "
                               ".reg .b64 %l<3>; .reg .pred %p<2>;\n"
                               "mov.u32 %r1, tile; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, scratch; "
                               "ld.param.u64 %l1, [to];\n"
                               "add.u32 %r3, %r1, %r2; @%p1 st.global.b32 [%l1], %r3; ret; }\n"
                               ".entry b() { ret; }\n";
    emu_memory *m = emu_memory_new(NULL), *other = emu_memory_new(NULL);
    emu_report report;
    emu_module_info info;
    emu_entry_info entry;
    emu_allocation found;
    size_t offset, size;
    uint64_t at, elsewhere, value;
    emu_module *module = emu_load(a, text, sizeof text - 1, &report);
    assert_non_null(module);
    emu_module_describe(module, &info);
    assert_true(info.target == 86 && info.isa == 71 && info.entry_count == 2);
    assert_int_equal(info.constant_bytes, 12);
    assert_string_equal(emu_entry_name(module, 0), "a");
    assert_string_equal(emu_entry_name(module, 1), "b");
    assert_null(emu_entry_name(module, 2));
    assert_true(emu_entry(module, "a", &entry));
    assert_true(entry.maxntid[0] == 64 && entry.maxntid[1] == 2 && entry.maxntid[2] == 1);
    assert_true(entry.shared_bytes == 100 && entry.local_bytes == 24 && entry.param_bytes == 16);
    assert_int_equal(entry.live_registers, 4); /* the address and the two summands */
    assert_true(emu_param(module, "a", 1, &offset, &size));
    assert_true(offset == 8 && size == 8);
    assert_false(emu_param(module, "a", 2, &offset, &size));
    assert_true(emu_variable(m, module, "counter", &at, &size));
    assert_true(size == 8 && emu_read(m, at, &value, 8) && value == 5);
    assert_true(emu_write(m, at, "12345678", 8));
    assert_true(emu_variable(other, module, "counter", &elsewhere, &size));
    assert_true(emu_read(other, elsewhere, &value, 8) && value == 5);
    assert_false(emu_variable(m, module, "nothing", &at, &size));
    assert_true(emu_find(m, at, &found) && found.variable);
    assert_false(emu_free(m, at));
    assert_int_equal(emu_live(m, NULL, 0, NULL), 0);
    emu_module_forget(m, module);
    assert_true(emu_find(m, at, &found) && found.freed);
    emu_memory_free(other);
    emu_memory_free(m);
}
