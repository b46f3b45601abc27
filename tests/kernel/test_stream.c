/* Streaming GEMVs quantize x themselves. This must cost little accuracy compared with q8_1, and
 * must not hide a NaN or infinity. Weights are read in whole lines, none of which may start after a
 * row's end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "check/verify.h"
#include "golden/golden.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "ref/quant.h"
#include "ref/reference.h"

/* Returns true for streaming families that read x as f32. */
static bool streams(const family *f)
{
    return strncmp(f->name, "stream_", strlen("stream_")) == 0 && !family_takes_rows(f);
}

/* Returns the root mean square of errors relative to sum |w||x|. */
static double error_of(const ref_value *exact, const double *got, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double error = exact[i].magnitude > 0 ? (got[i] - exact[i].value) / exact[i].magnitude : 0;
        squares += error * error;
    }
    return sqrt(squares / (double)n);
}

/* Compares the errors of a kernel with those of exact products of ggml's q8_1 blocks of x. */
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
        fail_msg("%s: error %.3g is more than 1.5 times that of q8_1, %.3g (%s)", k->instance->name,
                 own, usual, trial_describe(a, t));
}

static void check_errors(arena *a, const family *f, const char *weights)
{
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    const float *x = golden(a, "x.f32", 0);
    instance in = suite_made(a, f, "%sk=%d n=64", weights, d->k);
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
}

TEST(errors_are_at_most_1_5_times_those_of_q8_1)
{
    const char *weights;
    for (const family *const *f = families; *f; f++)
        for (size_t i = 0; streams(*f) && (*f)->op == OP_GEMV; i++) {
            arena *a = arena_new();
            weights = suite_weights(a, *f, i);
            if (weights)
                check_errors(a, *f, weights);
            arena_free(a);
            if (!weights)
                break;
        }
}

/* Each value is tried at each place of one vector: the second of three, or the only one. */
static const float nonfinite[] = { NAN, -NAN, INFINITY, -INFINITY };
static const int64_t nonfinite_places[] = { 0, 37, 255, 767 };

/* Fails the test unless exactly the results of one vector are NaN or infinite. */
static void expect_nonfinite(const instance *in, const float *y, int64_t vector, float value)
{
    int64_t rows = in->shape.n + 2 * in->shape.n_kv;
    for (int64_t i = 0; i < in->shape.m * rows; i++)
        if (!isfinite(y[i]) != (i / rows == vector))
            fail_msg("%s: with %g in vector %lld, y[%lld] is %g", in->name, (double)value,
                     (long long)vector, (long long)i, (double)y[i]);
}

static void check_nonfinite_x(arena *a, const family *f, const char *keys)
{
    instance in;
    if (!suite_instance(a, f, arena_format(a, "%sk=768 n=3", keys), &in))
        return;
    kernel k = suite_kernel(a, &in);
    trial_setup setup = { .shape = in.shape, .sm_count = 4, .seed = 1 };
    trial t = trial_prepare(a, &in, &setup);
    size_t input = 0;
    while (strcmp(t.params[input].param.name, "x") != 0)
        input++;
    float *x = t.params[input].content.bytes;
    int64_t vector = in.shape.m / 2;
    for (size_t i = 0; i < sizeof nonfinite / sizeof *nonfinite; i++)
        for (size_t j = 0; j < sizeof nonfinite_places / sizeof *nonfinite_places; j++) {
            int64_t at = vector * in.shape.k + nonfinite_places[j];
            const void *y;
            float usual = x[at];
            x[at] = nonfinite[i];
            suite_count(a, &k, &t, &y);
            expect_nonfinite(&in, y, vector, nonfinite[i]);
            x[at] = usual;
        }
}

TEST(nan_and_infinity_in_x_reach_every_result)
{
    const char *weights;
    for (const family *const *f = families; *f; f++)
        for (size_t i = 0; (*f)->quantizes && !family_key(*f, "experts"); i++) {
            arena *a = arena_new();
            weights = suite_weights(a, *f, i);
            if (weights) {
                check_nonfinite_x(a, *f, weights);
                check_nonfinite_x(a, *f, arena_format(a, "%snorm=rms m=3 ", weights));
                if (family_key(*f, "softcap"))
                    check_nonfinite_x(a, *f, arena_format(a, "%ssoftcap=30 m=3 ", weights));
            }
            bool last = !weights || !*weights;
            arena_free(a);
            if (last)
                break;
        }
}

/* Only the block with the value may have a NaN or infinite d. */
ARENA_TEST(nan_and_infinity_reach_their_q8_1_block)
{
    instance in = suite_made(a, family_find(families, "q8_1_quantize"), "k=768");
    kernel k = suite_kernel(a, &in);
    trial_setup setup = { .shape = in.shape, .sm_count = 4, .seed = 1 };
    trial t = trial_prepare(a, &in, &setup);
    float *x = t.params[1].content.bytes;
    for (size_t i = 0; i < sizeof nonfinite / sizeof *nonfinite; i++) {
        const void *blocks;
        float usual = x[100];
        x[100] = nonfinite[i];
        suite_count(a, &k, &t, &blocks);
        for (int64_t j = 0; j < in.shape.k / Q8_1_VALUES; j++) {
            q8_1_block block = q8_1_load((const char *)blocks + j * Q8_1_BYTES);
            assert_int_equal(!isfinite(block.d), j == 100 / Q8_1_VALUES);
        }
        x[100] = usual;
    }
}

/* Fills a block of weights with all-one bits. If the format decodes them as NaN, only that row's
 * results may be NaN. */
static void check_nonfinite_weights(arena *a, const family *f, const char *keys)
{
    enum { ROW = 1, COLUMN = 256 };
    instance in = suite_made(a, f, "%sk=1024 n=3 m=2", keys);
    kernel k = suite_kernel(a, &in);
    trial_setup setup = { .shape = in.shape, .sm_count = 4, .seed = 1 };
    trial t = trial_prepare(a, &in, &setup);
    format weights = instance_weights(&in);
    uint64_t at = format_bytes(weights, ROW * (uint64_t)in.shape.k + COLUMN);
    char *block = (char *)t.params[1].content.bytes + at;
    memset(block, 0xff, formats[weights].block_bytes);
    float decoded[256];
    const void *output;
    ref_decode(weights, block, formats[weights].block_values, decoded);
    suite_count(a, &k, &t, &output);
    const float *y = output;
    int64_t rows = in.shape.n + 2 * in.shape.n_kv;
    for (int64_t i = 0; i < in.shape.m * rows; i++)
        if (isfinite(y[i]) != (i % rows != ROW || isfinite(decoded[0])))
            fail_msg("%s: with %g in row %d, y[%lld] is %g", in.name, (double)decoded[0], ROW,
                     (long long)i, (double)y[i]);
}

/* Experts are left out: not all rows use the same ones. */
TEST(nan_in_a_scale_reaches_its_row)
{
    const char *weights;
    for (const family *const *f = families; *f; f++)
        for (size_t i = 0; streams(*f) && !family_key(*f, "experts"); i++) {
            arena *a = arena_new();
            weights = suite_weights(a, *f, i);
            if (weights)
                check_nonfinite_weights(a, *f, weights);
            arena_free(a);
            if (!weights)
                break;
        }
}

/* ptxas would otherwise spill. The second row of an iteration needs its own pointers if n is odd or
 * if rows differ in their alignment to 16 bytes. */
ARENA_TEST(rows_with_separate_pointers_have_more_registers)
{
    static const struct {
        const char *keys;
        bool more;
    } cases[] = {
        { "weights=iq3_s k=4096 n=34 rows_per_warp=2", false },
        { "weights=iq3_s k=4096 n=33 rows_per_warp=2", true },
        { "weights=iq3_s k=4352 n=34 rows_per_warp=2", true },
        { "weights=iq3_s k=4096 n=34 rows_per_warp=1", false },
        { "weights=q3_k k=4096 n=33 rows_per_warp=2", false },
        { "weights=q3_k k=4096 n=34 rows_per_warp=1", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        instance in = suite_made(a, family_find(families, "stream_gemv"), "%s", cases[i].keys);
        kernel k = suite_kernel(a, &in);
        if (!strstr(k.ptx, cases[i].more ? ".maxnreg 112" : ".maxnreg 80"))
            fail_msg("%s", cases[i].keys);
    }
}

/* Sixteen warps fit where 128 registers per thread suffice; other formats get twelve. */
ARENA_TEST(several_vectors_allow_up_to_sixteen_warps)
{
    static const struct {
        const char *keys, *most;
    } cases[] = {
        { "weights=q4_k k=4096 n=4096 m=8", "16" },  { "weights=iq4_xs k=4096 n=4096 m=2", "16" },
        { "weights=q6_k k=4096 n=4096 m=8", "12" },  { "weights=q3_k k=4096 n=4096 m=2", "12" },
        { "weights=tq1_0 k=4096 n=4096 m=8", "12" }, { "weights=iq1_m k=4096 n=4096 m=8", "12" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *blamed = NULL;
        instance in = suite_made(a, family_find(families, "stream_gemv"), "%s", cases[i].keys);
        in.num_warps = strtol(cases[i].most, NULL, 10);
        assert_null(in.family->check(&in, a, &blamed));
        in.num_warps++;
        const char *refused = in.family->check(&in, a, &blamed);
        assert_non_null(refused);
        assert_string_equal(blamed, "num_warps");
        assert_non_null(strstr(refused, arena_format(a, "use num_warps = %s", cases[i].most)));
    }
}

/* Each line's address is moved on by 16 bytes. In blocks that end with their quants, the last line
 * is then after the row. */
ARENA_TEST(a_line_after_a_row_is_found)
{
    static const char *const ending_with_quants[] = { "q4_0",  "q5_0", "q8_0",   "q4_1",   "q5_1",
                                                      "q1_0",  "q2_0", "iq4_nl", "iq4_xs", "mxfp4",
                                                      "nvfp4", "nf4",  "nf4_h" };
    const line_edit one_more = { "and.b64", "0xFFFFFFFFFFFFFFF0;", 0,
                                 "$0\n    add.u64 $1, $1, 16;" };
    for (size_t i = 0; i < sizeof ending_with_quants / sizeof *ending_with_quants; i++) {
        instance in = suite_made(a, family_find(families, "stream_gemv"), "weights=%s k=1024 n=1",
                                 ending_with_quants[i]);
        kernel k = suite_kernel(a, &in);
        k.ptx = edit_lines(a, k.ptx, &one_more);
        k.ptx_length = strlen(k.ptx);
        verify_result r = verify_kernel(a, &k, 1, NULL, false, NULL);
        assert_false(r.right);
        if (!strstr(r.message, "out of bounds"))
            fail_msg("%s", r.message);
    }
}
