/* mma.sync against three nested loops. */
#include <math.h>

#include "test_emu_bad.h"

enum { M = 16, N = 8, K = 16, LANES = 32, WORDS = 10 };

#define MMA(type)                                                                                \
    KERNEL("mad.lo.u32 %r20, %t, 40, 0; cvt.u64.u32 %l1, %r20; add.u64 %l1, %l1, %in;\n"         \
           "ld.global.v2.b32 {%r0, %r1}, [%l1]; ld.global.v2.b32 {%r2, %r3}, [%l1+8];\n"         \
           "ld.global.v2.b32 {%r4, %r5}, [%l1+16]; ld.global.v2.f32 {%f0, %f1}, [%l1+24];\n"     \
           "ld.global.v2.f32 {%f2, %f3}, [%l1+32];\n"                                            \
           "mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32\n"                       \
           "    {%f4, %f5, %f6, %f7}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};\n" \
           "mul.wide.u32 %l1, %t, 16; add.u64 %l1, %l1, %out;\n"                                 \
           "st.global.v4.f32 [%l1], {%f4, %f5, %f6, %f7};")

typedef struct format {
    const char *name, *text;
    int mantissa_bits, bias;
} format;

static const format f16 = { "f16", MMA("f16"), 10, 15 }, bf16 = { "bf16", MMA("bf16"), 7, 127 };
static const format *const formats[] = { &f16, &bf16 };

typedef struct problem {
    double a[M][K], b[K][N];
    float c[M][N], d[M][N];
} problem;

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Returns the 16 bits of a value that the format represents exactly, normal or subnormal. */
static uint32_t encode(const format *f, double value)
{
    int exponent;
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    uint32_t infinity = (0x7fffu >> f->mantissa_bits) << f->mantissa_bits;
    if (isnan(value))
        return infinity | 1;
    if (isinf(value))
        return sign | infinity;
    if (value == 0)
        return sign;
    double fraction = 2 * frexp(fabs(value), &exponent);
    int biased = exponent - 1 + f->bias;
    double scaled = biased > 0 ? ldexp(fraction - 1, f->mantissa_bits)
                               : ldexp(fraction, f->mantissa_bits - 1 + biased);
    assert_true(scaled == floor(scaled));
    return sign | (uint32_t)(biased > 0 ? biased : 0) << f->mantissa_bits | (uint32_t)scaled;
}

/* Returns element i of a lane's fragment of A, by the layout of the PTX ISA. */
static double *element_of_a(problem *p, int lane, int i)
{
    int row = lane / 4 + ((i >= 0 && i < 2) || (i >= 4 && i < 6) ? 0 : 8);
    return &p->a[row][lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)];
}

static double *element_of_b(problem *p, int lane, int i)
{
    return &p->b[lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8)][lane / 4];
}

static float *element_of_c(float c[M][N], int lane, int i)
{
    return &c[i < 2 ? lane / 4 : lane / 4 + 8][lane % 4 * 2 + (i & 1)];
}

/* Runs an mma of the matrices on the emulator. */
static void multiply(problem *p, const format *f)
{
    static run r;
    uint32_t words[LANES][WORDS] = { 0 };
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < 8; i++)
            words[lane][i / 2] |= encode(f, *element_of_a(p, lane, i)) << 16 * (i & 1);
        for (int i = 0; i < 4; i++)
            words[lane][4 + i / 2] |= encode(f, *element_of_b(p, lane, i)) << 16 * (i & 1);
        for (int i = 0; i < 4; i++)
            words[lane][6 + i] = bits_of(*element_of_c(p->c, lane, i));
    }
    r = (run){ .text = f->text, .in = words, .in_size = sizeof words };
    run_well(&r);
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 4; i++)
            memcpy(element_of_c(p->d, lane, i), (const uint32_t *)r.out + lane * 4 + i, 4);
}

static uint32_t random_state = 1;

static int random_below(int limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (uint32_t)limit);
}

/* Sums of small integers are exact in any order. */
TEST(sums_that_are_exact_are_right_to_the_bit)
{
    for (int round = 0; round < 40; round++) {
        problem p;
        for (int i = 0; i < M * K; i++)
            p.a[i / K][i % K] = random_below(33) - 16;
        for (int i = 0; i < K * N; i++)
            p.b[i / N][i % N] = random_below(33) - 16;
        for (int i = 0; i < M * N; i++)
            p.c[i / N][i % N] = (float)(random_below(20001) - 10000);
        multiply(&p, formats[round % 2]);
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                double sum = (double)p.c[m][n];
                for (int k = 0; k < K; k++)
                    sum += p.a[m][k] * p.b[k][n];
                if (bits_of(p.d[m][n]) != bits_of((float)sum))
                    fail_msg("%s: d[%d][%d] is %g, expected %g", formats[round % 2]->name, m, n,
                             (double)p.d[m][n], sum);
            }
    }
}

/* Returns a value with a random mantissa and an exponent of -6 to 5. */
static double random_value(const format *f)
{
    double mantissa = ldexp(1 + random_below(1 << f->mantissa_bits), -f->mantissa_bits);
    return ldexp(random_below(2) ? mantissa : -mantissa, random_below(12) - 6);
}

TEST(random_sums_are_within_the_rounding_of_17_terms)
{
    for (int round = 0; round < 40; round++) {
        problem p;
        const format *f = formats[round % 2];
        for (int i = 0; i < M * K; i++)
            p.a[i / K][i % K] = random_value(f);
        for (int i = 0; i < K * N; i++)
            p.b[i / N][i % N] = random_value(f);
        for (int i = 0; i < M * N; i++)
            p.c[i / N][i % N] = (float)random_value(f);
        multiply(&p, f);
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                double sum = (double)p.c[m][n], size = fabs(sum);
                for (int k = 0; k < K; k++) {
                    sum += p.a[m][k] * p.b[k][n];
                    size += fabs(p.a[m][k] * p.b[k][n]);
                }
                if (!(fabs((double)p.d[m][n] - sum) <= K * size * 0x1p-24))
                    fail_msg("%s: d[%d][%d] is %.9g, expected %.9g", f->name, m, n,
                             (double)p.d[m][n], sum);
            }
    }
}

/* The product of one row of A and one column of B. */
typedef struct sum {
    const format *format;
    double a[3], b[3]; /* further elements are 0 */
    float c;
    uint32_t bits;
} sum;

TEST(each_product_is_exact_and_each_sum_rounded_in_order)
{
    static const sum sums[] = {
        /* c + 1 rounds to c for c = 2^24; the order of the three products decides */
        { &f16, { 1, 1, 0 }, { 1, 1, 0 }, 0x1p24f, 0x4b800000 },
        { &f16, { 4096, 1, -4096 }, { 4096, 1, 4096 }, 0, 0 },
        { &f16, { 4096, -4096, 1 }, { 4096, 4096, 1 }, 0, 0x3f800000 },
        { &bf16, { 0x1p12, 1, -0x1p12 }, { 0x1p12, 1, 0x1p12 }, 0, 0 },
        /* halfway between two f32, and slightly above */
        { &f16, { 0x1p-12, 0, 0 }, { 0x1p-12, 0, 0 }, 1, 0x3f800000 },
        { &f16, { 0x1.004p-12, 0, 0 }, { 0x1p-12, 0, 0 }, 1, 0x3f800001 },
        /* neither subnormal operands nor subnormal results are flushed */
        { &f16, { 0x1p-24, 0, 0 }, { 0x1p-24, 0, 0 }, 0, 0x27800000 },
        { &bf16, { 0x1p-133, 0, 0 }, { 0x1p-16, 0, 0 }, 0, 0x00000001 },
        { &bf16, { 0x1p-133, 0, 0 }, { 0x1p-18, 0, 0 }, 0x1p-149f, 0x00000001 },
        /* products that overflow f32 */
        { &bf16, { 0x1p100, 0, 0 }, { 0x1p100, 0, 0 }, 0, 0x7f800000 },
        { &bf16, { 0x1p100, 0x1p100, 0 }, { 0x1p100, -0x1p100, 0 }, 0, 0x7f800000 },
        { &bf16, { 0x1p100, -INFINITY, 0 }, { 0x1p100, 1, 0 }, 0, 0x7fffffff },
        { &f16, { INFINITY, 0, 0 }, { -2, 0, 0 }, 5, 0xff800000 },
        { &f16, { INFINITY, 0, 0 }, { 0, 0, 0 }, 5, 0x7fffffff },
        { &bf16, { NAN, 0, 0 }, { 1, 0, 0 }, 5, 0x7fffffff },
    };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const sum *s = &sums[i];
        problem p = { 0 };
        for (int k = 0; k < 3; k++) {
            p.a[9][k] = s->a[k];
            p.b[k][5] = s->b[k];
        }
        p.c[9][5] = s->c;
        multiply(&p, s->format);
        if (bits_of(p.d[9][5]) != s->bits)
            fail_msg("%s, sum %zu is %08x (%g), expected %08x (%g)", s->format->name, i,
                     bits_of(p.d[9][5]), (double)p.d[9][5], s->bits, (double)float_of(s->bits));
    }
}

#define F16  "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#define BF16 "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#define D    "{%f0, %f1, %f2, %f3}"
#define A    "{%r0, %r1, %r2, %r3}"
#define B    "{%r4, %r5}"
#define C    "{%f4, %f5, %f6, %f7}"
#define SET                                                                                    \
    "mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 " \
    "%r5, 0;\n"                                                                                \
    "mov.f32 %f4, 0f00000000; mov.f32 %f5, %f4; mov.f32 %f6, %f4; mov.f32 %f7, %f4;\n"

/* clang-format off */
TEST_FAULTS(a_partial_warp_is_found,
    { SET "setp.lt.u32 %p1, %t, 16;\n@%p1 " F16 D "," A "," B "," C ";", 3, 0, EMU_INACTIVE_LANE,
      "mma.sync needs all 32 lanes of a warp; lane 16 does not participate: it is inactive", 32 },
    { SET "setp.ne.u32 %p1, %t, 0;\n@!%p1 bra $join;\n" BF16 D "," A "," B "," C ";\n$join:", 4, 1, EMU_INACTIVE_LANE,
      "lane 0 does not participate: it is inactive", 32 },
    { SET "setp.eq.u32 %p1, %t, 7;\n@%p1 ret;\n" F16 D "," A "," B "," C ";", 4, 0, EMU_INACTIVE_LANE,
      "lane 7 does not participate: it has ended", 32 },
    { SET F16 D "," A "," B "," C ";", 2, 32, EMU_INACTIVE_LANE, "lane 8 does not participate: it is not in the block", 40 },
    { "mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0;\n" F16 D "," A "," B "," C ";",
      1, 0, EMU_UNDEFINED_REGISTER, "register %r5 is read", 32 })

TEST_FAULTS(groups_of_other_sizes_and_types_are_refused,
    { F16 D "," A "," B ";", 0, 0, EMU_SYNTAX, "mma has 3 operands; it needs 4", 32 },
    { "\n" F16 D "," A "," B "," C "," C ";", 1, 0, EMU_SYNTAX, "mma has 5 operands; it needs 4", 32 },
    { F16 "{%f0, %f1}," A "," B "," C ";", 0, 0, EMU_SYNTAX, "mma needs 4 registers in braces as operand 1, not 2", 32 },
    { F16 D ",{%r0, %r1, %r2}," B "," C ";", 0, 0, EMU_SYNTAX, "needs 4 registers in braces as operand 2, not 3", 32 },
    { F16 D "," A "," A "," C ";", 0, 0, EMU_SYNTAX, "needs 2 registers in braces as operand 3, not 4", 32 },
    { F16 D "," A "," B ", %f4;", 0, 0, EMU_SYNTAX, "needs 4 registers in braces as operand 4, not 1", 32 },
    { F16 D ",{%r0, %f1, %r2, %r3}," B "," C ";", 0, 0, EMU_SYNTAX, "mma needs a .f16x2 here; %f1 is a .f32", 32 },
    { BF16 D ",{%r0, %h1, %r2, %r3}," B "," C ";", 0, 0, EMU_SYNTAX, "mma needs a .bf16x2 here; %h1 is a .b16", 32 },
    { ".reg .u32 %u<4>; " F16 "{%u0, %u1, %u2, %u3}," A "," B "," C ";", 0, 0, EMU_SYNTAX, "mma needs a .f32 here; %u0 is a .u32", 32 },
    { F16 D "," A "," B ",{%l0, %f5, %f6, %f7};", 0, 0, EMU_SYNTAX, "mma needs a .f32 here; %l0 is a .b64", 32 },
    { F16 D ",{0, 0, 0, 0}," B "," C ";", 0, 0, EMU_SYNTAX, "not the integer constant 0", 32 },
    { F16 "{1, %f1, %f2, %f3}," A "," B "," C ";", 0, 0, EMU_SYNTAX, "the result must be a register", 32 },
    { F16 D "," A "," B ",{%f4, %f5, %f6, %nothing};", 0, 0, EMU_SYNTAX, "'%nothing' is not declared", 32 },
    { "mma.sync.m16n8k16.row.col.f32.f16.f16.f32 " D "," A "," B "," C ";", 0, 0, EMU_SYNTAX, "not a known form of mma", 32 },
    { "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32 " D "," A "," B "," C ";", 0, 0, EMU_SYNTAX, "not a known form of mma", 32 },
    { "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 " D "," A "," B "," C ";", 0, 0, EMU_SYNTAX, "not a known form of mma", 32 },
    { "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 " D "," A "," B "," C ";", 0, 0, EMU_SYNTAX, "not a known form of mma", 32 })
/* clang-format on */

/* Sums and results share registers, a zero is written as a constant, and a result is discarded. */
TEST(registers_may_be_both_read_and_written)
{
    static const uint32_t in[1] = { 0 };
    run r = { .text = KERNEL("mov.b32 %r0, 0x3c003c00;\n" F16
                             "{%f0, %f1, %f2, _}, {%r0, %r0, %r0, %r0}, {%r0, %r0},"
                             " {0f00000000, 0f3f800000, 0f00000000, 0f00000000};\n" F16
                             "{%f0, %f1, %f2, %f3}, {%r0, %r0, %r0, %r0}, {%r0, %r0},"
                             " {%f1, %f0, %f0, %f1};\n"
                             "st.global.v2.f32 [%slot], {%f0, %f3};"),
              .in = in,
              .in_size = sizeof in };
    run_well(&r);
    for (int lane = 0; lane < LANES; lane++) {
        assert_int_equal((uint32_t)r.out[lane], bits_of(33));
        assert_int_equal(r.out[lane] >> 32, bits_of(33));
    }
}

TEST(a_target_without_mma_is_refused)
{
    static const char module[] =
        ".version 7.0\n.target sm_%s\n.address_size 64\n"
        ".visible .entry k()\n{\n"
        ".reg .b32 %%r<6>; .reg .f32 %%f<8>;\n%s%s %s,%s,%s,%s;\nret;\n}\n";
    static const char *const targets[] = { "75", "80", "90a", "120" };
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char text[1024];
        emu_report report;
        arena *a = arena_new();
        snprintf(text, sizeof text, module, targets[i], SET, F16, D, A, B, C);
        emu_module *m = emu_load(a, text, strlen(text), &report);
        assert_int_equal(m != NULL, i > 0);
        if (!m) {
            assert_int_equal(report.fault, EMU_SYNTAX);
            assert_int_equal(report.line, 9);
            assert_string_equal(report.message,
                                "'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32' requires "
                                "sm_80 or higher; .target is sm_75");
        }
        arena_free(a);
    }
}
