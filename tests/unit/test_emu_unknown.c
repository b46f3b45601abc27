/* An instruction unknown to the emulator faults only when it is executed. */
#include "test_arena.h"
#include "test_emu_run.h"

/* Two kernels with declarations between them; the body of k starts on line 7. */
#define MODULE(declarations, body)                                                             \
    PTX_HEAD ".visible .entry other() {\nret; }\n" declarations ".visible .entry k() {\n" body \
             "\nret; }\n"

typedef struct unknown {
    const char *text;
    unsigned line;
    const char *message;
} unknown;

/* clang-format off */
static const unknown known_when_reached[] = {
    { MODULE("", ".reg .b64 %d<3>;\ntcgen05.mma.cta_group::1.kind::f16 {%f1, %f2}, %d1, %d2, p, 1, 1;"), 8,
      "unknown instruction 'tcgen05.mma.cta_group::1.kind::f16'" },
    { MODULE("", "cp.async.bulk.tensor.2d.shared::cluster.global.tile [%rd1], [tensor, {%r1, %r2}], [bar];"), 7,
      "is not a known form of cp" },
    { MODULE("", "tcgen05.wait::ld.sync.aligned;"), 7, "instruction 'tcgen05" },
    { MODULE(".extern .func vanish(.param .b64 p);\n", ".reg .b64 %l1; mov.u64 %l1, 1; call vanish, (%l1);"), 8,
      "the function 'vanish' has no body in this module" },
    { MODULE(".func f(.reg .b64 q) {\ncall q, (q), p; ret; }\n", ".reg .b64 %l1; mov.u64 %l1, f; call f, (%l1);"), 7,
      "'f' calls itself through a pointer" },
    { MODULE(".func f(.reg .b32 v) {\ncall f, (v); ret; }\n", ".reg .b32 %r1; mov.b32 %r1, 1; call f, (%r1);"), 7,
      "'f' calls itself with parameters in registers" },
};
/* clang-format on */

static emu_report launch(const emu_module *module, const char *entry)
{
    static char message[256];
    emu_memory *m = emu_memory_new(NULL);
    emu_report report;
    emu_launch_config config = {
        .module = module, .entry = entry, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }
    };
    emu_launch(m, &config, NULL, &report);
    snprintf(message, sizeof message, "%s", report.message);
    report.message = message;
    emu_memory_free(m);
    return report;
}

ARENA_TEST(an_unknown_instruction_stops_a_kernel_that_reaches_it)
{
    for (size_t i = 0; i < sizeof known_when_reached / sizeof *known_when_reached; i++) {
        const unknown *u = &known_when_reached[i];
        emu_report report, listed;
        assert_null(emu_load(a, u->text, strlen(u->text), &report));
        assert_int_equal(report.fault, EMU_SYNTAX);
        const emu_module *m = emu_load_any(a, u->text, strlen(u->text), &report);
        if (!m)
            fail_msg("%s\n refused: line %u: %s", u->text, report.line, report.message);
        assert_true(emu_unknown(m, 0, &listed));
        assert_false(emu_unknown(m, 1, &report));
        assert_int_equal(launch(m, "other").fault, EMU_OK);
        report = launch(m, "k");
        if (report.fault != EMU_UNKNOWN || report.line != u->line || listed.line != u->line ||
            !strstr(report.message, u->message) || strcmp(report.message, listed.message) != 0)
            fail_msg("%s\n  gives %s, line %u: %s\n  expected line %u: %s", u->text,
                     emu_fault_name(report.fault), report.line, report.message, u->line,
                     u->message);
    }
}

ARENA_TEST(an_unknown_instruction_that_is_not_reached_is_no_fault)
{
    static const char *const texts[] = {
        MODULE("", "bra $end;\ntcgen05.fence::before_thread_sync;\n$end:"),
        MODULE("", ".reg .pred %p; setp.ne.u32 %p, 1, 1;\n@%p tcgen05.wait::ld.sync.aligned;"),
        MODULE(".func f(.reg .b32 left) {\n.reg .pred %p; setp.eq.u32 %p, left, 0; @%p ret;\n"
               "sub.u32 left, left, 1; call f, (left); ret; }\n",
               "call f, (0);"),
        MODULE(".alias f, g;\n.unheard_of { .of \"x\" { 1 } }\n", ".unheard_of 3, 4;"),
        MODULE(".visible .entry unusual() .unheard_of 1, 2 .maxntid 32 {\n ret; }\n", ""),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        emu_report report;
        const emu_module *m = emu_load_any(a, texts[i], strlen(texts[i]), &report);
        if (!m)
            fail_msg("%s\n refused: line %u: %s", texts[i], report.line, report.message);
        assert_true(emu_unknown(m, 0, &report));
        report = launch(m, "k");
        if (report.fault)
            fail_msg("%s\n  gives line %u: %s", texts[i], report.line, report.message);
    }
}

ARENA_TEST(all_unknown_instructions_are_listed)
{
    static const char text[] =
        MODULE(".unheard_of;\n", "tcgen05.fence::before_thread_sync;\nret;\ncall nobody;\n");
    emu_report what;
    const emu_module *m = emu_load_any(a, text, strlen(text), &what);
    assert_non_null(m);
    assert_true(emu_unknown(m, 0, &what) && what.line == 6);
    assert_string_equal(what.message, "'.unheard_of' is unknown or misplaced");
    assert_true(emu_unknown(m, 1, &what) && what.line == 8);
    assert_true(emu_unknown(m, 2, &what) && what.line == 10);
    assert_false(emu_unknown(m, 3, &what));
}

ARENA_TEST(a_syntax_error_is_reported_despite_unknown_instructions)
{
    static const unknown rows[] = {
        { MODULE("", "tcgen05.fence::before_thread_sync }"), 7, "expected ';' before '}'" },
        { MODULE("", "tcgen05.fence::before_thread_sync; add.u32 %r1, 1, 1;"), 7,
          "'%r1' is not declared" },
        { MODULE("", "tcgen05.fence #; }"), 8, "is unknown or misplaced" },
        { MODULE("nonsense;", ""), 6, "'nonsense' is unknown or misplaced" },
        { MODULE("", "@%p1 tcgen05.fence;"), 7, "a guard must be a predicate register" },
        { PTX_HEAD ".unheard_of", 4, "expected ';' before the end of the text" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        emu_report report;
        if (emu_load_any(a, rows[i].text, strlen(rows[i].text), &report) ||
            report.line != rows[i].line || !strstr(report.message, rows[i].message))
            fail_msg("%s\n  gives line %u: %s\n  expected line %u: %s", rows[i].text, report.line,
                     report.message, rows[i].line, rows[i].message);
    }
}
