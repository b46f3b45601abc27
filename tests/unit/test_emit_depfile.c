#include "test_arena.h"
#include "emit/emit.h"

static void assert_depfile(const char *output, const char *input, const char *expected)
{
    arena *a = arena_new();
    strbuf out = strbuf_new(a);
    emit_depfile(&out, output, &input, 1);
    assert_string_equal(out.text, expected);
    arena_free(a);
}

ARENA_TEST(an_output_depends_on_inputs)
{
    static const char *const inputs[] = { "kernels.ini", "more.ini" };
    strbuf out = strbuf_new(a);
    emit_depfile(&out, "out/a.h", inputs, 2);
    assert_string_equal(out.text, "out/a.h: kernels.ini \\\n  more.ini\nmore.ini:\n");
}

ARENA_TEST(no_input_is_an_empty_rule)
{
    strbuf out = strbuf_new(a);
    emit_depfile(&out, "a.h", NULL, 0);
    assert_string_equal(out.text, "a.h:\n");
}

TEST(special_characters_of_make_are_escaped)
{
    assert_depfile("my out/a.h", "my specs/k.ini", "my\\ out/a.h: my\\ specs/k.ini\n");
    assert_depfile("a#b", "c$d", "a\\#b: c$$d\n");
    assert_depfile("c:/a.h", "b", "c\\:/a.h: b\n");
}

TEST(a_backslash_is_doubled_only_where_it_would_escape)
{
    assert_depfile("a\\b", "c", "a\\b: c\n");
    assert_depfile("a\\ b", "c", "a\\\\\\ b: c\n");
    assert_depfile("a", "c\\", "a: c\\\\\n");
}
