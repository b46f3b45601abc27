/* Quantizing x inside, as the streaming GEMVs do, costs little accuracy beside q8_1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "golden/golden.h"
#include "kernel/suite.h"
#include "ref/quant.h"

static bool streams(const family *f)
{
    return strncmp(f->name, "stream_", strlen("stream_")) == 0;
}

/* Root mean square of errors relative to sum |w||x|. */
static double error_of(const ref_value *exact, const double *got, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double error = exact[i].magnitude > 0 ? (got[i] - exact[i].value) / exact[i].magnitude : 0;
        squares += error * error;
    }
    return sqrt(squares / (double)n);
}

/* Of the kernel, and of the exact product with x as ggml's q8_1 blocks. */
static void compare_errors(arena *a, const kernel *k, trial *t)
{
    int64_t n = t->problem.shape.n, columns = t->problem.shape.k;
    ref_value *exact = arena_alloc(a, (size_t)n * sizeof *exact);
    ref_value *q8_1 = arena_alloc(a, (size_t)n * sizeof *q8_1);
    const void *output;
    double *got = arena_alloc(a, (size_t)n * sizeof *got);
    double *usual_values = arena_alloc(a, (size_t)n * sizeof *usual_values);
    char *blocks = arena_alloc(a, format_bytes(FORMAT_Q8_1, (uint64_t)columns));

    ref_gemv(&t->problem, 0, 0, (uint64_t)n, exact);
    ref_encode_q8_1(t->problem.inputs[1], (uint64_t)columns, blocks);
    problem quantized = t->problem;
    quantized.inputs[1] = blocks;
    quantized.input_formats[1] = FORMAT_Q8_1;
    ref_gemv(&quantized, 0, 0, (uint64_t)n, q8_1);
    suite_count(a, k, t, &output);
    const float *y = output;
    for (int64_t i = 0; i < n; i++) {
        got[i] = (double)y[i];
        usual_values[i] = q8_1[i].value;
    }
    double own = error_of(exact, got, n), usual = error_of(exact, usual_values, n);
    if (!(own <= 1.5 * usual + 1e-7))
        fail_msg("%s: error %.3g, by q8_1 %.3g (%s)", k->instance->name, own, usual,
                 trial_describe(a, t));
}

static void errors_are_at_most_half_as_large_again_as_by_q8_1(void **state)
{
    (void)state;
    for (const family *const *f = families; *f; f++) {
        if (!streams(*f) || (*f)->op != OP_GEMV)
            continue;
        arena *a = arena_new();
        const golden_dims *d = golden(a, "dims.i32", sizeof *d);
        const float *x = golden(a, "x.f32", 0);
        instance in;
        suite_instance(a, *f, arena_format(a, "k=%d n=64", d->k), &in);
        kernel k = suite_kernel(a, &in);
        for (int kind = 0; kind < FILL_KINDS; kind++) {
            trial_setup setup = {
                .shape = in.shape, .sm_count = 4, .kind = (fill_kind)kind, .seed = 1
            };
            trial t = trial_prepare(a, &in, &setup);
            compare_errors(a, &k, &t);
        }
        for (int i = 0; i < d->m; i++) {
            trial_setup setup = { .shape = in.shape, .sm_count = 4, .seed = 1 };
            trial t = trial_prepare(a, &in, &setup);
            put_input(&t, 1, x + (ptrdiff_t)i * d->k);
            compare_errors(a, &k, &t);
        }
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_at_most_half_as_large_again_as_by_q8_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
