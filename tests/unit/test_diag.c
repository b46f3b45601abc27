#include <string.h>

#include "test_arena.h"
#include "base/diag.h"
#include "templates/templates.h"

static location at(unsigned line, unsigned column, unsigned length, const char *text)
{
    return (location){
        .file = "a.ini", .text = text, .line = line, .column = column, .length = length
    };
}

static const char *render(diags *d, bool color)
{
    strbuf out = strbuf_new(d->arena);
    diags_render(d, &out, color);
    return out.text;
}

ARENA_TEST(diagnostics_come_in_the_order_of_their_places)
{
    diags d = diags_new(a);
    diag_error(&d, DIAG_SYNTAX, at(3, 5, 1, NULL), "third");
    diag_note(&d, DIAG_SYNTAX, at(1, 1, 1, NULL), "explains the third");
    diag_note(&d, DIAG_SAME_INSTANCE, at(2, 1, 1, NULL), "on its own");
    diag_warning(&d, DIAG_DUPLICATE_VALUE, at(3, 2, 1, NULL), "second");
    diag_error(&d, DIAG_BAD_TARGET, (location){ 0 }, "first, from nowhere");
    assert_int_equal(d.errors, 2);
    assert_string_equal(render(&d, false), "ptxgen: error: first, from nowhere [E019]\n"
                                           "a.ini:2:1: note: on its own [E025]\n"
                                           "a.ini:3:2: warning: second [E017]\n"
                                           "a.ini:3:5: error: third [E003]\n"
                                           "a.ini:1:1: note: explains the third\n");
}

ARENA_TEST(fifty_of_a_severity_are_shown_and_all_are_counted)
{
    enum { MANY = 1000 };
    diags d = diags_new(a);
    for (unsigned i = 0; i < MANY; i++) {
        diag_warning(&d, DIAG_DUPLICATE_VALUE, at(i, 1, 1, NULL), "warning %u", i);
        diag_error(&d, DIAG_SYNTAX, at(i, 1, 1, NULL), "error %u", i);
        assert_int_equal(diags_full(&d), i >= DIAG_LIMIT - 1);
        diag_note(&d, DIAG_SYNTAX, at(i, 1, 1, NULL), "note %u", i);
    }
    diag_error(&d, DIAG_UNREADABLE, at(1, 1, 1, NULL), "not shown");
    assert_int_equal(d.errors, MANY + 1);
    assert_int_equal(d.warnings, MANY);
    const char *text = render(&d, false);
    size_t lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 3 * DIAG_LIMIT);
    assert_non_null(strstr(text, "warning 49 ["));
    assert_non_null(strstr(text, "error 49 ["));
    assert_non_null(strstr(text, "note 49\n"));
    assert_null(strstr(text, "50"));
    /* The exit status must depend on every reported code. */
    assert_int_equal(d.list.items[d.list.count - 1].code, DIAG_UNREADABLE);
}

ARENA_TEST(messages_of_an_included_file_sort_at_its_include)
{
    diags d = diags_new(a);
    const location b_include = at(4, 1, 1, NULL),
                   c_include = { .file = "b.ini", .from = &b_include, .line = 9 };
    const location in_c = { .file = "c.ini", .from = &c_include, .line = 1, .column = 1 };
    const location in_b = { .file = "b.ini", .from = &b_include, .line = 10, .column = 1 };
    diag_error(&d, DIAG_SYNTAX, at(5, 1, 1, NULL), "last");
    diag_error(&d, DIAG_SYNTAX, in_b, "in b");
    diag_error(&d, DIAG_SYNTAX, in_c, "in c");
    diag_error(&d, DIAG_SYNTAX, in_c, "in c as well");
    diag_error(&d, DIAG_SYNTAX, b_include, "at the include");
    diag_error(&d, DIAG_SYNTAX, at(3, 1, 1, NULL), "first");
    assert_string_equal(render(&d, false), "a.ini:3:1: error: first [E003]\n"
                                           "a.ini:4:1: error: at the include [E003]\n"
                                           "In file included from a.ini:4:\n"
                                           "In file included from b.ini:9:\n"
                                           "c.ini:1:1: error: in c [E003]\n"
                                           "c.ini:1:1: error: in c as well [E003]\n"
                                           "In file included from a.ini:4:\n"
                                           "b.ini:10:1: error: in b [E003]\n"
                                           "a.ini:5:1: error: last [E003]\n");
}

ARENA_TEST(the_excerpt_marks_the_place)
{
    diags d = diags_new(a);
    diag_error(&d, DIAG_SYNTAX, at(12, 5, 4, "k = 1000"), "wrong");
    assert_string_equal(render(&d, false), "a.ini:12:5: error: wrong [E003]\n"
                                           "   12 | k = 1000\n"
                                           "      |     ^~~~\n");
}

ARENA_TEST(the_caret_counts_characters_and_keeps_tabs)
{
    diags d = diags_new(a);
    diag_error(&d, DIAG_SYNTAX, at(1, 6, 3, "\t\xc3\xa4 =\xc3\xa4x"), "wrong");
    assert_string_equal(render(&d, false), "a.ini:1:6: error: wrong [E003]\n"
                                           "    1 | \t\xc3\xa4 =\xc3\xa4x\n"
                                           "      | \t   ^~\n");
}

ARENA_TEST(a_place_at_the_end_of_a_line_is_marked_after_it)
{
    diags d = diags_new(a);
    diag_error(&d, DIAG_SYNTAX, at(1, 4, 9, "abc"), "wrong");
    assert_string_equal(render(&d, false), "a.ini:1:4: error: wrong [E003]\n"
                                           "    1 | abc\n"
                                           "      |    ^\n");
}

ARENA_TEST(a_long_line_is_cut_around_the_place)
{
    diags d = diags_new(a);
    char line[1001];
    memset(line, '.', 1000);
    line[1000] = '\0';
    line[500] = 'X';
    diag_error(&d, DIAG_SYNTAX, at(1, 501, 1, line), "wrong");
    const char *text = render(&d, false);
    const char *excerpt = strchr(text, '\n') + 1, *caret = strchr(excerpt, '\n') + 1;
    assert_true(strlen(text) < 300);
    assert_int_equal(strchr(excerpt, 'X') - excerpt, strchr(caret, '^') - caret);
}

ARENA_TEST(input_does_not_reach_the_terminal_as_control_characters)
{
    diags d = diags_new(a);
    location where = at(1, 1, 1, "\033[2Jx\x7f");
    where.file = "\ra.ini";
    diag_error(&d, DIAG_SYNTAX, where, "'%s' is wrong",
               "\033]0;title\a \xc2\x9b 31m \x9b \u4f5b \u00db \xc2");
    assert_string_equal(render(&d, false), "?a.ini:1:1: error: '?]0;title? ? 31m ? \u4f5b "
                                           "\u00db \xc2' is wrong [E003]\n"
                                           "    1 | ?[2Jx?\n"
                                           "      | ^\n");
}

ARENA_TEST(further_lines_of_a_message_are_indented)
{
    diags d = diags_new(a);
    diag_error(&d, DIAG_PTXAS_REJECTED, (location){ .file = "a.ini" },
               "ptxas says\nline 1\nline 2");
    assert_string_equal(render(&d, false), "a.ini: error: ptxas says\n"
                                           "    line 1\n"
                                           "    line 2 [E029]\n");
}

ARENA_TEST(color_marks_only_severity_and_caret)
{
    diags d = diags_new(a);
    diag_error(&d, DIAG_SYNTAX, at(1, 1, 1, "x"), "wrong");
    assert_string_equal(render(&d, true), "a.ini:1:1: \033[1;31merror:\033[0m wrong [E003]\n"
                                          "    1 | x\n"
                                          "      | \033[1;31m^\033[0m\n");
}

TEST(codes_have_three_digits)
{
    assert_string_equal(diag_number(DIAG_BAD_UTF8), "E001");
    assert_string_equal(diag_number(DIAG_EMPTY_LIST), "E011");
    assert_string_equal(diag_number(DIAG_INTERNAL), "E031");
}

ARENA_TEST(every_code_is_explained)
{
    for (int code = 0; code < DIAG_COUNT; code++)
        if (!strstr(template_explanations_txt,
                    arena_format(a, "\n%s: ", diag_number((diag_code)code))))
            fail_msg("%s is not explained", diag_number((diag_code)code));
}

TEST(the_closest_name_is_found_if_it_is_close_enough)
{
    static const char *const names[] = { "num_warps", "n", "dims", "shape" };
    assert_string_equal(closest_match("num_warp", names, 4), "num_warps");
    assert_string_equal(closest_match("nmu_warps", names, 4), "num_warps");
    assert_string_equal(closest_match("shpae", names, 4), "shape");
    static const char *const formats[] = { "q4_0_gemv", "q4k_gemv" };
    assert_string_equal(closest_match("q4_k_gemv", formats, 2), "q4k_gemv");
    assert_string_equal(closest_match("q4_1_gemv", formats, 2), "q4_0_gemv");
    static const char *const short_names[] = { "k", "n", "dims", "shape" };
    assert_string_equal(closest_match("dmis", short_names, 4), "dims");
    assert_string_equal(closest_match("K", short_names, 4), "k");
    assert_string_equal(closest_match("shap", short_names, 4), "shape");
    assert_null(closest_match("bias", short_names, 4));
    assert_null(closest_match("m", short_names, 4));
    assert_null(closest_match("epsilon", names, 4));
    assert_null(closest_match("", names, 4));
    assert_null(closest_match("a_name_that_is_longer_than_any_name_that_could_ever_be_meant_by_it",
                              names, 4));
}
