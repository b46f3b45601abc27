/* Elementwise kernels: any grid, results that alias an input, x of every size, NaN and infinity. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "check/verify.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"

static const char *const of_one[] = { "silu", "gelu", "relu", "scale" };
static const char *const of_two[] = { "swiglu", "add", "multiply" };
enum { OF_ONE = sizeof of_one / sizeof *of_one, OF_TWO = sizeof of_two / sizeof *of_two };

EMULATOR_TEST(one_block_strides_over_all_values)
{
    static const struct {
        const char *family, *text;
    } kernels[] = { { "silu", "k=4099 m=3" },
                    { "add", "k=5000 m=3 broadcast=row" },
                    { "add", "k=4999 m=3 broadcast=row type=f16" },
                    { "swiglu", "k=2050 m=4 type=bf16" },
                    { "swiglu", "k=2048 m=4 out=q8_1" },
                    { "convert", "weights=q4_k k=2560 n=3 out=f16" },
                    { "convert", "weights=f16 k=4099 n=3" },
                    { "convert", "weights=e4m3 k=4099 n=3" },
                    { "convert", "weights=e5m2 k=4112 n=2 out=bf16" } };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        launched *l = suite_launched(a, kernels[i].family, kernels[i].text);
        assert_true(l->trial.grid[0] > 1);
        l->trial.grid[0] = 1;
        expect_runs_right(a, d, l);
    }
}

EMULATOR_TEST(results_may_alias_an_input)
{
    static const char *const texts[] = { "k=1029 m=2", "k=1029 m=2 type=f16",
                                         "k=64 m=3 type=bf16" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t f = 0; f < OF_ONE; f++) {
            launched *l = suite_launched(a, of_one[f], texts[i]);
            expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "y", "x"));
        }
        for (size_t f = 0; f < OF_TWO; f++) {
            launched *l = suite_launched(a, of_two[f], texts[i]);
            expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "y", f ? "a" : "g"));
            expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "y", f ? "b" : "u"));
        }
    }
}

enum { SWEPT = 4096 };

/* Sets x to 21 values in every fifth binade from 2^-126 on, then to multiples of 1/16 up to 128,
 * where results vanish. Signs alternate. */
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

/* Errors are relative, so that small results in the tails are checked, too. */
ARENA_TEST(activations_are_right_for_every_size_of_x)
{
    static const struct {
        const char *family, *text;
        double (*exact)(double x);
        double tolerance;
    } kernels[] = { { "silu", "k=4096", silu_of, 1e-6 },
                    { "gelu", "k=4096", gelu_of, 1e-6 },
                    { "gelu", "k=4096 approximation=tanh", gelu_by_tanh_of, 2e-5 } };
    const double flushed = 2e-36; /* a result whose exp is subnormal in f32 may be 0 */
    float x[SWEPT];
    sweep(x);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        launched *l = suite_launched(a, kernels[i].family, kernels[i].text);
        put_input(&l->trial, 0, x);
        const void *output = suite_output(a, l);
        for (int j = 0; j < SWEPT; j++) {
            double got = (double)((const float *)output)[j], exact = kernels[i].exact((double)x[j]);
            if (!(fabs(got - exact) <= kernels[i].tolerance * fabs(exact) + flushed))
                fail_msg("%s of %.9g is %.9g, not %.9g", l->in.name, (double)x[j], got, exact);
        }
    }
}

/* Sets one element of an input to a value and all others to 1. Only that element's result may be
 * NaN or infinite. */
static void expect_shown(arena *a, const char *name, const char *text, size_t input, float value,
                         bool is_number)
{
    enum { K = 9, AT = 6 };
    float x[K];
    launched *l = suite_launched(a, name, arena_format(a, "k=9 %s", text));
    for (int i = 0; i < K; i++)
        x[i] = 1;
    for (size_t i = 0; i < trial_input_count(a, &l->in); i++)
        put_input(&l->trial, i, x);
    x[AT] = value;
    put_input(&l->trial, input, x);
    const void *output = suite_output(a, l);
    for (int i = 0; i < K; i++)
        if ((isfinite(((const float *)output)[i]) != 0) != (i != AT || is_number))
            fail_msg("%s of %g: y[%d] is %g", l->in.name, (double)value, i,
                     (double)((const float *)output)[i]);
}

ARENA_TEST(nan_and_infinity_stay_at_their_element)
{
    static const float values[] = { NAN, INFINITY, -INFINITY };
    static const char *const gates[] = { "gelu", "gelu_erf", "relu", "relu2" };
    for (int i = 0; i < 3; i++) {
        for (size_t f = 0; f < OF_ONE; f++) {
            bool is_zero = strcmp(of_one[f], "relu") == 0 && values[i] < 0;
            expect_shown(a, of_one[f], "", 0, values[i], is_zero);
        }
        expect_shown(a, "gelu", "approximation=tanh", 0, values[i], false);
        for (size_t f = 0; f < 4; f++)
            expect_shown(a, "swiglu", arena_format(a, "activation=%s", gates[f]), 0, values[i],
                         false);
        for (size_t f = 0; f < OF_TWO; f++)
            for (size_t input = 0; input < 2; input++)
                expect_shown(a, of_two[f], f ? "" : "activation=swiglu_oai", input, values[i],
                             false);
    }
}

/* An infinite x must not become NaN. */
ARENA_TEST(activations_of_infinity_are_infinite)
{
    static const char *const texts[] = { "silu", "gelu", "relu" };
    for (int i = 0; i < 3; i++) {
        const float x = INFINITY;
        launched *l = suite_launched(a, texts[i], "k=1");
        put_input(&l->trial, 0, &x);
        const void *output = suite_output(a, l);
        assert_true(isinf(*(const float *)output) && *(const float *)output > 0);
    }
}

ARENA_TEST(faults_in_elements_are_found)
{
    static const planted_fault faults[] = {
        FAULT("relu", "k=64", "selp.f32", "", 0, "max.f32 $1, $2, $3;"),
        FAULT("relu", "k=64", "setp.lt.f32", "", 1, "setp.gt.f32 $1, $2, $3;"),
        FAULT("silu", "k=37", "setp.lt.u32", "9;", 1, "setp.le.u32 $1, $2, $3;"),
        FAULT("silu", "k=39", "setp.lt.u32", "39;", 2, "setp.lt.u32 $1, $2, 38;"),
        FAULT("gelu", "k=64", "fma.rn.f32", "", 9, "mul.rn.f32 $1, $2, $3;"),
        FAULT("gelu", "k=64 type=f16", "cvt.rn.f16", "", 3, "cvt.rz.f16.f32 $1, $2;"),
        FAULT("scale", "k=64 scale=-3 out=bf16", "add.u32", "32767;", 2, "mov.b32 $1, $2;"),
        FAULT("add", "k=20 m=3 broadcast=row", "rem.u32", "", 1, "mov.b32 $1, $2;"),
        FAULT("add", "k=64 m=2", "add.rn.f32", "", 2, "sub.rn.f32 $1, $2, $3;"),
        FAULT("multiply", "k=64", "mul.rn.f32", "", 3, "mul.rz.f32 $1, $2, $3;"),
        FAULT("swiglu", "k=64 activation=swiglu_oai", "min.f32", "0f40E00000;", 0,
              "mov.f32 $1, $2;"),
        FAULT("convert", "weights=q8_0 k=64 n=3", "and.b32", " 3;", 1, "mov.u32 $1, 0;"),
    };
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}

/* The lengths cover all threads, warps and code paths, rows that are not a multiple of 16 bytes,
 * and rows that are read twice. */
EMULATOR_TEST(softmax_is_right_for_rows_of_every_length_also_in_place)
{
    static const int lengths[] = { 1,    2,    3,    31,    33,    127,   128,   132,   1001,
                                   4096, 4100, 8190, 16384, 16385, 16388, 32770, 131072 };
    static const char *const types[] = { "", "type=f16", "type=bf16 out=f32" };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t j = 0; j < 3; j++) {
            const char *text = arena_format(a, "k=%d m=2 %s", lengths[i], types[j]);
            launched *l = suite_launched(a, "softmax", text);
            expect_runs_right(a, d, l);
            if (j < 2)
                expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "y", "x"));
        }
}

/* Short and long rows take different code paths. Their values are equal, far apart, with the
 * largest last, rising, falling, and mostly minus infinity. */
ARENA_TEST(softmax_is_stable)
{
    static const int lengths[] = { 4096, 20000 };
    for (int at = 0; at < 2; at++)
        for (int form = 0; form < 6; form++) {
            int n = lengths[at];
            float *x = arena_alloc(a, (size_t)n * sizeof *x);
            for (int i = 0; i < n; i++)
                x[i] = form == 0   ? 3e38f
                       : form == 1 ? (i % 2 ? -3e38f : 3e38f)
                       : form == 2 ? (i == n - 1 ? 1e4f : -1e4f)
                       : form == 3 ? 0.001f * (float)i
                       : form == 4 ? -0.01f * (float)i - 1e3f
                                   : (i % 3 ? -INFINITY : -500);
            double largest = -HUGE_VAL, sum = 0;
            for (int i = 0; i < n; i++)
                largest = fmax(largest, (double)x[i]);
            for (int i = 0; i < n; i++)
                sum += exp((double)x[i] - largest);
            launched *l = suite_launched(a, "softmax", arena_format(a, "k=%d", n));
            put_input(&l->trial, 0, x);
            const void *output = suite_output(a, l);
            for (int i = 0; i < n; i++) {
                double got = (double)((const float *)output)[i];
                double below = (double)x[i] - largest, exact = exp(below) / sum;
                if (!(fabs(got - exact) <= (1e-6 + 3e-7 * fmin(-below, 100)) * exact + 1e-37))
                    fail_msg("form %d: y[%d] is %.9g, not %.9g", form, i, got, exact);
            }
        }
}

/* A row with a NaN, an infinity, or no finite value must become NaN. The row beside it must not. */
ARENA_TEST(a_row_without_a_softmax_is_nan)
{
    static const int lengths[] = { 1, 7, 256, 20000 };
    for (int at = 0; at < 4; at++)
        for (int form = 0; form < 3; form++) {
            int n = lengths[at];
            float *x = arena_zalloc(a, 2 * (size_t)n * sizeof *x);
            for (int i = 0; i < n && form == 0; i++)
                x[i] = -INFINITY;
            if (form)
                x[n - 1] = form == 1 ? INFINITY : NAN;
            launched *l = suite_launched(a, "softmax", arena_format(a, "k=%d m=2", n));
            put_input(&l->trial, 0, x);
            const void *output = suite_output(a, l);
            for (int i = 0; i < 2 * n; i++)
                assert_true(isnan(((const float *)output)[i]) == (i < n));
        }
}

/* Naive f32 accumulation would get the sum of the weights of 2^20 values wrong. */
ARENA_TEST(softmax_adds_up_huge_rows)
{
    enum { K = 1 << 20 };
    launched *l = suite_launched(a, "softmax", "k=1048576");
    float *x = l->trial.params[1].content.bytes;
    double sum = 0;
    for (int i = 0; i < K; i++) {
        x[i] = i ? -1 : 0;
        sum += exp((double)x[i]);
    }
    const void *output = suite_output(a, l);
    for (int i = 0; i < K; i += 4099) {
        double exact = exp((double)x[i]) / sum;
        assert_true(fabs((double)((const float *)output)[i] - exact) <= 6e-7 * exact);
    }
}

EMULATOR_TEST(rope_works_in_place)
{
    static const char *const texts[] = {
        "head_dim=128 num_heads=3 num_kv_heads=2 m=3 rope=neox",
        "head_dim=128 num_heads=3 num_kv_heads=2 m=3 rope=norm n_rot=64 type=f16",
        "head_dim=100 num_heads=2 num_kv_heads=1 m=2 rope=neox n_rot=34",
        "head_dim=6 num_heads=2 num_kv_heads=1 m=5 rope=neox type=bf16",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        launched *l = suite_launched(a, "rope", texts[i]);
        expect_runs_right(a, d, l);
        expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "q_out", "q"));
        expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "k_out", "k"));
    }
}

/* Copies keep all bits, also those of a NaN, and all values of partial tiles. */
ARENA_TEST(transposed_copies_have_the_same_bits)
{
    static const char *const texts[] = { "k=37 n=70 m=2", "k=130 n=66 type=f16",
                                         "k=33 n=64 type=bf16",
                                         "k=64 n=129 dims=dynamic type=f16" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        launched *l = suite_launched(a, "transpose", texts[i]);
        size_t bytes = l->in.x_type == TYPE_F32 ? 4 : 2, columns = (size_t)l->in.shape.k;
        size_t rows = (size_t)l->in.shape.n, count = l->trial.params[1].values;
        uint8_t *x = l->trial.params[1].content.bytes;
        random_source r = { 3 };
        for (size_t j = 0; j < count * bytes; j++)
            x[j] = (uint8_t)random_next(&r);
        const void *output = suite_output(a, l);
        for (size_t j = 0; j < count; j++) {
            size_t matrix = j / (rows * columns), row = j / columns % rows, column = j % columns;
            size_t to = matrix * rows * columns + column * rows + row;
            assert_memory_equal((const uint8_t *)output + to * bytes, x + j * bytes, bytes);
        }
    }
}

ARENA_TEST(faults_in_softmax_rope_and_copies_are_found)
{
    static const planted_fault faults[] = {
        FAULT("softmax", "k=300", "bar.sync", "", 1, ""),
        FAULT("softmax", "k=300", "bar.sync", "", 2, ""),
        FAULT("softmax", "k=300", "sub.rn.f32", "", 0, "mov.f32 $1, $2;"),
        FAULT("softmax", "k=20000", "mul.rn.f32", "", 1, "mov.f32 $1, $2;"),
        FAULT("softmax", "k=20000 scale=2", "ex2.approx.ftz.f32", "", 5, "mov.f32 $1, 0f3F800000;"),
        FAULT("rope", "head_dim=64 num_heads=2 num_kv_heads=1 m=2", "neg.f32", "", 1,
              "mov.f32 $1, $2;"),
        FAULT("rope", "head_dim=64 num_heads=2 n_rot=32", "setp.lt.u32", "", 1,
              "setp.le.u32 $1, $2, $3;"),
        FAULT("transpose", "k=64 n=64", "bar.sync", "", 1, ""),
        FAULT("transpose", "k=33 n=64", "setp.lt.u32", "33;", 5, "setp.le.u32 $1, $2, $3;"),
        FAULT("transpose", "k=64 n=64 type=f16", "prmt.b32", "", 1, "mov.b32 $1, $2;"),
    };
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}

/* Verification runs only a part of these grids. They have more than 2^32 threads, or a last block
 * without elements of the first output. */
ARENA_TEST(large_grids_pass_verification)
{
    static const struct {
        const char *family, *text;
    } kernels[] = { { "silu", "k=16777216 m=65535" },
                    { "rope", "head_dim=128 num_heads=128 num_kv_heads=8 m=4096" },
                    { "kv_write", "head_dim=128 num_kv_heads=128 max_seq_len=131072 m=256" } };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        instance in;
        kernel k = suite_kernel_of(a, kernels[i].family, kernels[i].text, &in);
        verify_result r = verify_kernel(a, &k, 1, NULL, false, NULL);
        if (!r.right)
            fail_msg("%s", r.message);
    }
}
