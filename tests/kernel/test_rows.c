/* Rows of an embedding and norms: tokens without a row, values beyond f32, rows alone and beside
 * others, results that alias their inputs. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "check/verify.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "ref/half.h"
#include "ref/quant.h"

ARENA_TEST(a_token_without_a_row_reads_nothing_and_gives_nan)
{
    static const uint32_t tokens[] = { 7, 8, 1u << 31, UINT32_MAX };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        launched *l = suite_launched(a, "embed_rows", "weights=q6_k k=512 n=7 scale=3");
        put_input(&l->trial, 1, &tokens[i]);
        const void *output = suite_output(a, l);
        for (int c = 0; c < 512; c++)
            assert_true(isnan(((const float *)output)[c]));
    }
}

ARENA_TEST(a_token_without_a_row_gives_nan_in_every_layer)
{
    enum { K = 768, P = 96, ROWS = 2 };
    const uint32_t tokens[ROWS] = { 7, 6 };
    launched *l = suite_launched(a, "per_layer_rows", "weights=q6_k k=768 per_layer=96 n=7 m=2");
    put_input(&l->trial, 3, tokens);
    const void *output = suite_output(a, l);
    for (int i = 0; i < ROWS * K; i++)
        assert_true(isnan(((const float *)output)[i]) == (i / P % ROWS == 0));
}

/* The layers' values start at any place in a block and in a line of W, up to its last row. */
EMULATOR_TEST(layers_of_every_size_are_right)
{
    static const int sizes[] = { 32, 64, 96, 256, 288, 768, 1024 };
    static const char *const formats_of[] = { "f32", "bf16", "e4m3", "q8_0", "q6_k", "iq4_xs" };
    const uint32_t tokens[] = { 4, 1, 0 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof formats_of / sizeof *formats_of; j++) {
            launched *l = suite_launched(
                a, "per_layer_rows",
                arena_format(a, "weights=%s k=%d per_layer=%d n=5 m=3 scale=16 factor=0.5",
                             formats_of[j], 8 * sizes[i], sizes[i]));
            put_input(&l->trial, 3, tokens);
            expect_runs_right(a, d, l);
        }
}

/* Layer 1 of row 0 has an infinite or NaN mean square. */
ARENA_TEST(overflow_and_nan_make_a_normed_layer_nan)
{
    enum { K = 96, P = 32, ROWS = 2 };
    static const float values[] = { INFINITY, -INFINITY, 1e20f, NAN };
    const uint32_t tokens[ROWS] = { 0, 0 };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        float x[ROWS * K] = { 0 };
        launched *l = suite_launched(a, "per_layer_rows", "weights=f32 k=96 per_layer=32 n=1 m=2");
        x[P + 31] = values[i];
        put_input(&l->trial, 1, x);
        put_input(&l->trial, 3, tokens);
        const void *output = suite_output(a, l);
        for (int c = 0; c < ROWS * K; c++)
            assert_true(isnan(((const float *)output)[c]) == (c / P == ROWS));
    }
}

EMULATOR_TEST(the_last_row_of_an_embedding_is_read)
{
    const uint32_t last = 6;
    launched *l = suite_launched(a, "embed_rows", "weights=q4_0 k=96 n=7");
    put_input(&l->trial, 1, &last);
    expect_runs_right(a, d, l);
}

static const char *const byte_formats[] = { "e4m3", "e5m2" };

/* Fails the test unless 256 values are those of all codes of an 8-bit format. */
static void expect_all_codes(format f, const float *values, size_t stride)
{
    for (unsigned code = 0; code < 256; code++) {
        uint8_t byte = (uint8_t)code;
        float decoded, value = values[code * stride];
        ref_decode(f, &byte, 1, &decoded);
        if (isnan(decoded) ? !isnan(value) : value < decoded || value > decoded || isnan(value))
            fail_msg("0x%02x of %s gives %a, not %a", code, formats[f].name, (double)value,
                     (double)decoded);
    }
}

ARENA_TEST(all_codes_of_8_bits_are_decoded)
{
    static const uint32_t first = 0;
    for (size_t i = 0; i < 2; i++) {
        launched *l = suite_launched(a, "embed_rows",
                                     arena_format(a, "weights=%s k=256 n=1", byte_formats[i]));
        uint8_t codes[256];
        for (unsigned code = 0; code < 256; code++)
            codes[code] = (uint8_t)code;
        put_input(&l->trial, 0, codes);
        put_input(&l->trial, 1, &first);
        const void *output = suite_output(a, l);
        expect_all_codes(instance_weights(&l->in), output, 1);
    }
}

/* Row c of W is the code c, followed by zeros. */
ARENA_TEST(products_with_all_codes_of_8_bits_are_exact)
{
    enum {
        COLUMNS = 512,
        ROWS = 16
    }; /* one iteration of stream_gemv, with no lane beyond the
                                          end */
    static const char *const products[] = { "gemv", "stream_gemv", "mma_gemm", "mma_gemm_f16" };
    for (size_t i = 0; i < 2 * sizeof products / sizeof *products; i++) {
        static uint8_t codes[256][COLUMNS];
        static float x[ROWS][COLUMNS];
        static uint16_t halves[ROWS][COLUMNS];
        float ones[ROWS];
        bool is_tile = i / 2 >= 2, has_halves = i / 2 == 3;
        launched *l =
            suite_launched(a, products[i / 2],
                           arena_format(a, "weights=%s k=%d n=256 m=%d", byte_formats[i % 2],
                                        COLUMNS, is_tile ? ROWS : 1));
        for (unsigned code = 0; code < 256; code++)
            codes[code][0] = (uint8_t)code;
        for (unsigned row = 0; row < ROWS; row++) {
            x[row][0] = ones[row] = 1;
            halves[row][0] = half_from_float(1);
        }
        put_input(&l->trial, 0, codes);
        put_input(&l->trial, 1, has_halves ? (const void *)halves : x);
        if (has_halves)
            put_input(&l->trial, 2, ones);
        const void *output = suite_output(a, l);
        expect_all_codes(instance_weights(&l->in), output, 1);
    }
}

/* Each residual, twice in the same order. */
static const char *const norms[] = {
    "residual=none ",
    "residual=add ",
    "residual=post_norm ",
    "residual=post_and_pre_norm ",
    "residual=none gamma=none ",
    "residual=add out_scale=input ",
    "residual=post_norm gamma=none out_scale=input ",
    "residual=post_and_pre_norm gamma=none out_scale=input ",
};
enum { NORMS = sizeof norms / sizeof *norms, RESIDUALS = NORMS / 2 };

/* The lengths cover all threads, warps and code paths. */
EMULATOR_TEST(rows_of_every_length_are_normed)
{
    static const int lengths[] = { 4,    8,    124,  128,   132,   252,   256,  260,
                                   4092, 4096, 4100, 16384, 16388, 20480, 65536 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t form = 0; form < NORMS; form++) {
            launched *l = suite_launched(a, "rms_norm",
                                         arena_format(a, "%sk=%d m=2", norms[form], lengths[i]));
            expect_runs_right(a, d, l);
        }
}

EMULATOR_TEST(rows_of_every_length_are_layer_normed_also_in_place)
{
    static const int lengths[] = { 4,    8,    124,  128,   132,   252,   256,  260,
                                   4092, 4096, 4100, 16384, 16388, 20480, 65536 };
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++) {
        launched *l = suite_launched(
            a, "layer_norm",
            arena_format(a, "bias=%s k=%d m=2", i % 2 ? "add" : "none", lengths[i / 2]));
        expect_runs_right(a, d, l);
        expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "y", "x"));
    }
}

/* A large mean must not cancel digits of the variance. A constant row must give beta. */
ARENA_TEST(layer_norms_do_not_depend_on_the_mean)
{
    enum { K = 1028, ROWS = 2 };
    float x[ROWS * K], gamma[K], beta[K];
    launched *l = suite_launched(a, "layer_norm", "bias=add k=1028 m=2");
    for (int c = 0; c < K; c++) {
        x[c] = c % 2 ? 4097 : 4095;
        x[K + c] = 4096;
        gamma[c] = 3;
        beta[c] = (float)c;
    }
    put_input(&l->trial, 0, gamma);
    put_input(&l->trial, 1, beta);
    put_input(&l->trial, 2, x);
    const void *output = suite_output(a, l);
    for (int c = 0; c < K; c++) {
        const float *y = output;
        assert_true(fabsf(y[c] - (float)c - (c % 2 ? 3 : -3)) < 2e-3f);
        assert_true(y[K + c] >= (float)c && y[K + c] <= (float)c);
    }
}

EMULATOR_TEST(norms_work_in_place)
{
    static const int lengths[] = { 256, 20480 };
    for (size_t i = 0; i < 2; i++)
        for (size_t form = 0; form < NORMS; form++) {
            launched *l = suite_launched(a, "rms_norm",
                                         arena_format(a, "%sk=%d m=2", norms[form], lengths[i]));
            if (form % RESIDUALS != RESIDUAL_NONE)
                expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "h_out", "h"));
            if (form % RESIDUALS != RESIDUAL_POST_NORM)
                expect_right(suite_run_in_place(a, d, &l->kernel, &l->trial, "y", "x"));
        }
}

/* A row must have the same bits alone and beside others. */
ARENA_TEST(a_row_does_not_depend_on_the_others)
{
    enum { K = 1028, ROWS = 3 };
    for (size_t form = 0; form < NORMS; form++) {
        launched *of_all =
            suite_launched(a, "rms_norm", arena_format(a, "%sk=%d m=%d", norms[form], K, ROWS));
        launched *one = suite_launched(a, "rms_norm", arena_format(a, "%sk=%d", norms[form], K));
        const trial *t = &of_all->trial;
        const void *all = suite_output(a, of_all);
        all = memcpy(arena_alloc(a, ROWS * K * sizeof(float)), all, ROWS * K * sizeof(float));
        for (size_t row = 0; row < ROWS; row++) {
            for (size_t i = 0, input = 0; i < t->param_count; i++)
                if (t->params[i].param.kind == PARAM_IN) {
                    bool by_row = t->params[i].values > K;
                    put_input(&one->trial, input++,
                              (const float *)t->params[i].content.bytes + (by_row ? row * K : 0));
                }
            assert_memory_equal((const float *)all + row * K, suite_output(a, one),
                                K * sizeof(float));
        }
    }
}

ARENA_TEST(overflow_and_nan_make_a_layer_normed_row_nan)
{
    enum { K = 132 };
    static const float values[][2] = { { INFINITY, 0 },        { -INFINITY, 0 }, { NAN, 0 },
                                       { INFINITY, INFINITY }, { 1e20f, 0 },     { 3e38f, 3e38f },
                                       { 3e38f, -3e38f } };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        float x[2 * K] = { 0 };
        launched *l = suite_launched(a, "layer_norm", arena_format(a, "k=%d m=2", K));
        memcpy(x + K - 2, values[i], sizeof values[i]);
        x[K] = 1;
        put_input(&l->trial, 1, x);
        const void *output = suite_output(a, l);
        for (int c = 0; c < 2 * K; c++)
            assert_true(isnan(((const float *)output)[c]) == (c < K));
    }
}

/* The last column of a row is infinite, NaN, or has an infinite square. */
ARENA_TEST(overflow_and_nan_make_a_normed_row_nan)
{
    enum { K = 132 };
    static const float values[] = { INFINITY, -INFINITY, 1e20f, NAN };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        float x[2 * K] = { 0 };
        launched *l = suite_launched(a, "rms_norm", arena_format(a, "k=%d m=2", K));
        x[K - 1] = values[i];
        x[K] = 1;
        put_input(&l->trial, 1, x);
        const void *output = suite_output(a, l);
        for (int c = 0; c < 2 * K; c++)
            assert_true(isnan(((const float *)output)[c]) == (c < K));
    }
}

ARENA_TEST(faults_in_rows_are_found)
{
    static const planted_fault faults[] = {
        FAULT("embed_rows", "weights=f32 k=64 n=5 m=3", "setp.lt.u32", "", 1,
              "setp.le.u32 $1, $2, $3;"),
        FAULT("embed_rows", "weights=q8_0 k=64 n=5 m=2 scale=2", "mul.rn.f32", "", 9,
              "mov.f32 $1, $2;"),
        FAULT("per_layer_rows", "weights=q6_k k=768 per_layer=96 n=7 m=2", "bar.sync", "", 1, ""),
        FAULT("per_layer_rows", "weights=q6_k k=768 per_layer=96 n=7 m=2", "setp.lt.u32", ", 7;", 1,
              "setp.le.u32 $1, $2, $3;"),
        FAULT("per_layer_rows", "weights=q6_k k=768 per_layer=96 n=7 m=2", "and.b32", ", 15;", 1,
              "and.b32 $1, $2, 7;"),
        FAULT("per_layer_rows", "weights=q6_k k=768 per_layer=96 n=7 m=2", "shr.u32", ", 8;", 1,
              "shr.u32 $1, $2, 9;"),
        FAULT("rms_norm", "k=260", "bar.sync", "", 1, ""),
        FAULT("rms_norm", "k=260", "setp.lt.u32", "", 1, "setp.le.u32 $1, $2, $3;"),
        FAULT("rms_norm", "k=64 residual=add", "st.global.v4.f32", "", 1, ""),
        FAULT("rms_norm", "k=64 residual=post_norm", "fma.rn.f32", "", 0, "mul.rn.f32 $1, $2, $3;"),
        FAULT("rms_norm", "k=256 residual=post_and_pre_norm", "bar.sync", "", 2, ""),
        FAULT("rms_norm", "k=256", "add.rn.f32", "0f3727C5AC;", 1, "mov.f32 $1, $2;"),
        FAULT("rms_norm", "k=64 residual=post_norm out_scale=input", "mul.rn.f32", "", 2,
              "mov.f32 $1, $2;"),
        FAULT("layer_norm", "k=260", "bar.sync", "", 1, ""),
        FAULT("layer_norm", "k=260", "bar.sync", "", 2, ""),
        FAULT("layer_norm", "k=260", "setp.lt.u32", "", 1, "setp.le.u32 $1, $2, $3;"),
        FAULT("layer_norm", "k=64", "sub.rn.f32", "", 1, "mov.f32 $1, $2;"),
        FAULT("layer_norm", "k=64 bias=add", "fma.rn.f32", "", 0, "mul.rn.f32 $1, $2, $3;"),
        FAULT("layer_norm", "k=256", "add.rn.f32", "0f3727C5AC;", 1, "mov.f32 $1, $2;"),
    };
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}
