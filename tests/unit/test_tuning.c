/* The table behind variant = auto: complete, without dead rows, and true to its reasons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "gen/formula.h"
#include "gen/tuning.h"

enum { MAX_ROWS = 64, BLOCK_VALUES = 256 };

static const int64_t columns[] = { 0,    256,  512,  768,   1024,  1792,
                                   2048, 3840, 4096, 14336, 55296, 55552 };
static const int64_t rows[] = {
    0, 1, 512, 1024, 1536, 1537, 2048, 2049, 3072, 4096, 14336, 128256
};

/* Calls visit for all plain families, precisions, targets, columns and rows above. */
static void for_all_shapes(void (*visit)(void *context, const instance *asked, const target *t),
                           void *context)
{
    for (const family *const *f = families; *f; f++) {
        if (!family_key(*f, "variant"))
            continue;
        instance asked = { .family = *f, .variant = VARIANT_AUTO };
        for (size_t t = 0; t < target_count * PRECISION_COUNT; t++)
            for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
                for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
                    asked.shape.k = columns[k];
                    asked.shape.n = rows[n];
                    asked.dims = columns[k] && rows[n] ? DIMS_STATIC : DIMS_DYNAMIC;
                    asked.precision = (int64_t)(t / target_count);
                    visit(context, &asked, &targets[t % target_count]);
                }
    }
}

static void mark_row(void *context, const instance *asked, const target *t)
{
    bool *reached = context;
    reached[tuning_find(asked, t) - tuning_rows] = true;
}

static void every_row_is_reached(void **state)
{
    (void)state;
    bool reached[MAX_ROWS] = { false };
    assert_in_range(tuning_row_count, 1, MAX_ROWS);
    for_all_shapes(mark_row, reached);
    for (size_t i = 0; i < tuning_row_count; i++)
        if (!reached[i])
            fail_msg("row %zu, %s for %s, is never taken", i, tuning_rows[i].chosen->name,
                     tuning_rows[i].plain->name);
}

static void every_family_of_the_table_is_a_family_of_the_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < tuning_row_count; i++) {
        assert_ptr_equal(family_find(families, tuning_rows[i].plain->name), tuning_rows[i].plain);
        assert_ptr_equal(family_find(families, tuning_rows[i].chosen->name), tuning_rows[i].chosen);
        assert_non_null(family_key(tuning_rows[i].plain, "variant"));
    }
}

static void assert_same_parameters(arena *a, const instance *plain, const instance *chosen)
{
    enum { GGUF_ALIGNMENT = 32 };
    param of_plain[MAX_PARAMS], of_chosen[MAX_PARAMS];
    size_t count = instance_params(a, plain, of_plain);
    assert_int_equal(instance_params(a, chosen, of_chosen), count);
    for (size_t i = 0; i < count; i++) {
        const param *p = &of_plain[i], *c = &of_chosen[i];
        assert_string_equal(c->name, p->name);
        assert_int_equal(c->kind, p->kind);
        assert_int_equal(c->format, p->format);
        if (p->kind != PARAM_U32)
            assert_int_equal(formula_value(c->bytes, chosen, NULL),
                             formula_value(p->bytes, plain, NULL));
        assert_true(c->align <= GGUF_ALIGNMENT);
    }
}

static void compare_with_plain(void *context, const instance *asked, const target *t)
{
    instance chosen = tuning_choose(asked, t);
    const family *plain = asked->family, *f = chosen.family;
    assert_int_equal(f->op, plain->op);
    assert_int_equal(f->weights, plain->weights);
    assert_int_equal(f->activations, plain->activations);
    assert_true(f->preference >= plain->preference);
    assert_same_parameters(context, asked, &chosen);
    if (f->quantizes) {
        assert_int_equal(asked->precision, PRECISION_Q8);
        assert_int_equal(asked->dims, DIMS_STATIC);
    } else {
        assert_ptr_equal(f->reference, plain->reference);
        assert_true(f->tolerance <= plain->tolerance);
    }
}

static void what_is_chosen_has_the_parameters_and_the_promise_of_the_plain_family(void **state)
{
    (void)state;
    arena *a = arena_new();
    for_all_shapes(compare_with_plain, a);
    arena_free(a);
}

static void choose_the_same_or_round(void *context, const instance *asked, const target *t)
{
    (void)context;
    instance exact = *asked;
    exact.precision = PRECISION_F32;
    const tuning_row *row = tuning_find(asked, t);
    if (!row->chosen->quantizes)
        assert_ptr_equal(row, tuning_find(&exact, t));
}

static void what_does_not_round_is_chosen_with_either_precision(void **state)
{
    (void)state;
    for_all_shapes(choose_the_same_or_round, NULL);
}

static void two_blocks_that_keep_x_in_shared_memory_fit_an_sm(void **state)
{
    (void)state;
    enum { STREAM_REGISTERS = 80 };
    for (size_t i = 0; i < tuning_row_count; i++) {
        const tuning_row *row = &tuning_rows[i];
        if (!row->chosen->quantizes)
            continue;
        instance longest = { .family = row->chosen, .shape = { .k = row->k.most, .m = 1 } };
        size_t shared = (size_t)formula_value(row->chosen->launch.dynamic_shared, &longest, NULL);
        for (size_t t = 0; t < target_count; t++)
            if (targets[t].sm >= row->least_sm && targets[t].sm <= row->most_sm)
                assert_true(target_blocks_per_sm(&targets[t], 32 * (unsigned)row->num_warps,
                                                 STREAM_REGISTERS, shared) >= 2);
    }
}

static void choose_valid_keys(void *context, const instance *asked, const target *t)
{
    (void)context;
    instance chosen = tuning_choose(asked, t);
    for (const key *k = chosen.family->keys; k->name; k++) {
        int64_t value = instance_value(&chosen, k);
        bool left_to_the_run = k->at_run_time && asked->dims == DIMS_DYNAMIC && value == 0;
        if (!k->choices && !left_to_the_run && (value < k->min || value > k->max))
            fail_msg("%s: %s = %lld", chosen.family->name, k->name, (long long)value);
    }
    assert_int_equal(chosen.shape.k, asked->shape.k);
    assert_int_equal(chosen.shape.n, asked->shape.n);
    assert_int_equal(chosen.dims, asked->dims);
    assert_int_equal(chosen.variant, VARIANT_PLAIN);
    assert_ptr_equal(chosen.chosen_by, asked->family);
    for (size_t i = 0; i < target_count; i++) {
        bool same = &targets[i] == t;
        assert_int_equal(instance_chosen(&chosen, &targets[i]), same ? 1u << asked->precision : 0);
        assert_int_equal((chosen.excluded & target_bit(&targets[i])) == 0, same);
    }
}

static void every_shape_has_a_choice_that_its_family_takes_for_one_target(void **state)
{
    (void)state;
    for_all_shapes(choose_valid_keys, NULL);
}

/* Two super-blocks a warp, or one warp to a row or more. */
static void has_work(void *context, const instance *asked, const target *t)
{
    (void)context;
    const tuning_row *row = tuning_find(asked, t);
    int64_t warps = family_key(row->chosen, "rows_per_warp") ? 1 : row->num_warps;
    if (asked->shape.k && asked->shape.n && warps > 1 && asked->shape.k < warps * 2 * BLOCK_VALUES)
        fail_msg("%s, k = %lld: %lld warps a row", asked->family->name, (long long)asked->shape.k,
                 (long long)warps);
}

static void every_warp_of_a_known_shape_has_work(void **state)
{
    (void)state;
    for_all_shapes(has_work, NULL);
}

static unsigned resident_warps(const target *t, unsigned num_warps, unsigned registers)
{
    return num_warps * target_blocks_per_sm(t, 32 * num_warps, registers, 4 * num_warps);
}

static void many_rows_fill_an_sm_with_no_more_warps_a_row_than_that_takes(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        unsigned registers;
    } cases[] = { { "q4k_gemv", 53 }, { "q6k_gemv", 64 } };
    for (size_t i = 0; i < 2; i++) {
        instance asked = { .family = family_find(families, cases[i].family),
                           .shape = { .k = 8192, .n = 32768 } };
        for (size_t t = 0; t < target_count; t++) {
            unsigned chosen = (unsigned)tuning_find(&asked, &targets[t])->num_warps, most = 0;
            for (unsigned warps = 1; warps <= 8; warps *= 2) {
                unsigned resident = resident_warps(&targets[t], warps, cases[i].registers);
                most = resident > most ? resident : most;
            }
            unsigned reached = resident_warps(&targets[t], chosen, cases[i].registers);
            unsigned of_fewer = resident_warps(&targets[t], chosen / 2, cases[i].registers);
            if (reached < most || (chosen > 2 && of_fewer == most))
                fail_msg("%s for %s: %u warps a block make %u of %u, half of them %u",
                         cases[i].family, targets[t].name, chosen, reached, most, of_fewer);
        }
    }
}

static void fewer_rows_never_get_fewer_warps(void **state)
{
    (void)state;
    instance few = { .family = family_find(families, "q4k_gemv"), .shape = { .k = 4096 } };
    for (size_t t = 0; t < target_count; t++)
        for (size_t n = 1; n + 1 < sizeof rows / sizeof *rows; n++) {
            instance more = few;
            few.shape.n = rows[n];
            more.shape.n = rows[n + 1];
            assert_true(tuning_find(&few, &targets[t])->num_warps >=
                        tuning_find(&more, &targets[t])->num_warps);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_reached),
        cmocka_unit_test(every_family_of_the_table_is_a_family_of_the_list),
        cmocka_unit_test(what_is_chosen_has_the_parameters_and_the_promise_of_the_plain_family),
        cmocka_unit_test(what_does_not_round_is_chosen_with_either_precision),
        cmocka_unit_test(two_blocks_that_keep_x_in_shared_memory_fit_an_sm),
        cmocka_unit_test(every_shape_has_a_choice_that_its_family_takes_for_one_target),
        cmocka_unit_test(every_warp_of_a_known_shape_has_work),
        cmocka_unit_test(many_rows_fill_an_sm_with_no_more_warps_a_row_than_that_takes),
        cmocka_unit_test(fewer_rows_never_get_fewer_warps),
    };
    return cmocka_run_group_tests_name("tuning", tests, NULL, NULL);
}
