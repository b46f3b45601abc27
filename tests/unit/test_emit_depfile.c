#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emit/depfile.h"

static void assert_depfile(const char *output, const char *input, const char *expected)
{
    arena *a = arena_new();
    strbuf out = strbuf_new(a);
    emit_depfile(&out, &output, 1, &input, 1);
    assert_string_equal(out.text, expected);
    arena_free(a);
}

static void outputs_depend_on_inputs(void **state)
{
    static const char *const outputs[] = { "out/a.h", "out/a.json" };
    static const char *const inputs[] = { "kernels.ini", "more.ini" };
    (void)state;
    arena *a = arena_new();
    strbuf out = strbuf_new(a);
    emit_depfile(&out, outputs, 2, inputs, 2);
    assert_string_equal(out.text, "out/a.h out/a.json: kernels.ini \\\n  more.ini\nmore.ini:\n");
    arena_free(a);
}

static void no_input_is_an_empty_rule(void **state)
{
    static const char *const output = "a.h";
    (void)state;
    arena *a = arena_new();
    strbuf out = strbuf_new(a);
    emit_depfile(&out, &output, 1, NULL, 0);
    assert_string_equal(out.text, "a.h:\n");
    arena_free(a);
}

static void what_make_would_read_otherwise_is_escaped(void **state)
{
    (void)state;
    assert_depfile("my out/a.h", "my specs/k.ini", "my\\ out/a.h: my\\ specs/k.ini\n");
    assert_depfile("a#b", "c$d", "a\\#b: c$$d\n");
    assert_depfile("c:/a.h", "b", "c\\:/a.h: b\n");
}

static void a_backslash_is_doubled_only_where_it_would_escape(void **state)
{
    (void)state;
    assert_depfile("a\\b", "c", "a\\b: c\n");
    assert_depfile("a\\ b", "c", "a\\\\\\ b: c\n");
    assert_depfile("a", "c\\", "a: c\\\\\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_depend_on_inputs),
        cmocka_unit_test(no_input_is_an_empty_rule),
        cmocka_unit_test(what_make_would_read_otherwise_is_escaped),
        cmocka_unit_test(a_backslash_is_doubled_only_where_it_would_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
