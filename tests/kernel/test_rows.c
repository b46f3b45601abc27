/* Rows of an embedding and RMS norms: tokens that have no row, what no float can hold, rows alone
 * and beside others, results in place of what they are made of.
 */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "check/verify.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "ref/half.h"
#include "ref/quant.h"

static trial prepare(arena *a, const char *name, const char *text, instance *in, kernel *k)
{
    *k = suite_kernel_of(a, name, text, in);
    trial_setup setup = { .shape = in->shape, .sm_count = 1, .seed = 1 };
    return trial_prepare(a, in, &setup);
}

ARENA_TEST(a_token_that_has_no_row_reads_nothing_and_gives_nan)
{
    static const uint32_t tokens[] = { 7, 8, 1u << 31, UINT32_MAX };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        instance in;
        kernel k;
        trial t = prepare(a, "embed_rows", "weights=q6_k k=512 n=7 scale=3", &in, &k);
        put_input(&t, 1, &tokens[i]);
        const void *output;
        suite_count(a, &k, &t, &output);
        for (int c = 0; c < 512; c++)
            assert_true(isnan(((const float *)output)[c]));
    }
}

EMULATOR_TEST(the_last_row_of_an_embedding_is_read)
{
    const uint32_t last = 6;
    instance in;
    kernel k;
    trial t = prepare(a, "embed_rows", "weights=q4_0 k=96 n=7", &in, &k);
    put_input(&t, 1, &last);
    expect_right(suite_run(a, d, &k, &t, NULL, NULL));
}

static const char *const byte_formats[] = { "e4m3", "e5m2" };

/* Checks that 256 values are those of all codes of a format of 8 bits. */
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
        instance in;
        kernel k;
        trial t = prepare(a, "embed_rows", arena_format(a, "weights=%s k=256 n=1", byte_formats[i]),
                          &in, &k);
        uint8_t codes[256];
        const void *output;
        for (unsigned code = 0; code < 256; code++)
            codes[code] = (uint8_t)code;
        put_input(&t, 0, codes);
        put_input(&t, 1, &first);
        suite_count(a, &k, &t, &output);
        expect_all_codes(instance_weights(&in), output, 1);
    }
}

/* Row c of W has the code c, and zeros behind it. */
ARENA_TEST(products_with_all_codes_of_8_bits_are_exact)
{
    enum { COLUMNS = 512, ROWS = 16 }; /* a step of stream_gemv: no lane is beyond the end */
    static const char *const products[] = { "gemv", "stream_gemv", "mma_gemm", "mma_gemm_f16" };
    for (size_t i = 0; i < 2 * sizeof products / sizeof *products; i++) {
        instance in;
        kernel k;
        static uint8_t codes[256][COLUMNS];
        static float x[ROWS][COLUMNS];
        static uint16_t halves[ROWS][COLUMNS];
        float ones[ROWS];
        const void *output;
        bool is_tile = i / 2 >= 2, has_halves = i / 2 == 3;
        trial t = prepare(a, products[i / 2],
                          arena_format(a, "weights=%s k=%d n=256 m=%d", byte_formats[i % 2],
                                       COLUMNS, is_tile ? ROWS : 1),
                          &in, &k);
        for (unsigned code = 0; code < 256; code++)
            codes[code][0] = (uint8_t)code;
        for (unsigned row = 0; row < ROWS; row++) {
            x[row][0] = ones[row] = 1;
            halves[row][0] = half_from_float(1);
        }
        put_input(&t, 0, codes);
        put_input(&t, 1, has_halves ? (const void *)halves : x);
        if (has_halves)
            put_input(&t, 2, ones);
        suite_count(a, &k, &t, &output);
        expect_all_codes(instance_weights(&in), output, 1);
    }
}

static const char *const norms[] = {
    "residual=none ",
    "residual=add ",
    "residual=post_norm ",
    "residual=post_and_pre_norm ",
};
enum { NORMS = sizeof norms / sizeof *norms };

/* Whatever thread, warp or way the columns fall on. */
EMULATOR_TEST(rows_of_every_length_are_normed)
{
    static const int lengths[] = { 4,    8,    124,  128,   132,   252,   256,  260,
                                   4092, 4096, 4100, 16384, 16388, 20480, 65536 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t form = 0; form < NORMS; form++) {
            instance in;
            kernel k;
            trial t = prepare(a, "rms_norm", arena_format(a, "%sk=%d m=2", norms[form], lengths[i]),
                              &in, &k);
            expect_right(suite_run(a, d, &k, &t, NULL, NULL));
        }
}

EMULATOR_TEST(rows_of_every_length_are_layer_normed_also_in_place)
{
    static const int lengths[] = { 4,    8,    124,  128,   132,   252,   256,  260,
                                   4092, 4096, 4100, 16384, 16388, 20480, 65536 };
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++) {
        instance in;
        kernel k;
        trial t = prepare(
            a, "layer_norm",
            arena_format(a, "bias=%s k=%d m=2", i % 2 ? "add" : "none", lengths[i / 2]), &in, &k);
        expect_right(suite_run(a, d, &k, &t, NULL, NULL));
        expect_right(suite_run_in_place(a, d, &k, &t, "y", "x"));
    }
}

/* Of a row of a large mean no digits of the variance cancel; a row of one value is beta. */
ARENA_TEST(layer_norms_do_not_depend_on_the_mean)
{
    enum { K = 1028, ROWS = 2 };
    instance in;
    kernel k;
    const void *output;
    float x[ROWS * K], gamma[K], beta[K];
    trial t = prepare(a, "layer_norm", "bias=add k=1028 m=2", &in, &k);
    for (int c = 0; c < K; c++) {
        x[c] = c % 2 ? 4097 : 4095;
        x[K + c] = 4096;
        gamma[c] = 3;
        beta[c] = (float)c;
    }
    put_input(&t, 0, gamma);
    put_input(&t, 1, beta);
    put_input(&t, 2, x);
    suite_count(a, &k, &t, &output);
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
            instance in;
            kernel k;
            trial t = prepare(a, "rms_norm", arena_format(a, "%sk=%d m=2", norms[form], lengths[i]),
                              &in, &k);
            if (form != RESIDUAL_NONE)
                expect_right(suite_run_in_place(a, d, &k, &t, "h_out", "h"));
            if (form != RESIDUAL_POST_NORM)
                expect_right(suite_run_in_place(a, d, &k, &t, "y", "x"));
        }
}

/* The same bits of a row alone and as one of several. */
ARENA_TEST(a_row_does_not_depend_on_the_others)
{
    enum { K = 1028, ROWS = 3 };
    for (size_t form = 0; form < NORMS; form++) {
        instance in, in_one;
        kernel k, k_one;
        const void *all, *alone;
        trial t =
            prepare(a, "rms_norm", arena_format(a, "%sk=%d m=%d", norms[form], K, ROWS), &in, &k);
        trial one =
            prepare(a, "rms_norm", arena_format(a, "%sk=%d", norms[form], K), &in_one, &k_one);
        suite_count(a, &k, &t, &all);
        all = memcpy(arena_alloc(a, ROWS * K * sizeof(float)), all, ROWS * K * sizeof(float));
        for (size_t row = 0; row < ROWS; row++) {
            for (size_t i = 0, input = 0; i < t.param_count; i++)
                if (t.params[i].param.kind == PARAM_IN) {
                    bool by_row = t.params[i].values > K;
                    put_input(&one, input++,
                              (const float *)t.params[i].content.bytes + (by_row ? row * K : 0));
                }
            suite_count(a, &k_one, &one, &alone);
            assert_memory_equal((const float *)all + row * K, alone, K * sizeof(float));
        }
    }
}

ARENA_TEST(what_no_float_can_hold_makes_a_layer_normed_row_nan)
{
    enum { K = 132 };
    static const float values[][2] = { { INFINITY, 0 },        { -INFINITY, 0 }, { NAN, 0 },
                                       { INFINITY, INFINITY }, { 1e20f, 0 },     { 3e38f, 3e38f },
                                       { 3e38f, -3e38f } };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        instance in;
        kernel k;
        const void *output;
        float x[2 * K] = { 0 };
        trial t = prepare(a, "layer_norm", arena_format(a, "k=%d m=2", K), &in, &k);
        memcpy(x + K - 2, values[i], sizeof values[i]);
        x[K] = 1;
        put_input(&t, 1, x);
        suite_count(a, &k, &t, &output);
        for (int c = 0; c < 2 * K; c++)
            assert_true(isnan(((const float *)output)[c]) == (c < K));
    }
}

/* An infinity, and squares that are one, in the row's last column. */
ARENA_TEST(what_no_float_can_hold_makes_a_row_nan)
{
    enum { K = 132 };
    static const float values[] = { INFINITY, -INFINITY, 1e20f, NAN };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        instance in;
        kernel k;
        const void *output;
        float x[2 * K] = { 0 };
        trial t = prepare(a, "rms_norm", arena_format(a, "k=%d m=2", K), &in, &k);
        x[K - 1] = values[i];
        x[K] = 1;
        put_input(&t, 1, x);
        suite_count(a, &k, &t, &output);
        for (int c = 0; c < 2 * K; c++)
            assert_true(isnan(((const float *)output)[c]) == (c < K));
    }
}

/* Faults that verification has to find. */
ARENA_TEST(faults_in_rows_are_found)
{
    static const struct {
        const char *family, *text;
        line_edit edit;
    } faults[] = {
        { "embed_rows",
          "weights=f32 k=64 n=5 m=3",
          { "setp.lt.u32", "", 1, "setp.le.u32 $1, $2, $3;" } },
        { "embed_rows",
          "weights=q8_0 k=64 n=5 m=2 scale=2",
          { "mul.rn.f32", "", 9, "mov.f32 $1, $2;" } },
        { "rms_norm", "k=260", { "bar.sync", "", 1, "" } },
        { "rms_norm", "k=260", { "setp.lt.u32", "", 1, "setp.le.u32 $1, $2, $3;" } },
        { "rms_norm", "k=64 residual=add", { "st.global.v4.f32", "", 1, "" } },
        { "rms_norm",
          "k=64 residual=post_norm",
          { "fma.rn.f32", "", 0, "mul.rn.f32 $1, $2, $3;" } },
        { "rms_norm", "k=256 residual=post_and_pre_norm", { "bar.sync", "", 2, "" } },
        { "rms_norm", "k=256", { "add.rn.f32", "0f3727C5AC;", 1, "mov.f32 $1, $2;" } },
        { "layer_norm", "k=260", { "bar.sync", "", 1, "" } },
        { "layer_norm", "k=260", { "bar.sync", "", 2, "" } },
        { "layer_norm", "k=260", { "setp.lt.u32", "", 1, "setp.le.u32 $1, $2, $3;" } },
        { "layer_norm", "k=64", { "sub.rn.f32", "", 1, "mov.f32 $1, $2;" } },
        { "layer_norm", "k=64 bias=add", { "fma.rn.f32", "", 0, "mul.rn.f32 $1, $2, $3;" } },
        { "layer_norm", "k=256", { "add.rn.f32", "0f3727C5AC;", 1, "mov.f32 $1, $2;" } },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        instance in;
        kernel k = suite_kernel_of(a, faults[i].family, faults[i].text, &in);
        expect_fault_found(a, &k, &faults[i].edit);
    }
}
