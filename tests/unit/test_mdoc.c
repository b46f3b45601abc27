/* Manual pages rendered as text. tests/manual.py compares whole pages with man. */
#include <string.h>

#include "test_arena.h"
#include "base/mdoc.h"

static void assert_reads(const char *page, const char *expected)
{
    arena *a = arena_new();
    strbuf out = strbuf_new(a);
    const char *error;
    unsigned line;
    bool right = mdoc_render(&out, page, &line, &error);
    if (!right)
        fail_msg("line %u: %s", line, error);
    assert_string_equal(out.text, expected);
    arena_free(a);
}

TEST(inline_macros_set_the_style_of_words)
{
    assert_reads(".Dt TOOL 1\n"
                 ".Sh NAME\n.Nm tool\n.Nd do it\n"
                 ".Sh SYNOPSIS\n.Nm\n.Fl -in Ns Op = Ns Ar file\n.Op Ar word ...\n"
                 ".Sh TEXT\n.Nm\nreads\n.Pa a.ini ,\n.Ql x = y ;\nsee\n.Xr tool 5 .\n"
                 "\\&.It a\\eb\n.Fn f\nof\n.In cuda.h ,\n.Pq Va n\n.Sq \\&; .\n",
                 "TOOL(1)\n\n"
                 "NAME\n     tool - do it\n\n"
                 "SYNOPSIS\n     tool --in[=file] [word ...]\n\n"
                 "TEXT\n     tool reads a.ini, 'x = y'; see tool(5). .It a\\b f() of <cuda.h>, (n) "
                 "';'.\n");
}

TEST(lists_and_examples_have_margins)
{
    assert_reads(".Sh A\n.Bl -tag -width Ds\n.It Ic k\ncolumns\n.It Ic a_long_one\nof it\n.El\n"
                 ".Pp\n.Bl -enum -compact\n.It\none\n.It\ntwo\n.El\n"
                 ".Bd -literal -offset 2n\nif (a)\n    b;\n\n\\&.c\n.Ed\n.Pp\nend\n",
                 "A\n     k     columns\n\n     a_long_one\n           of it\n\n"
                 "     1.  one\n     2.  two\n\n"
                 "       if (a)\n           b;\n\n       .c\n\n     end\n");
}

ARENA_TEST(a_word_that_passes_the_margin_goes_on_the_next_line)
{
    enum { WORDS = 20 };
    char page[8 * WORDS + 1] = "", *at = page;
    for (int i = 0; i < WORDS; i++, at += strlen(at))
        memcpy(at, "w\xc3\xb6rds\n", sizeof "w\xc3\xb6rds\n"); /* six columns with the space */
    strbuf out = strbuf_new(a);
    const char *error;
    unsigned line;
    assert_true(mdoc_render(&out, ".Sh A", &line, &error));
    out.length = 0;
    strbuf_put(&out, "");
    assert_true(mdoc_render(&out, page, &line, &error));
    assert_int_equal(strcspn(out.text, "\n"), 13 * 7 - 1); /* 13 words: 77 of 78 columns */
}

TEST(an_unknown_macro_is_reported_with_its_line)
{
    static const struct {
        const char *page, *error;
        unsigned line;
    } wrong[] = {
        { ".Sh A\ntext\n.Zz b\n", "unknown macro 'Zz'", 3 },
        { ".Sh A\n.It b\n", "no list has begun", 2 },
        { ".El\n", "no list has begun", 1 },
        { ".Bl -column\n", "a list must be -tag, -enum or -dash", 1 },
        { ".Bl -tag\n.It a\n", "a list or an example has no end", 2 },
        { ".Bd -literal\na\n", "a list or an example has no end", 2 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        arena *a = arena_new();
        strbuf out = strbuf_new(a);
        const char *error;
        unsigned line;
        assert_false(mdoc_render(&out, wrong[i].page, &line, &error));
        assert_string_equal(error, wrong[i].error);
        assert_int_equal(line, wrong[i].line);
        arena_free(a);
    }
}
