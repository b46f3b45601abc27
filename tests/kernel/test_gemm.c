/* Matrix products of prompts on the tensor cores. Results must be right for every number of rows,
 * with the errors of f16 products and without bank conflicts. Faults in layouts and copies must be
 * found. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/planted.h"
#include "ref/reference.h"

/* Rounds to 11 significant bits, as f16 does, but with an unlimited exponent. */
static double as_half(double value)
{
    int exponent;
    double fraction = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(fraction, 11)), exponent - 11);
}

/* Errors relative to the sums of |w||x|. */
typedef struct errors {
    double squares, worst;
} errors;

static void add_error(errors *e, double error, double magnitude)
{
    double relative = magnitude > 0 ? fabs(error) / magnitude : 0;
    e->squares += relative * relative;
    e->worst = fmax(e->worst, relative);
}

/* Adds the errors of a kernel's results, and those of exact sums of products of f16 values. */
static void compare(arena *a, const trial *t, const float *y, errors *got, errors *of_halves)
{
    uint64_t k = (uint64_t)t->setup.shape.k, n = (uint64_t)t->setup.shape.n;
    uint64_t m = (uint64_t)t->setup.shape.m;
    float *w = arena_alloc(a, n * k * sizeof *w), *x = arena_alloc(a, m * k * sizeof *x);
    problem_read(&t->problem, 0, 0, n * k, w);
    problem_read(&t->problem, 1, 0, m * k, x);
    for (uint64_t i = 0; i < m * n; i++) {
        const float *row = w + i % n * k, *vector = x + i / n * k;
        double exact = 0, rounded = 0, magnitude = 0;
        for (uint64_t j = 0; j < k; j++) {
            double product = (double)row[j] * (double)vector[j];
            exact += product;
            magnitude += fabs(product);
            rounded += as_half((double)row[j]) * as_half((double)vector[j]);
        }
        add_error(got, (double)y[i] - exact, magnitude);
        add_error(of_halves, rounded - exact, magnitude);
    }
}

/* Checks that the root-mean-square error is at most 1.5 times that of f16 products. The largest
 * error varies more and may be 2 times as large. */
static void check_errors(arena *a, device *d, const char *text, int64_t m)
{
    instance in;
    kernel k = suite_kernel_of(a, "mma_gemm", text, &in);
    trial t = suite_rows(a, &in, m);
    const void *y;
    errors got = { 0 }, of_halves = { 0 };
    expect_right(suite_run(a, d, &k, &t, NULL, &y));
    compare(a, &t, y, &got, &of_halves);
    double ratio = sqrt(got.squares / of_halves.squares), worst = got.worst / of_halves.worst;
    if (getenv("PTXGEN_TEST_FIGURES"))
        print_message("%s, m %lld: errors %.2f times those of f16 products, the largest %.2f\n",
                      in.name, (long long)m, ratio, worst);
    if (ratio > 1.5 || worst > 2)
        fail_msg("%s, m %lld: errors are %.2f times those of f16 products, the largest %.2f",
                 in.name, (long long)m, ratio, worst);
}

EMULATOR_TEST(errors_are_those_of_f16_products)
{
    enum { ROWS = 17 };
    const char *weights;
    const family *f = family_find(families, "mma_gemm");
    for (size_t w = 0; (weights = suite_weights(a, f, w)); w++)
        check_errors(a, d, arena_format(a, "%sk=768 n=33 m=32", weights), ROWS);
}

ARENA_TEST(splits_of_one_is_refused)
{
    const char *blamed = NULL;
    instance in =
        suite_made(a, family_find(families, "mma_gemm_f16"), "weights=q4_k k=1024 n=130 m=16");
    assert_null(in.family->check(&in, a, &blamed));
    in.splits = 1;
    assert_string_equal(in.family->check(&in, a, &blamed),
                        "splits = 1 is no split; use splits = 0");
    assert_string_equal(blamed, "splits");
}

EMULATOR_TEST(every_number_of_rows_is_right)
{
    static const int64_t rows[] = { 9, 16, 17, 63, 64, 128, 200, 512 };
    static const char *const texts[] = { "weights=q4_k k=256 n=131 m=128", "weights=q6_k k=512 n=5",
                                         "weights=q8_0 k=32 n=129 m=64",
                                         "weights=q8_0 k=416 n=1 m=16" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            check_errors(a, d, texts[i], rows[r]);
}

EMULATOR_TEST(rows_of_the_longest_models_are_right)
{
    check_errors(a, d, "weights=q4_k k=14336 n=3 m=16", 9);
    check_errors(a, d, "weights=q6_k k=14336 n=3 m=16", 17);
    check_errors(a, d, "weights=q8_0 k=14336 n=3 m=16", 16);
}

/* Rows of huge or tiny values must keep their precision beside ordinary rows. */
EMULATOR_TEST(rows_beyond_the_range_of_f16_are_scaled_by_powers_of_two)
{
    enum { K = 256, N = 3, ROWS = 4 };
    static const float sizes[ROWS] = { 1, 1e30f, 1e-30f, 1e6f };
    instance in;
    kernel k = suite_kernel_of(a, "mma_gemm", "weights=q4_k k=256 n=3 m=16", &in);
    trial t = suite_rows(a, &in, ROWS);
    float *x = t.params[2].content.bytes;
    for (size_t i = 0; i < (size_t)ROWS * K; i++)
        x[i] *= sizes[i / K];
    const void *y;
    errors got = { 0 }, of_halves = { 0 };
    expect_right(suite_run(a, d, &k, &t, NULL, &y));
    compare(a, &t, y, &got, &of_halves);
    assert_true(sqrt(got.squares / of_halves.squares) < 1.5);
}

/* More iterations of the loop must not have more conflicts; code outside it is not counted. */
ARENA_TEST(the_loop_has_no_bank_conflicts)
{
    static const int tiles[] = { 16, 32, 64, 128 };
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        uint64_t conflicts[2];
        for (int k = 0; k < 2; k++) {
            instance in;
            kernel made = suite_kernel_of(
                a, "mma_gemm", arena_format(a, "weights=q4_k k=%d n=128 m=%d", 512 << k, tiles[i]),
                &in);
            trial t = suite_rows(a, &in, tiles[i]);
            conflicts[k] = suite_count(a, &made, &t, NULL).shared_bank_conflicts;
        }
        assert_int_equal(conflicts[0], conflicts[1]);
    }
}

static kernel right_gemm(arena *a)
{
    return right_kernel(a, "mma_gemm", "weights=q4_k k=1280 n=130 m=32");
}

ARENA_TEST(registers_of_fragments_in_another_order_are_found)
{
    kernel k = right_gemm(a);
    expect_exchanged_registers_found(a, &k, 0, 3);
}

ARENA_TEST(fragments_loaded_transposed_are_found)
{
    kernel k = right_gemm(a);
    expect_transposed_fragments_found(a, &k);
}

ARENA_TEST(a_missing_wait_for_copies_is_found)
{
    kernel k = right_gemm(a);
    expect_missing_waits_found(a, &k, 1, "cp.async.wait_group 2;");
}

ARENA_TEST(a_stage_that_is_overwritten_while_it_is_read_is_found)
{
    kernel k = right_gemm(a);
    expect_missing_meeting_found(a, &k);
    expect_text_wrong(a, &k, mutate(a, k.ptx, ", 61440;", ", 40960;"),
                      "race"); /* ring of two stages instead of
                                                                                   three */
}

ARENA_TEST(a_tile_that_is_overwritten_while_it_is_read_is_found)
{
    kernel k = right_gemm(a);
    enum { OF_STEP = 12 }; /* follows the barriers of the scales of X */
    expect_missing_barriers_found(a, &k, OF_STEP, 1);
}
