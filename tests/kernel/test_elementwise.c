/* Kernels that work element by element: any grid, results in place of an input, x of every size,
 * and what is no number.
 */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"

static trial prepare(arena *a, const char *name, const char *text, instance *in, kernel *k)
{
    *k = suite_kernel_of(a, name, text, in);
    trial_setup setup = { .shape = in->shape, .sm_count = 1, .seed = 1 };
    return trial_prepare(a, in, &setup);
}

static const char *const of_one[] = { "silu", "gelu", "relu", "scale" };
static const char *const of_two[] = { "swiglu", "add", "multiply" };
enum { OF_ONE = sizeof of_one / sizeof *of_one, OF_TWO = sizeof of_two / sizeof *of_two };

ARENA_TEST(one_block_strides_over_all_values)
{
    static const struct {
        const char *family, *text;
    } kernels[] = { { "silu", "k=4099 m=3" },
                    { "add", "k=5000 m=3 broadcast=row" },
                    { "add", "k=4999 m=3 broadcast=row type=f16" },
                    { "swiglu", "k=2050 m=4 type=bf16" },
                    { "swiglu", "k=2048 m=4 out=q8_1" },
                    { "convert", "weights=q4_k k=2560 n=3 out=f16" },
                    { "convert", "weights=f16 k=4099 n=3" } };
    device d = suite_emulator(a);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        instance in;
        kernel k;
        trial t = prepare(a, kernels[i].family, kernels[i].text, &in, &k);
        assert_true(t.grid[0] > 1);
        t.grid[0] = 1;
        expect_right(suite_run(a, &d, &k, &t, NULL, NULL));
    }
    d.close(d.state);
}

ARENA_TEST(results_may_stand_in_place_of_an_input)
{
    static const char *const texts[] = { "k=1029 m=2", "k=1029 m=2 type=f16",
                                         "k=64 m=3 type=bf16" };
    device d = suite_emulator(a);
    instance in;
    kernel k;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t f = 0; f < OF_ONE; f++) {
            trial t = prepare(a, of_one[f], texts[i], &in, &k);
            expect_right(suite_run_in_place(a, &d, &k, &t, "y", "x"));
        }
        for (size_t f = 0; f < OF_TWO; f++) {
            trial t = prepare(a, of_two[f], texts[i], &in, &k);
            expect_right(suite_run_in_place(a, &d, &k, &t, "y", f ? "a" : "g"));
            expect_right(suite_run_in_place(a, &d, &k, &t, "y", f ? "b" : "u"));
        }
    }
    d.close(d.state);
}

enum { SWEPT = 4096 };

/* Both signs of the powers of two, and of 21 numbers in between, from 2^-126 on, then of numbers
 * around those at which results vanish. */
static void sweep(float x[SWEPT])
{
    for (int i = 0; i < SWEPT; i++) {
        float size = i < SWEPT / 2 ? ldexpf(1 + (float)(i / 2 % 21) / 21, i / 2 / 21 * 5 - 126)
                                   : (float)(i - SWEPT / 2) * 0.0625f;
        x[i] = i % 2 ? -size : size;
    }
}

static double silu_of(double x)
{
    return x / (1 + exp(-x));
}

static double gelu_of(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2));
}

static double gelu_by_tanh_of(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

/* Relative errors, so in the tails of small results, too. */
ARENA_TEST(activations_are_right_for_every_size_of_x)
{
    static const struct {
        const char *family, *text;
        double (*exact)(double x);
        double tolerance;
    } kernels[] = { { "silu", "k=4096", silu_of, 1e-6 },
                    { "gelu", "k=4096", gelu_of, 1e-6 },
                    { "gelu", "k=4096 approximation=tanh", gelu_by_tanh_of, 2e-5 } };
    const double flushed = 2e-36; /* a result whose exp no normal f32 holds may be 0 */
    float x[SWEPT];
    sweep(x);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        instance in;
        kernel k;
        const void *output;
        trial t = prepare(a, kernels[i].family, kernels[i].text, &in, &k);
        put_input(&t, 0, x);
        suite_count(a, &k, &t, &output);
        for (int j = 0; j < SWEPT; j++) {
            double got = (double)((const float *)output)[j], exact = kernels[i].exact((double)x[j]);
            if (!(fabs(got - exact) <= kernels[i].tolerance * fabs(exact) + flushed))
                fail_msg("%s of %.9g is %.9g, not %.9g", in.name, (double)x[j], got, exact);
        }
    }
}

/* Of an input each in turn; the other one's values are 1. */
static void expect_shown(arena *a, const char *name, const char *text, size_t input, float value,
                         bool is_number)
{
    enum { K = 9, AT = 6 };
    instance in;
    kernel k;
    const void *output;
    float x[K];
    trial t = prepare(a, name, arena_format(a, "k=9 %s", text), &in, &k);
    for (int i = 0; i < K; i++)
        x[i] = 1;
    for (size_t i = 0; i < trial_input_count(a, &in); i++)
        put_input(&t, i, x);
    x[AT] = value;
    put_input(&t, input, x);
    suite_count(a, &k, &t, &output);
    for (int i = 0; i < K; i++)
        if ((isfinite(((const float *)output)[i]) != 0) != (i != AT || is_number))
            fail_msg("%s of %g: y[%d] is %g", in.name, (double)value, i,
                     (double)((const float *)output)[i]);
}

ARENA_TEST(what_is_no_number_shows_at_its_place)
{
    static const float values[] = { NAN, INFINITY, -INFINITY };
    for (int i = 0; i < 3; i++) {
        for (size_t f = 0; f < OF_ONE; f++) {
            bool is_zero = strcmp(of_one[f], "relu") == 0 && values[i] < 0;
            expect_shown(a, of_one[f], "", 0, values[i], is_zero);
        }
        expect_shown(a, "gelu", "approximation=tanh", 0, values[i], false);
        expect_shown(a, "swiglu", "activation=gelu", 0, values[i], false);
        for (size_t f = 0; f < OF_TWO; f++)
            for (size_t input = 0; input < 2; input++)
                expect_shown(a, of_two[f], f ? "" : "activation=swiglu_oai", input, values[i],
                             false);
    }
}

/* Infinities of a positive x stay what they are. */
ARENA_TEST(activations_of_infinity_are_infinite)
{
    static const char *const texts[] = { "silu", "gelu", "relu" };
    for (int i = 0; i < 3; i++) {
        instance in;
        kernel k;
        const void *output;
        const float x = INFINITY;
        trial t = prepare(a, texts[i], "k=1", &in, &k);
        put_input(&t, 0, &x);
        suite_count(a, &k, &t, &output);
        assert_true(isinf(*(const float *)output) && *(const float *)output > 0);
    }
}

ARENA_TEST(faults_in_elements_are_found)
{
    static const struct {
        const char *family, *text;
        line_edit edit;
    } faults[] = {
        { "relu", "k=64", { "selp.f32", "", 0, "max.f32 $1, $2, $3;" } },
        { "relu", "k=64", { "setp.lt.f32", "", 1, "setp.gt.f32 $1, $2, $3;" } },
        { "silu", "k=37", { "setp.lt.u32", "9;", 1, "setp.le.u32 $1, $2, $3;" } },
        { "silu", "k=39", { "setp.lt.u32", "39;", 2, "setp.lt.u32 $1, $2, 38;" } },
        { "gelu", "k=64", { "fma.rn.f32", "", 9, "mul.f32 $1, $2, $3;" } },
        { "gelu", "k=64 type=f16", { "cvt.rn.f16", "", 3, "cvt.rz.f16.f32 $1, $2;" } },
        { "scale", "k=64 scale=-3 out=bf16", { "add.u32", "32767;", 2, "mov.b32 $1, $2;" } },
        { "add", "k=20 m=3 broadcast=row", { "rem.u32", "", 1, "mov.b32 $1, $2;" } },
        { "add", "k=64 m=2", { "add.f32", "", 2, "sub.f32 $1, $2, $3;" } },
        { "multiply", "k=64", { "mul.f32", "", 3, "mul.rz.f32 $1, $2, $3;" } },
        { "swiglu",
          "k=64 activation=swiglu_oai",
          { "min.f32", "0f40E00000;", 0, "mov.f32 $1, $2;" } },
        { "convert", "weights=q8_0 k=64 n=3", { "and.b32", " 3;", 1, "mov.u32 $1, 0;" } },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        instance in;
        kernel k = suite_kernel_of(a, faults[i].family, faults[i].text, &in);
        expect_fault_found(a, &k, &faults[i].edit);
    }
}
