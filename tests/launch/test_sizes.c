/* Formulas in header and manifest use only the kernel's config and the launch. ptxgen_bytes must
 * evaluate the formulas of all families to the tool's values. */
#include <string.h>

#define ENGINE_KERNELS_IMPLEMENTATION
#include "engine_kernels.h"

#include "test_arena.h"
#include "base/os.h"
#include "emit/describe.h"
#include "kernel/formula.h"
#include "input/spec.h"

enum { MOST_KEYS = 48, SM_COUNT = 33, ROWS = 5 };

/* A kernel with the storage for its description in a header. */
typedef struct described {
    ptxgen_config config[MOST_KEYS];
    ptxgen_param params[MAX_PARAMS];
    ptxgen_kernel kernel;
} described;

static void describe(arena *a, const instance *in, described *to)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params), keys = 0;
    for (const key *k = in->family->keys; k->name; k++, keys++) {
        bool passed = key_is_passed(in, k);
        assert_in_range(keys, 0, MOST_KEYS - 1);
        to->config[keys] = (ptxgen_config){ .name = k->name,
                                            .value = k->real ? 0 : instance_value(in, k),
                                            .word = config_word(in, k),
                                            .at_run_time = passed,
                                            .min = passed ? key_least(in, k) : 0,
                                            .max = passed ? key_most(in, k) : 0,
                                            .multiple_of = passed ? key_multiple(in, k) : 1 };
    }
    for (size_t i = 0; i < count; i++)
        to->params[i] = (ptxgen_param){
            .name = params[i].name,
            .kind = param_is_pointer(&params[i]) ? PTXGEN_PARAM_POINTER : PTXGEN_PARAM_U32,
            .bytes = param_is_pointer(&params[i]) ? 0 : 4,
            .size = params[i].bytes ? formula_names(a, params[i].bytes, in) : params[i].size,
        };
    to->kernel = (ptxgen_kernel){ .name = in->name,
                                  .params = to->params,
                                  .param_count = count,
                                  .k = in->shape.k,
                                  .n = in->shape.n,
                                  .m = family_key(in->family, "m") ? in->shape.m : 1,
                                  .dynamic_dims = in->dims == DIMS_DYNAMIC,
                                  .config = to->config,
                                  .config_count = keys };
}

/* Returns launch sizes that the instance accepts. */
static ptxgen_run run_for(const instance *in)
{
    ptxgen_run run = { .sm_count = SM_COUNT };
    for (const key *k = in->family->keys; k->name; k++)
        if (key_is_passed(in, k)) {
            int64_t multiple = key_multiple(in, k), least = PTXGEN_MAX(key_least(in, k), ROWS);
            *ptxgen_run_size(&run, k->name) =
                PTXGEN_MIN(PTXGEN_CEIL_DIV(least, multiple) * multiple, key_most(in, k));
        }
    return run;
}

static void assert_formula(const described *d, const instance *in, const char *formula, arena *a,
                           const ptxgen_run *run)
{
    const ptxgen_param whole = { .name = "a formula", .size = formula_names(a, formula, in) };
    const run_values values = { run->k, run->n, run->m, run->sm_count };
    int64_t said = ptxgen_bytes(&d->kernel, &whole, run), is = formula_value(formula, in, &values);
    if (said != is || said < 0)
        fail_msg("%s: %s is %lld, not %lld", in->name, whole.size, (long long)is, (long long)said);
}

static spec all_families(arena *a)
{
    char *text;
    const char *error;
    size_t length;
    spec s;
    diags d = diags_new(a);
    assert_true(os_read_file(a, EVERY_FAMILY, &text, &length, &error));
    if (!spec_parse(a, EVERY_FAMILY, text, length, families_and_pipelines(a), NULL, NULL, &s, &d))
        fail_msg("%s", d.list.items[0].message);
    return s;
}

ARENA_TEST(every_formula_uses_only_the_config_and_the_launch)
{
    spec s = all_families(a);
    const family *seen[512] = { 0 };
    size_t families_seen = 0, at_launch = 0;
    for (size_t i = 0; i < s.instance_count; i++) {
        const instance *in = &s.instances[i];
        const launch *how = &in->family->launch;
        const ptxgen_run run = run_for(in), none = { 0, 0, 0, 0 };
        static described d;
        describe(a, in, &d);
        for (size_t p = 0; p < d.kernel.param_count; p++) {
            param params[MAX_PARAMS];
            instance_params(a, in, params);
            if (!params[p].bytes)
                continue;
            assert_formula(&d, in, params[p].bytes, a, &run);
            bool fixed = formula_value(params[p].bytes, in, NULL) >= 0;
            at_launch += !fixed;
            if (!fixed)
                assert_int_equal(ptxgen_bytes(&d.kernel, &d.params[p], &none), -1);
            assert_int_equal(ptxgen_bytes(&d.kernel, &d.params[p], NULL) >= 0, fixed);
        }
        for (int g = 0; g < 3; g++)
            assert_formula(&d, in, how->grid[g], a, &run);
        if (how->dynamic_shared)
            assert_formula(&d, in, how->dynamic_shared, a, &run);
        bool is_new = true;
        for (size_t f = 0; f < families_seen; f++)
            is_new &= seen[f] != in->family;
        if (is_new)
            seen[families_seen++] = in->family;
    }
    for (size_t f = 0; families[f]; f++) {
        bool found = false;
        for (size_t i = 0; i < families_seen; i++)
            found |= seen[i] == families[f];
        if (!found)
            fail_msg("%s has no kernel in the spec", families[f]->name);
    }
    assert_in_range(at_launch, 100, SIZE_MAX);
}

TEST(bytes_follow_from_the_sizes_of_a_launch)
{
    const ptxgen_kernel *gemv = &engine_mwv_q4k_gemv_w4_dynamic;
    const ptxgen_run run = { .k = 512, .n = 9 }, wrong = { .k = 500, .n = 9 };
    assert_int_equal(ptxgen_bytes(gemv, &gemv->params[0], &run), 9 * 4);
    assert_int_equal(ptxgen_bytes(gemv, &gemv->params[1], &run), 9 * 2 * 144);
    assert_int_equal(ptxgen_bytes(gemv, &gemv->params[3], &run), 4);
    assert_int_equal(ptxgen_bytes(gemv, &gemv->params[1], &wrong), -1);
    assert_int_equal(ptxgen_bytes(gemv, &gemv->params[1], NULL), -1);
    const ptxgen_kernel *rows = &engine_gemv_q8_0_k64_n8_m4_rows;
    assert_int_equal(ptxgen_bytes(rows, &rows->params[0], &(ptxgen_run){ .m = 1000 }), 8 * 4000);
    assert_int_equal(ptxgen_bytes(rows, &rows->params[0], &(ptxgen_run){ .m = 262141 }), -1);
    assert_int_equal(ptxgen_bytes(rows, &rows->params[1], NULL), 8 * 2 * 34);
}

TEST(overflowing_formulas_have_no_size)
{
    const ptxgen_kernel none = { .name = "" };
    const char *const formulas[] = { "9223372036854775807+1", "4294967296*2147483648",
                                     "9223372036854775808",   "1/0",
                                     "ceil_div(1, 0)",        "nothing" };
    const ptxgen_param fits = { .size = "max(4294967296*2147483647, 7 - 5)/4294967296" };
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        assert_int_equal(ptxgen_bytes(&none, &(ptxgen_param){ .size = formulas[i] }, NULL), -1);
    assert_int_equal(ptxgen_bytes(&none, &fits, NULL), 2147483647);
}
