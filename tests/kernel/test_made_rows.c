/* Rows converted to f16 for tensor-core products, and to 8 bits for streaming products. Checks
 * their scales, which are powers of two. Products of converted rows must have the bits of kernels
 * that convert x themselves. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/suite.h"
#include "ref/half.h"

enum { ROWS_OUT, FACTORS_OUT };

/* Each row has a largest value and the scale that it must get. */
EMULATOR_TEST(the_scale_of_a_row_brings_its_largest_value_into_range)
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
    instance in;
    kernel k = suite_kernel_of(a, "f16_rows", "k=260 m=11", &in);
    trial t = suite_rows(a, &in, COUNT);
    float *x = suite_param(&t, "x")->content.bytes;
    const void *outputs[MAX_PARAMS];
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < K; j++)
            x[i * K + j] = j == (37 * i + 3) % K ? rows[i].largest : rows[i].largest / 3;
    expect_right(suite_launch_all(a, d, &k, &t, outputs));
    const uint16_t *made = outputs[ROWS_OUT];
    const float *factors = outputs[FACTORS_OUT];
    for (size_t i = 0; i < COUNT; i++) {
        float half = half_to_float(made[i * K + (37 * i + 3) % K]);
        assert_true(factors[i] == rows[i].factor);
        assert_true(half == half_to_float(half_from_float(rows[i].largest / rows[i].factor)));
    }
    expect_right(suite_run(a, d, &k, &t, NULL, NULL));
}

/* Families that convert x themselves, convert rows, and multiply converted rows. */
typedef struct made_by {
    const char *whole, *rows, *product;
} made_by;
static const made_by halves = { "mma_gemm", "f16_rows", "mma_gemm_f16" };

/* Builds a kernel and appends `norm` to its keys if the family has that key. */
static kernel kernel_of(arena *a, const char *family_name, const char *text, const char *norm,
                        instance *in)
{
    bool norms = family_key(family_find(families, family_name), "norm");
    return suite_kernel_of(a, family_name, norms ? arena_format(a, "%s%s", text, norm) : text, in);
}

static void copy_input(trial *to, trial *from, const char *name)
{
    const trial_param *source = suite_param(from, name);
    memcpy(suite_param(to, name)->content.bytes, source->content.bytes, source->size);
}

/* Copies all common inputs except x. */
static void copy_inputs(trial *to, trial *from)
{
    for (size_t i = 0; i < to->param_count; i++) {
        const char *name = to->params[i].param.name;
        if (to->params[i].param.kind == PARAM_IN && strcmp(name, "x") != 0 &&
            strcmp(name, "factors") != 0)
            copy_input(to, from, name);
    }
}

/* Factors of the rows of x, which is random. */
enum { SIZES = 5 };
static const float far_sizes[SIZES] = { 1, 1e20f, 1e-20f, 1e6f, 1 };
static const float near_sizes[SIZES] = { 1, 1e15f, 1e-20f, 0, 1e3f };

static void check_bits(arena *a, device *d, const made_by *by, const char *text, const char *norm,
                       const float *sizes, int64_t m)
{
    instance of_f32, of_rows, of_made;
    kernel whole = kernel_of(a, by->whole, text, norm, &of_f32);
    int64_t k = of_f32.shape.k;
    kernel rows = kernel_of(
        a, by->rows, arena_format(a, "k=%lld m=%lld", (long long)k, (long long)m), norm, &of_rows);
    kernel product = kernel_of(a, by->product, text, norm, &of_made);
    trial t = suite_rows(a, &of_f32, m), t_rows = suite_rows(a, &of_rows, m);
    trial t_made = suite_rows(a, &of_made, m);
    float *x = suite_param(&t, "x")->content.bytes;
    const void *outputs[MAX_PARAMS], *expected, *got;
    for (int64_t i = 0; i < m * k; i++)
        x[i] *= sizes[i / k % SIZES];
    expect_right(suite_run(a, d, &whole, &t, NULL, &expected));
    copy_input(&t_rows, &t, "x");
    if (*norm)
        copy_input(&t_rows, &t, "gamma");
    expect_right(suite_launch_all(a, d, &rows, &t_rows, outputs));
    copy_inputs(&t_made, &t);
    trial_param *of_x = suite_param(&t_made, "x"), *factors = suite_param(&t_made, "factors");
    memcpy(of_x->content.bytes, outputs[ROWS_OUT], of_x->size);
    memcpy(factors->content.bytes, outputs[FACTORS_OUT], factors->size);
    expect_right(suite_run(a, d, &product, &t_made, NULL, &got));
    if (memcmp(got, expected, suite_param(&t, "y")->size) != 0)
        fail_msg("%s, %s, m %lld: bits differ from those with x in f32", by->product, text,
                 (long long)m);
}

EMULATOR_TEST(products_of_f16_rows_have_the_bits_of_products_of_f32)
{
    check_bits(a, d, &halves, "weights=q4_k k=512 n=131 m=32", "", far_sizes, 33);
    check_bits(a, d, &halves, "weights=q8_0 k=416 n=5 m=128", "", far_sizes, 9);
    check_bits(a, d, &halves, "weights=f32 k=268 n=130 m=16", "", far_sizes, 17);
    check_bits(a, d, &halves, "weights=mxfp4 k=96 n=7 m=64", "", far_sizes, 64);
}

/* Covers every format, with and without a norm, and rows of whole and partial iterations. */
EMULATOR_TEST(products_of_8_bit_rows_have_the_bits_of_products_of_f32)
{
    static const made_by bytes = { "stream_gemv", "q8_rows", "stream_gemv_q8" };
    const key *weights = family_key(family_find(families, "stream_gemv_q8"), "weights");
    size_t formats_tried = 0;
    for (const choice *c = weights->choices; c->word; c++) {
        if (!key_takes_choice(weights, c))
            continue;
        const char *norm = formats_tried % 2 ? "" : " norm=rms";
        check_bits(a, d, &bytes, arena_format(a, "weights=%s k=2816 n=5 m=5", c->word), norm,
                   near_sizes, 5);
        check_bits(a, d, &bytes,
                   arena_format(a, "weights=%s k=768 n=9 m=1 rows_per_warp=1", c->word),
                   formats_tried % 2 ? " norm=rms" : "", near_sizes, 1);
        formats_tried++;
    }
    assert_true(formats_tried > 20);
    check_bits(a, d, &bytes, "weights=q8_0 k=9216 n=9 m=3 passes=2 bias=add", " norm=rms",
               near_sizes, 3);
    check_bits(a, d, &bytes, "weights=q4_0 k=288 n=9 m=3 rows=run_time residual=add", " norm=rms",
               near_sizes, 8);
}

EMULATOR_TEST(fused_products_of_8_bit_rows_have_the_bits_of_products_of_f32)
{
    static const made_by qkv = { "stream_qkv", "q8_rows", "stream_qkv_q8" };
    static const made_by gates = { "stream_gate_up", "q8_rows", "stream_gate_up_q8" };
    check_bits(a, d, &qkv, "weights=q4_k weights_v=q6_k k=1024 n=65 n_kv=33 m=4 bias=add",
               " norm=rms", near_sizes, 4);
    check_bits(a, d, &qkv, "weights=q5_0 weights_k=iq4_nl k=1056 n=33 n_kv=7 m=1", "", near_sizes,
               1);
    check_bits(a, d, &gates, "weights=q4_k weights_u=q5_k k=1024 n=33 m=8 bias=add", " norm=rms",
               near_sizes, 8);
    check_bits(a, d, &gates, "weights=q8_0 k=1056 n=33 m=2 activation=gelu", "", near_sizes, 2);
}

/* The scale d of a block of 32 values depends on its largest value, which counts as at least 1e-30.
 * A NaN or infinity in the block makes d NaN or infinite. */
EMULATOR_TEST(blocks_of_8_bits_have_their_own_scales)
{
    enum { K = 96, BLOCKS = K / Q8_F32_VALUES };
    static const float largest[BLOCKS] = { 254, -0x1p-120f, 0 };
    instance in;
    kernel k = suite_kernel_of(a, "q8_rows", "k=96 m=2", &in);
    trial t = suite_rows(a, &in, 2);
    float *x = suite_param(&t, "x")->content.bytes;
    const void *outputs[MAX_PARAMS];
    for (size_t i = 0; i < 2 * (size_t)K; i++)
        x[i] = largest[i / Q8_F32_VALUES % BLOCKS] / (i % Q8_F32_VALUES == 7 ? 1 : 4);
    x[K] = NAN;
    x[K + Q8_F32_VALUES] = -INFINITY;
    expect_right(suite_launch_all(a, d, &k, &t, outputs));
    const uint8_t *made = outputs[ROWS_OUT];
    const float *factors = outputs[FACTORS_OUT];
    float scales[2 * BLOCKS];
    for (size_t b = 0; b < 2 * (size_t)BLOCKS; b++)
        memcpy(&scales[b], made + b * Q8_F32_BYTES + Q8_F32_D, sizeof *scales);
    assert_true(scales[0] == 2);
    assert_true(scales[1] == 1e-30f * (1.0f / 127) && scales[2] == scales[1]);
    assert_true(isnan(scales[3]) && isinf(scales[4]));
    assert_true(factors[0] == 1 && factors[1] == 1);
    for (int i = 0; i < Q8_F32_VALUES; i++) /* 63.5 is 31.75 times 2 */
        assert_int_equal((int8_t)made[Q8_F32_QUANTS + i], i == 7 ? 127 : 32);
}

EMULATOR_TEST(every_number_of_f16_rows_is_right)
{
    static const int64_t counts[] = { 9, 16, 17, 63, 64, 128, 200, 512 };
    static const char *const texts[] = { "weights=q4_k k=256 n=131 m=128", "weights=f16 k=72 n=5",
                                         "weights=q6_k k=256 n=129 m=64",
                                         "weights=q4_k k=1024 n=130 m=32 splits=4" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t r = 0; r < sizeof counts / sizeof *counts; r++) {
            instance in;
            kernel k = suite_kernel_of(a, "mma_gemm_f16", texts[i], &in);
            trial t = suite_rows(a, &in, counts[r]);
            expect_right(suite_run(a, d, &k, &t, NULL, NULL));
        }
}

ARENA_TEST(faults_of_f16_rows_are_found)
{
    static const planted_fault faults[] = {
        /* the last warps' values are used too early, or only the first warps' are summed */
        FAULT("f16_rows", "k=1028 norm=rms m=3", "bar.sync", "", 1, ""),
        FAULT("f16_rows", "k=1032 norm=rms m=3", "setp.lt.u32", "", 3, "setp.lt.u32 $1, $2, 8;"),
        FAULT("f16_rows", "k=260 m=3", "max.u32", "", 0, "min.u32 $1, $2, $3;"),
        FAULT("f16_rows", "k=260 m=3", "sub.u32", "", 1, "sub.u32 $1, 269, $3;"),
        FAULT("f16_rows", "k=516 norm=rms m=3", "rsqrt.approx.f32", "", 1, "mov.f32 $1, $2;"),
        FAULT("f16_rows", "k=516 norm=rms m=3", "st.global.f32", "", 1, ""),
        FAULT("f16_rows", "k=20480 m=2", "mul.rn.f32", "", 1, "mov.f32 $1, $2;"),
    };
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}

ARENA_TEST(faults_of_8_bit_rows_are_found)
{
    static const planted_fault faults[] = {
        FAULT("q8_rows", "k=1056 norm=rms m=3", "bar.sync", "", 1, ""),
        FAULT("q8_rows", "k=1056 norm=rms m=3", "shfl.sync.bfly", "", 1, "mov.b32 $1, $2;"),
        FAULT("q8_rows", "k=1056 norm=rms m=3", "rsqrt.approx.f32", "", 1, "mov.f32 $1, $2;"),
        FAULT("q8_rows", "k=1056 norm=rms m=3", "st.shared.f32", "", 1, ""),
        FAULT("q8_rows", "k=1056 m=3", "max.u32", "", 0, "min.u32 $1, $2, $3;"),
        FAULT("q8_rows", "k=1056 m=3", "st.global.s32", "", 1, ""),
        FAULT("q8_rows", "k=1056 m=3", "st.global.f32", "", 1, ""),
        /* a chunk is left out: of a warp, of a block */
        FAULT("q8_rows", "k=8224 norm=rms m=2", "add.u32", "16;", 1, "add.u32 $1, $2, 17;"),
        FAULT("q8_rows", "k=8224 m=2", "mad.lo.u32", "", 1, "mad.lo.u32 $1, $2, 17, $4;"),
    };
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}

ARENA_TEST(faults_of_products_of_8_bit_rows_are_found)
{
    static const line_edit faults[] = {
        { "ld.global.nc.u32", "", 1, "mov.u32 $1, 0;" }, /* quants, scales, factors */
        { "ld.global.nc.f32", "", 1, "mov.f32 $1, 0f3F800000;" },
        { "ld.global.nc.f32", "", 2, "mov.f32 $1, 0f3F800000;" },
        { "bar.sync", "", 1, "" },
        { "mul.wide.u32", " 16;", 1, "mul.wide.u32 $1, $2, 0;" }, /* the other half */
    };
    expect_edits_found(a, "stream_gemv_q8", "weights=q4_k k=2816 n=9 m=3", faults,
                       sizeof faults / sizeof *faults);
}

ARENA_TEST(faults_of_products_of_f16_rows_are_found)
{
    static const line_edit faults[] = {
        { "prmt.b32", "0x7632;", 1, "prmt.b32 $1, $2, $3, 0x5410;" }, /* pairs in another order */
        { "ld.global.nc.v4.u32", "", 1, "mov.u32 %r0, %r0;" },        /* stale values */
        { "ld.global.nc.f32", "", 1, "mov.f32 $1, 0f3F800000;" },     /* factors of 1 */
        { "cp.async.wait_group", "", 1, "" },
    };
    expect_edits_found(a, "mma_gemm_f16", "weights=q4_k k=1280 n=130 m=32", faults,
                       sizeof faults / sizeof *faults);
}

/* Partial sums that are read too early, a count that is too low, and a part that is not stored. */
ARENA_TEST(faults_of_products_in_parts_are_found)
{
    static const line_edit faults[] = {
        { "atom.acq_rel.gpu.global.inc.u32", "", 1, "atom.relaxed.gpu.global.inc.u32 $1, $2, $3;" },
        { "atom.acq_rel.gpu.global.inc.u32", "", 1, "atom.acq_rel.gpu.global.inc.u32 $1, $2, 2;" },
        { "st.global.v4.f32", "", 1, "" },
    };
    expect_edits_found(a, "mma_gemm_f16", "weights=q4_k k=1024 n=130 m=16 splits=4", faults,
                       sizeof faults / sizeof *faults);
}
