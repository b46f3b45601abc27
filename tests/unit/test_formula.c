#include <string.h>

#include "test.h"
#include "kernel/formula.h"

static const family gemv = {
    .name = "gemv",
    .keys = (const key[]){ KEY_K(256), KEY_N, KEY_NUM_WARPS(4), KEY_DIMS, KEY_END },
};

static const family rows_gemv = {
    .name = "rows_gemv",
    .keys = (const key[]){ KEY_N, KEY_M(1), KEY_ROWS, KEY_END },
};

static const instance fixed = { .family = &gemv,
                                .shape = { .k = 4096, .n = 1000 },
                                .num_warps = 4 };
static const instance dynamic = {
    .family = &gemv, .shape = { .k = 4096, .n = 1000 }, .dims = DIMS_DYNAMIC, .num_warps = 4
};

TEST(operators_bind_and_group_as_in_c)
{
    assert_int_equal(formula_value("1 + 2*3", &fixed, NULL), 7);
    assert_int_equal(formula_value("(1 + 2)*3", &fixed, NULL), 9);
    assert_int_equal(formula_value("10 - 4 - 3", &fixed, NULL), 3);
    assert_int_equal(formula_value("100/8/3", &fixed, NULL), 4);
    assert_int_equal(formula_value("n*k/256*144", &fixed, NULL), 2304000);
}

TEST(functions_take_formulas)
{
    assert_int_equal(formula_value("min(n, k)", &fixed, NULL), 1000);
    assert_int_equal(formula_value("max(n, k + 1)", &fixed, NULL), 4097);
    assert_int_equal(formula_value("ceil_div(n, 32*num_warps)", &fixed, NULL), 8);
    assert_int_equal(formula_value("ceil_div(1024, 128)", &fixed, NULL), 8);
    assert_int_equal(formula_value("min(max(1, 2), ceil_div(9, 2))", &fixed, NULL), 2);
}

TEST(run_time_rows_come_from_the_host)
{
    instance in = { .family = &rows_gemv, .shape = { .n = 9, .m = 4 } };
    run_values run = { .m = 10 };
    assert_int_equal(formula_value("m*n", &in, &run), 36);
    in.rows_mode = ROWS_RUN_TIME;
    assert_int_equal(formula_value("m*n", &in, &run), 90);
    assert_int_equal(formula_value("m*n", &in, NULL), -1);
}

TEST(a_missing_formula_is_one)
{
    assert_int_equal(formula_value(NULL, &fixed, NULL), 1);
    assert_string_equal(formula_text(NULL), "1");
}

TEST(a_run_time_value_is_unknown_until_the_host_gives_it)
{
    run_values run = { .sm_count = 20 };
    assert_int_equal(formula_value("min(n, sm_count*16)", &fixed, NULL), -1);
    assert_int_equal(formula_value("min(n, sm_count*16)", &fixed, &(run_values){ 0 }), -1);
    assert_int_equal(formula_value("min(n, sm_count*16)", &fixed, &run), 320);
}

TEST(dynamic_sizes_come_from_the_host)
{
    run_values run = { .k = 256, .n = 3 };
    assert_int_equal(formula_value("n*k", &dynamic, NULL), -1);
    assert_int_equal(formula_value("n*k", &dynamic, &run), 768);
    assert_int_equal(formula_value("32*num_warps", &dynamic, NULL), 128);
}

TEST(static_sizes_ignore_the_host)
{
    run_values run = { .k = 256, .n = 3 };
    assert_int_equal(formula_value("n + k", &fixed, &run), 5096);
}

TEST(a_value_beyond_64_bits_saturates)
{
    instance in = { .family = &gemv, .shape = { .k = INT32_MAX, .n = INT32_MAX } };
    assert_int_equal(formula_value("n*k", &in, NULL), (int64_t)INT32_MAX * INT32_MAX);
    assert_true(formula_value("n*k*4", &in, NULL) == INT64_MAX);
    assert_true(formula_value("n*k*4/1024", &in, NULL) == INT64_MAX);
    assert_true(formula_value("9223372036854775807 + 1", &in, NULL) == INT64_MAX);
    assert_true(formula_value("99999999999999999999", &in, NULL) == INT64_MAX);
}

static void assert_c(const char *formula, const instance *in, const char *expected)
{
    arena *a = arena_new();
    strbuf out = strbuf_new(a);
    strbuf_put(&out, "grid = ");
    formula_print(&out, formula, in, FORMULA_C);
    assert_string_equal(out.text + sizeof "grid = " - 1, expected);
    assert_int_equal(strlen(out.text), out.length);
    arena_free(a);
}

TEST(c_text_has_numbers_for_constants)
{
    assert_c("n", &fixed, "1000");
    assert_c(NULL, &fixed, "1");
    assert_c("ceil_div(n, 2*num_warps)", &fixed, "125");
    assert_c("min(n, sm_count*16)", &fixed, "PTXGEN_MIN(1000, run->sm_count * 16)");
}

TEST(c_text_has_no_arithmetic_between_constants)
{
    assert_c("n*k*1024*sm_count", &fixed, "4194304000 * run->sm_count");
    assert_c("sm_count*(n + k)", &fixed, "run->sm_count * 5096");
}

TEST(c_text_keeps_the_grouping_of_run_time_values)
{
    assert_c("(k + n)*num_warps", &dynamic, "(run->k + run->n) * 4");
    assert_c("n - (k - m)", &dynamic, "run->n - (run->k - run->m)");
    assert_c("ceil_div(k, 32*num_warps)", &dynamic, "PTXGEN_CEIL_DIV(run->k, 128)");
}

static void assert_text(formula_style style, const char *expected)
{
    arena *a = arena_new();
    strbuf out = strbuf_new(a);
    formula_print(&out, "min(n, sm_count*16 + num_warps)", &fixed, style);
    assert_string_equal(out.text, expected);
    arena_free(a);
}

TEST(text_keeps_names_or_has_numbers_for_constants)
{
    assert_text(FORMULA_NAMES, "min(n, sm_count*16 + num_warps)");
    assert_text(FORMULA_NUMBERS, "min(1000, sm_count*16 + 4)");
}

TEST(a_term_expands_to_its_formula)
{
    static const term terms[] = { { "halves", "ceil_div(n, 2)" },
                                  { "blocks", "halves + sm_count" },
                                  { "warps", "halves/num_warps" },
                                  { NULL, NULL } };
    family named = gemv;
    named.launch.terms = terms;
    instance in = fixed;
    in.family = &named;
    assert_int_equal(formula_value("warps*2", &in, NULL), 250);
    assert_int_equal(formula_value("blocks*2", &in, NULL), -1);
    assert_int_equal(formula_value("blocks*2", &in, &(run_values){ .sm_count = 10 }), 1020);
    assert_c("blocks*2", &in, "(500 + run->sm_count) * 2");
    in.dims = DIMS_DYNAMIC;
    assert_c("halves*2", &in, "PTXGEN_CEIL_DIV(run->n, 2) * 2");
}
