/* Rows made f16 ahead of products on the tensor cores: their powers of two, and products that have
 * the bits of those that round x themselves.
 */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/suite.h"
#include "ref/half.h"

enum { ROWS_OUT, FACTORS_OUT };

/* A row's largest value, and what its factor has to be. */
ARENA_TEST(the_power_of_a_row_brings_its_largest_value_into_reach)
{
    static const struct {
        float largest, factor;
    } rows[] = { { 1, 1 },
                 { 32767.9f, 1 },
                 { 32768, 2 },
                 { -65536, 4 },
                 { 0.999f, 0x1p-15f },
                 { -0x1p-10f, 0x1p-24f },
                 { 0x1.fffffep127f, 0x1p113f },
                 { 0x1p-112f, 0x1p-126f },
                 { 0x1p-113f, 0x1p-126f },
                 { 0x1p-149f, 0x1p-126f },
                 { 0, 0x1p-126f } };
    enum { K = 260, COUNT = sizeof rows / sizeof *rows };
    device d = suite_emulator(a);
    instance in;
    kernel k = suite_kernel_of(a, "f16_rows", "k=260 m=11", &in);
    trial t = suite_rows(a, &in, COUNT);
    float *x = suite_param(&t, "x")->content.bytes;
    const void *outputs[MAX_PARAMS];
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < K; j++)
            x[i * K + j] = j == (37 * i + 3) % K ? rows[i].largest : rows[i].largest / 3;
    expect_right(suite_launch_all(a, &d, &k, &t, outputs));
    const uint16_t *made = outputs[ROWS_OUT];
    const float *factors = outputs[FACTORS_OUT];
    for (size_t i = 0; i < COUNT; i++) {
        float half = half_to_float(made[i * K + (37 * i + 3) % K]);
        assert_true(factors[i] == rows[i].factor);
        assert_true(half == half_to_float(half_from_float(rows[i].largest / rows[i].factor)));
    }
    expect_right(suite_run(a, &d, &k, &t, NULL, NULL));
    d.close(d.state);
}

/* Both are given the same random x, of which some rows are too large and some too small for f16. */
static void check_bits(arena *a, device *d, const char *text, int64_t k, int64_t m)
{
    static const float sizes[] = { 1, 1e20f, 1e-20f, 1e6f, 1 };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    instance of_f32, of_rows, of_f16;
    kernel whole = suite_kernel_of(a, "mma_gemm", text, &of_f32);
    kernel rows = suite_kernel_of(
        a, "f16_rows", arena_format(a, "k=%lld m=%lld", (long long)k, (long long)m), &of_rows);
    kernel product = suite_kernel_of(a, "mma_gemm_f16", text, &of_f16);
    trial t = suite_rows(a, &of_f32, m), t_rows = suite_rows(a, &of_rows, m);
    trial t_f16 = suite_rows(a, &of_f16, m);
    float *x = suite_param(&t, "x")->content.bytes;
    const void *outputs[MAX_PARAMS], *expected, *got;
    for (int64_t i = 0; i < m * k; i++)
        x[i] *= sizes[i / k % SIZES];
    expect_right(suite_run(a, d, &whole, &t, NULL, &expected));
    memcpy(suite_param(&t_rows, "x")->content.bytes, x, (size_t)(m * k) * sizeof *x);
    expect_right(suite_launch_all(a, d, &rows, &t_rows, outputs));
    trial_param *of_x = suite_param(&t_f16, "x"), *factors = suite_param(&t_f16, "factors");
    trial_param *w = suite_param(&t_f16, "w");
    memcpy(of_x->content.bytes, outputs[ROWS_OUT], of_x->size);
    memcpy(factors->content.bytes, outputs[FACTORS_OUT], factors->size);
    memcpy(w->content.bytes, suite_param(&t, "w")->content.bytes, w->size);
    expect_right(suite_run(a, d, &product, &t_f16, NULL, &got));
    if (memcmp(got, expected, (size_t)(m * of_f32.shape.n) * sizeof(float)) != 0)
        fail_msg("%s, m %lld: other bits than with x of f32", text, (long long)m);
}

ARENA_TEST(products_of_rows_made_f16_have_the_bits_of_those_that_round_x)
{
    device d = suite_emulator(a);
    check_bits(a, &d, "weights=q4_k k=512 n=131 m=32", 512, 33);
    check_bits(a, &d, "weights=q8_0 k=416 n=5 m=128", 416, 9);
    check_bits(a, &d, "weights=f32 k=268 n=130 m=16", 268, 17);
    check_bits(a, &d, "weights=mxfp4 k=96 n=7 m=64", 96, 64);
    d.close(d.state);
}

ARENA_TEST(every_number_of_f16_rows_is_right)
{
    static const int64_t counts[] = { 9, 16, 17, 63, 64, 128, 200, 512 };
    static const char *const texts[] = { "weights=q4_k k=256 n=131 m=128", "weights=f16 k=72 n=5",
                                         "weights=q6_k k=256 n=129 m=64",
                                         "weights=q4_k k=1024 n=130 m=32 splits=4" };
    device d = suite_emulator(a);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t r = 0; r < sizeof counts / sizeof *counts; r++) {
            instance in;
            kernel k = suite_kernel_of(a, "mma_gemm_f16", texts[i], &in);
            trial t = suite_rows(a, &in, counts[r]);
            expect_right(suite_run(a, &d, &k, &t, NULL, NULL));
        }
    d.close(d.state);
}

ARENA_TEST(faults_of_rows_made_f16_are_found)
{
    static const struct {
        const char *text;
        line_edit edit;
    } faults[] = {
        /* the last warps' values are not waited for, or only the first ones' count */
        { "k=1028 norm=rms m=3", { "bar.sync", "", 1, "" } },
        { "k=1032 norm=rms m=3", { "setp.lt.u32", "", 3, "setp.lt.u32 $1, $2, 8;" } },
        { "k=260 m=3", { "max.u32", "", 0, "min.u32 $1, $2, $3;" } },
        { "k=260 m=3", { "sub.u32", "", 1, "sub.u32 $1, 269, $3;" } },
        { "k=516 norm=rms m=3", { "rsqrt.approx.f32", "", 1, "mov.f32 $1, $2;" } },
        { "k=516 norm=rms m=3", { "st.global.f32", "", 1, "" } },
        { "k=20480 m=2", { "mul.f32", "", 1, "mov.f32 $1, $2;" } },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        instance in;
        const kernel k = suite_kernel_of(a, "f16_rows", faults[i].text, &in);
        expect_fault_found(a, &k, &faults[i].edit);
    }
}

ARENA_TEST(faults_of_products_of_f16_rows_are_found)
{
    static const line_edit faults[] = {
        { "prmt.b32", "0x7632;", 1, "prmt.b32 $1, $2, $3, 0x5410;" }, /* pairs in another order, */
        { "ld.global.nc.v4.u32", "", 1, "mov.u32 %r0, %r0;" },        /* old values, */
        { "ld.global.nc.f32", "", 1, "mov.f32 $1, 0f3F800000;" },     /* and factors of 1 */
        { "cp.async.wait_group", "", 1, "" },
    };
    instance in;
    const kernel k = suite_kernel_of(a, "mma_gemm_f16", "weights=q4_k k=1280 n=130 m=32", &in);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_fault_found(a, &k, &faults[i]);
}

/* Parts that are not waited for, one block too few or one part that is not there. */
ARENA_TEST(faults_of_products_in_parts_are_found)
{
    static const line_edit faults[] = {
        { "atom.acq_rel.gpu.global.inc.u32", "", 1, "atom.relaxed.gpu.global.inc.u32 $1, $2, $3;" },
        { "atom.acq_rel.gpu.global.inc.u32", "", 1, "atom.acq_rel.gpu.global.inc.u32 $1, $2, 2;" },
        { "st.global.v4.f32", "", 1, "" },
    };
    instance in;
    const kernel k =
        suite_kernel_of(a, "mma_gemm_f16", "weights=q4_k k=1024 n=130 m=16 splits=4", &in);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_fault_found(a, &k, &faults[i]);
}
