/* The report page of a small set, without a browser: its parts must be present and its facts
 * correct. */
#include <string.h>

#include <jansson.h>

#include "test.h"
#include "emit/emit.h"
#include "check/verify_set.h"
#include "kernel/generate.h"
#include "input/spec.h"

static const char SPEC[] = "[ptxgen]\nprefix = page\ntargets = sm_75, sm_90\n"
                           "[mwv_q4k_gemv]\nshape = 512x8\nnum_warps = 4\n"
                           "[q8_1_quantize]\nk = 256\n"
                           "[tiled_q4k_gemv]\nshape = 4096x8\n";

typedef struct fixture {
    arena *arena;
    kernel_set set;
    const char *page;
    json_t *facts;
} fixture;

/* Returns the text between two marks. */
static const char *between(arena *a, const char *text, const char *from, const char *to)
{
    const char *start = strstr(text, from);
    assert_non_null(start);
    start += strlen(from);
    const char *end = strstr(start, to);
    assert_non_null(end);
    return arena_copy(a, start, (size_t)(end - start));
}

/* Makes the page with made-up ptxas figures: the first kernel has 52 registers on sm_75 and 64 on
 * sm_90. */
static int make_page(void **state)
{
    static const resources of_first[] = { { .known = true, .registers = 52 },
                                          { .known = true, .registers = 64 } };
    static const resources of_last[] = { { .known = true, .registers = 40 }, { .known = false } };
    arena *a = arena_new();
    fixture *f = arena_zalloc(a, sizeof *f);
    f->arena = a;
    diags d = diags_new(a);
    spec s;
    assert_true(spec_parse(a, "page.ini", SPEC, sizeof SPEC - 1, families, NULL, NULL, &s, &d));
    assert_true(generate_kernels(a, &s, &f->set, &d));
    assert_int_equal(f->set.kernel_count, 3);
    f->set.kernels[0].on_targets = of_first;
    f->set.kernels[0].verified = true;
    f->set.kernels[0].error = 0.25;
    f->set.kernels[2].on_targets = of_last;

    strbuf page = strbuf_new(a);
    described_set described = describe_set(a, &f->set);
    emit_report(&page, &described);
    f->page = page.text;
    f->facts = json_loads(
        between(a, page.text, "<script id=\"facts\" type=\"application/json\">", "</script>"), 0,
        NULL);
    *state = f;
    return f->facts ? 0 : -1;
}

static int forget_page(void **state)
{
    fixture *f = *state;
    json_decref(f->facts);
    arena_free(f->arena);
    return 0;
}

static json_t *kernel_facts(const fixture *f, size_t i)
{
    return json_array_get(json_object_get(f->facts, "kernels"), i);
}

static json_t *on(const fixture *f, size_t k, size_t t)
{
    return json_array_get(json_object_get(kernel_facts(f, k), "on"), t);
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

TEST(the_page_is_whole_and_asks_for_nothing)
{
    const fixture *f = *state;
    static const char *const marks[] = { "@STYLE@",     "@FACTS@",  "@CHART@", "@CHART_LICENSE@",
                                         "@TABLE@",     "@CHARTS@", "@ROWS@",  "@KERNEL@",
                                         "<script src", "<link",    "@import", "url(" };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(f->page, marks[i]))
            fail_msg("the page has %s", marks[i]);
    assert_non_null(strstr(f->page, "Permission is hereby granted"));
    assert_non_null(strstr(f->page, "</html>"));
    assert_null(strchr(between(f->arena, f->page, "application/json\">", "</script>"), '<'));
}

TEST(the_lines_of_a_kernel_make_its_ptx)
{
    const fixture *f = *state;
    for (size_t k = 0; k < f->set.kernel_count; k++) {
        strbuf shown = strbuf_new(f->arena);
        size_t i;
        json_t *index;
        json_array_foreach(json_object_get(kernel_facts(f, k), "ptx"), i, index)
        {
            json_t *lines = json_object_get(f->facts, "lines");
            strbuf_put(&shown,
                       json_string_value(json_array_get(lines, (size_t)json_integer_value(index))));
            strbuf_char(&shown, '\n');
        }
        assert_string_equal(shown.text, f->set.kernels[k].ptx);
    }
}

/* 52 registers, allocated in units of 256 per warp, allow 36 warps of an SM's 65536 registers. The
 * limit of sm_75 is 32 warps. 64 registers allow 32 of the 64 warps of sm_90. */
TEST(occupancy_is_that_of_each_target)
{
    const fixture *f = *state;
    assert_string_equal(text(on(f, 0, 0), "target"), "sm_75");
    assert_int_equal(number(on(f, 0, 0), "registers"), 52);
    assert_int_equal(number(on(f, 0, 0), "warps"), 32);
    assert_int_equal(number(on(f, 0, 0), "blocks"), 8);
    assert_string_equal(text(on(f, 0, 0), "limit"), "nothing");
    assert_string_equal(text(on(f, 0, 1), "target"), "sm_90");
    assert_int_equal(number(on(f, 0, 1), "warps"), 32);
    assert_true(json_real_value(json_object_get(on(f, 0, 1), "occupancy")) * 2 == 1);
    assert_string_equal(text(on(f, 0, 1), "limit"), "registers");
    assert_string_equal(text(on(f, 2, 0), "limit"), "shared memory");
}

TEST(what_was_not_run_is_not_known)
{
    const fixture *f = *state;
    assert_null(json_object_get(on(f, 1, 0), "registers"));
    assert_null(json_object_get(on(f, 2, 1), "occupancy"));
    assert_true(json_is_null(json_object_get(kernel_facts(f, 1), "verify")));
    json_t *verify = json_object_get(kernel_facts(f, 0), "verify");
    assert_true(json_real_value(json_object_get(verify, "error")) * 4 == 1);
}

TEST(the_hot_loop_has_its_work_and_mix)
{
    const fixture *f = *state;
    json_t *loop = json_object_get(kernel_facts(f, 0), "loop"), *mix = json_object_get(loop, "mix");
    assert_string_equal(text(loop, "unit"), "weights");
    assert_true(number(loop, "work") > 0 && number(loop, "loads") > 0);
    assert_int_equal(json_array_size(mix), json_array_size(json_object_get(f->facts, "classes")));
    json_int_t sum = 0;
    size_t i;
    json_t *count;
    json_array_foreach(mix, i, count) sum += json_integer_value(count);
    assert_int_equal(sum, number(loop, "instructions"));
    assert_true(json_is_null(json_object_get(kernel_facts(f, 1), "loop")));
    assert_string_equal(text(kernel_facts(f, 0), "configuration"), "k=512 n=8 num_warps=4");
}

TEST_FIXTURE(make_page, forget_page)
