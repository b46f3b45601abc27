/* PTX that nvcc compiled from CUDA C must give the results of plain C on the emulator. The builder
 * of ptxgen has no part in it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "base/os.h"
#include "emu/emu.h"
#include "ref/half.h"

enum { MAX_ELEMENTS = 8192 };

typedef struct device {
    arena *arena;
    emu_memory *memory;
    emu_module *module;
    const char *kernel;
} device;

typedef struct extent {
    unsigned grid[3], block[3];
    size_t dynamic_shared;
} extent;

/* Opens the module that contains the kernel. */
static device open_device(const char *kernel)
{
    static const char *const files[] = { "sm_75",    "sm_80", "sm_90", "matrices",
                                         "barriers", "bulk",  "stack", "small" };
    const char *folder = getenv("PTXGEN_NVCC_DATA"), *error;
    device d = { .arena = arena_new(), .memory = emu_memory_new(NULL), .kernel = kernel };
    const char *entry = arena_format(d.arena, ".entry %s(", kernel);
    assert_non_null(folder);
    for (size_t i = 0; i < sizeof files / sizeof *files && !d.module; i++) {
        const char *path = arena_format(d.arena, "%s/%s.ptx", folder, files[i]);
        char *text;
        size_t length;
        emu_report report;
        if (!os_read_file(d.arena, path, &text, &length, &error))
            fail_msg("%s: %s", path, error);
        d.module = strstr(text, entry) ? emu_load(d.arena, text, length, &report) : NULL;
        if (strstr(text, entry) && !d.module)
            fail_msg("%s:%u: %s", path, report.line, report.message);
    }
    assert_non_null(d.module);
    return d;
}

static void close_device(device *d)
{
    emu_memory_free(d->memory);
    arena_free(d->arena);
}

static uint64_t input(device *d, const void *bytes, size_t size)
{
    return emu_map(d->memory, (void *)(uintptr_t)bytes, size, true);
}

static uint64_t output(device *d, void *bytes, size_t size)
{
    return emu_map(d->memory, bytes, size, false);
}

static bool try_launch(device *d, extent e, const void *const *params, size_t count,
                       emu_report *report)
{
    emu_launch_config config = { .module = d->module,
                                 .entry = d->kernel,
                                 .dynamic_shared = e.dynamic_shared,
                                 .stack_size = 4096,
                                 .params = params,
                                 .param_count = count };
    for (int i = 0; i < 3; i++) {
        config.grid[i] = e.grid[i] ? e.grid[i] : 1;
        config.block[i] = e.block[i] ? e.block[i] : 1;
    }
    return emu_launch(d->memory, &config, NULL, report);
}

static void launch(device *d, extent e, const void *const *params, size_t count)
{
    emu_report report;
    if (!try_launch(d, e, params, count, &report))
        fail_msg("%s, line %u: block %u thread %u: %s [%s]", d->kernel, report.line,
                 report.block[0], report.thread[0], report.message, emu_fault_name(report.fault));
}

#define LAUNCH(d, e, ...)                                        \
    do {                                                         \
        const void *params_[] = { __VA_ARGS__ };                 \
        launch(d, e, params_, sizeof params_ / sizeof *params_); \
    } while (0)

/* Launch parameters of d's kernel: addresses of input and output values. */
#define AT(place)          (&(uint64_t){ place })
#define IN(values, count)  AT(input(d, values, (size_t)(count) * sizeof *(values)))
#define OUT(values, count) AT(output(d, values, (size_t)(count) * sizeof *(values)))
#define IN_ALL(values)     AT(input(d, values, sizeof(values)))
#define OUT_ALL(values)    AT(output(d, values, sizeof(values)))

/* Defines a test with a device d for a kernel. Without a name, the kernel is named like the test.
 */
#define KERNEL_TEST_OF(name, kernel)         \
    static void name##_on(device *d);        \
    TEST(name)                               \
    {                                        \
        device opened = open_device(kernel); \
        name##_on(&opened);                  \
        close_device(&opened);               \
    }                                        \
    static void name##_on(device *d)
#define KERNEL_TEST(name) KERNEL_TEST_OF(name, #name)

/* Checks a value with a tolerance relative to the expected value, or to 1 if that is larger. */
static void expect_near(const char *what, double got, double expected, double tolerance, int at)
{
    double scale = fabs(expected) > 1 ? fabs(expected) : 1;
    if (!(fabs(got - expected) <= tolerance * scale))
        fail_msg("%s[%d] is %.9g, expected %.9g", what, at, got, expected);
}

static void expect_equal(const char *what, long long got, long long expected, int at)
{
    if (got != expected)
        fail_msg("%s[%d] is %lld, expected %lld", what, at, got, expected);
}

/* Returns pseudo-random numbers, the same in every run. */
static uint32_t noise(uint32_t at)
{
    uint32_t x = at * 2654435761u + 12345u;
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

static void fill_floats(float *to, int count, float lowest, float highest)
{
    for (int i = 0; i < count; i++)
        to[i] = lowest + (highest - lowest) * (float)(noise((uint32_t)i) >> 8) * 0x1p-24f;
}

static void fill_integers(int *to, int count, int below)
{
    for (int i = 0; i < count; i++)
        to[i] = (int)(noise((uint32_t)i) % (uint32_t)below);
}

static float floats_a[MAX_ELEMENTS], floats_b[MAX_ELEMENTS], floats_out[MAX_ELEMENTS];
static int integers[MAX_ELEMENTS], integers_out[MAX_ELEMENTS];

KERNEL_TEST(vector_add)
{
    enum { N = 1000 };
    fill_floats(floats_a, N, -1, 1);
    fill_floats(floats_b, N, 0, 9);
    LAUNCH(d, ((extent){ .grid = { 3 }, .block = { 96 } }), OUT(floats_out, N), IN(floats_a, N),
           IN(floats_b, N), &(int){ N });
    for (int i = 0; i < N; i++)
        expect_near("sum", (double)floats_out[i], (double)(floats_a[i] + floats_b[i]), 0, i);
}

KERNEL_TEST(block_sum)
{
    enum { N = 5000, BLOCKS = 3 };
    double total = 0, expected = 0;
    fill_floats(floats_a, N, -1, 2);
    LAUNCH(d, ((extent){ .grid = { BLOCKS }, .block = { 256 } }), OUT(floats_out, BLOCKS),
           IN(floats_a, N), &(int){ N });
    for (int i = 0; i < BLOCKS; i++)
        total += (double)floats_out[i];
    for (int i = 0; i < N; i++)
        expected += (double)floats_a[i];
    expect_near("total", total, expected, 1e-6, 0);
}

/* Sums of integers are exact in every order. */
KERNEL_TEST(last_block)
{
    enum { N = 5000, BLOCKS = 7 };
    static float partial[BLOCKS * 4];
    long long expected = 0;
    fill_integers(integers, N, 100);
    for (int i = 0; i < N; i++) {
        floats_a[i] = (float)integers[i];
        expected += integers[i];
    }
    uint64_t total = output(d, floats_out, sizeof(float));
    uint64_t partials = output(d, partial, sizeof partial);
    uint64_t values = input(d, floats_a, N * sizeof(float));
    for (int launches = 0; launches < 2; launches++) {
        floats_out[0] = 0;
        LAUNCH(d, ((extent){ .grid = { BLOCKS }, .block = { 128 } }), &total, &partials, &values,
               &(int){ N });
        expect_equal("total", (long long)floats_out[0], expected, launches);
    }
}

KERNEL_TEST(gemv)
{
    enum { ROWS = 20, K = 100 };
    fill_floats(floats_a, ROWS * K, -1, 1);
    fill_floats(floats_b, K, -1, 1);
    LAUNCH(d, ((extent){ .grid = { ROWS }, .block = { 32 } }), OUT(floats_out, ROWS),
           IN(floats_a, ROWS * K), IN(floats_b, K), &(int){ K });
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int i = 0; i < K; i++)
            sum += (double)floats_a[row * K + i] * (double)floats_b[i];
        expect_near("y", (double)floats_out[row], sum, 1e-5, row);
    }
}

KERNEL_TEST(int8_dot)
{
    enum { N = 300 };
    static int8_t a[N][4], b[N][4];
    static int16_t wide[N][2];
    long long dot = 0, mixed = 0;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < 4; j++) {
            a[i][j] = (int8_t)noise((uint32_t)(8 * i + j));
            b[i][j] = (int8_t)noise((uint32_t)(8 * i + 4 + j));
            dot += a[i][j] * b[i][j];
        }
        for (int j = 0; j < 2; j++) {
            wide[i][j] = (int16_t)noise((uint32_t)(9999 + 2 * i + j));
            mixed += wide[i][j] * b[i][j];
        }
    }
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT(integers_out, 2), IN_ALL(a), IN_ALL(b),
           IN_ALL(wide), &(int){ N });
    expect_equal("dot", integers_out[0], dot, 0);
    expect_equal("mixed", integers_out[1], mixed, 0);
}

/* Returns the value of a 16-bit float. */
static double value_of(uint16_t bits, int mantissa_bits)
{
    int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    double value = exponent
                       ? ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)
                       : ldexp(mantissa, 1 - bias - mantissa_bits);
    return bits >> 15 ? -value : value;
}

/* Rounds to nearest with mantissa_bits after the leading bit. Normal numbers only. */
static double rounded(double value, int mantissa_bits)
{
    int exponent;
    frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(value, mantissa_bits + 1 - exponent)),
                 exponent - mantissa_bits - 1);
}

KERNEL_TEST(half_math)
{
    enum { HALF = 10 };
    static uint16_t a[32], b[32], packed[32][2];
    for (int i = 0; i < 32; i++) {
        a[i] = (uint16_t)(0x3c00 + 5 * i);
        b[i] = (uint16_t)(0x3bf0 + 7 * i);
    }
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT(floats_out, 32), OUT_ALL(packed), IN_ALL(a),
           IN_ALL(b));
    for (int i = 0; i < 32; i++) {
        double x[2] = { value_of(a[i], HALF), value_of(b[i], HALF) }, square[2];
        for (int j = 0; j < 2; j++) {
            square[j] = rounded(x[j] * x[j] - x[j], HALF);
            double halved = x[j] / 2;
            expect_near("packed", value_of(packed[i][j], HALF),
                        square[j] > halved ? square[j] : halved, 0, i);
        }
        double third = rounded((double)(1.0f / 3 * (float)i), HALF);
        expect_near("result", (double)floats_out[i],
                    square[0] + square[1] + rounded(x[0] - x[1], HALF) + (x[0] < x[1] ? 100 : 0) +
                        (i ? third : 0),
                    1e-6, i);
    }
}

KERNEL_TEST(bfloat16_math)
{
    enum { BFLOAT = 7 };
    static uint16_t to_nearest[32], pairs[32][2];
    fill_floats(floats_a, 33, 0.5f, 3);
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT_ALL(to_nearest), OUT_ALL(pairs),
           OUT(floats_out, 32), IN(floats_a, 33));
    for (int i = 0; i < 32; i++) {
        double x = rounded((double)floats_a[i], BFLOAT),
               next = rounded((double)floats_a[i + 1], BFLOAT);
        expect_near("rounded", value_of(to_nearest[i], BFLOAT), x, 0, i);
        expect_near("pairs.x", value_of(pairs[i][0], BFLOAT), rounded(x * x + x, BFLOAT), 0, i);
        expect_near("pairs.y", value_of(pairs[i][1], BFLOAT), rounded(next * next + next, BFLOAT),
                    0, i);
        expect_near("back", (double)floats_out[i], rounded(x * x, BFLOAT) + x, 1e-7, i);
    }
}

KERNEL_TEST(transpose)
{
    enum { N = 64 };
    fill_floats(floats_a, N * N, 0, 1);
    LAUNCH(d, ((extent){ .grid = { 2, 2 }, .block = { 32, 8 } }), OUT(floats_out, N * N),
           IN(floats_a, N * N), &(int){ N });
    for (int i = 0; i < N * N; i++)
        expect_near("to", (double)floats_out[i], (double)floats_a[i % N * N + i / N], 0, i);
}

KERNEL_TEST(votes)
{
    static struct {
        unsigned ballot, any, all, same, everybody_same, prefix, leader, even_sum;
    } v[32];
    unsigned odd = 0, prefix = 0, even_sum = 0, any = 0;
    fill_integers(integers, 32, 100);
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT_ALL(v), IN(integers, 32));
    for (int i = 0; i < 32; i++) {
        odd |= (unsigned)(integers[i] & 1) << i;
        any |= integers[i] > 90;
        even_sum += i % 2 ? 0 : (unsigned)integers[i];
    }
    for (int i = 0; i < 32; i++) {
        unsigned same = 0;
        for (int j = 0; j < 32; j++)
            same |= (unsigned)((integers[j] & 3) == (integers[i] & 3)) << j;
        prefix += (unsigned)integers[i];
        expect_equal("ballot", v[i].ballot, odd, i);
        expect_equal("any", v[i].any, any, i);
        expect_equal("all", v[i].all, 1, i);
        expect_equal("same", v[i].same, same, i);
        expect_equal("everybody_same", v[i].everybody_same, 0, i);
        expect_equal("prefix", v[i].prefix, prefix, i);
        expect_equal("leader", v[i].leader, integers[i & 24], i);
        expect_equal("even_sum", v[i].even_sum, i % 2 ? 0 : even_sum, i);
    }
}

KERNEL_TEST(histogram)
{
    enum { N = 3000 };
    static uint8_t bytes[N];
    int n = N, expected[16] = { 0 };
    for (int i = 0; i < N; i++) {
        bytes[i] = (uint8_t)noise((uint32_t)i);
        expected[bytes[i] & 15]++;
    }
    memset(integers_out, 0, sizeof expected);
    uint64_t counts = output(d, integers_out, sizeof expected);
    LAUNCH(d, ((extent){ .grid = { 4 }, .block = { 128 } }), &counts, IN(bytes, N), &n);
    for (int i = 0; i < 16; i++)
        expect_equal("counts", integers_out[i], expected[i], i);
}

KERNEL_TEST(atomics)
{
    enum { N = 128 };
    struct {
        float sum;
        int highest, lowest;
        unsigned first, ring, bits, drawn;
        unsigned long long wide;
        double fine;
        uint16_t halves[2];
    } c = { .lowest = 1000 };
    long long sum = 0;
    int highest = 0, lowest = 1000;
    unsigned bits = 0;
    fill_integers(integers, N, 1000);
    for (int i = 0; i < N; i++) {
        sum += integers[i];
        highest = integers[i] > highest ? integers[i] : highest;
        lowest = integers[i] < lowest ? integers[i] : lowest;
        bits |= 1u << (integers[i] & 31);
    }
    LAUNCH(d, ((extent){ .grid = { 2 }, .block = { N / 2 } }), OUT(&c, 1), IN(integers, N));
    expect_near("sum", (double)c.sum, (double)sum, 0, 0);
    expect_equal("highest", c.highest, highest, 0);
    expect_equal("lowest", c.lowest, lowest, 0);
    expect_equal("first", c.first, integers[0] + 1, 0);
    expect_equal("ring", c.ring, N % 10, 0);
    expect_equal("bits", c.bits, bits, 0);
    expect_equal("wide", (long long)c.wide, sum << 32, 0);
    expect_near("fine", c.fine, (double)sum / 2, 0, 0);
    expect_near("halves.x", value_of(c.halves[0], 10), N, 0, 0);
    expect_near("halves.y", value_of(c.halves[1], 10), 2 * N, 0, 0);
    expect_equal("drawn", c.drawn, 7, 0);
}

KERNEL_TEST(softmax)
{
    enum { N = 300 };
    double sum = 0;
    fill_floats(floats_a, N, -4, 4);
    LAUNCH(d, ((extent){ .block = { 32 }, .dynamic_shared = N * sizeof(float) }),
           OUT(floats_out, N), IN(floats_a, N), &(int){ N });
    for (int i = 0; i < N; i++)
        sum += exp((double)floats_a[i]);
    for (int i = 0; i < N; i++)
        expect_near("to", (double)floats_out[i], exp((double)floats_a[i]) / sum, 1e-6, i);
}

static int branch_of(int i, int n)
{
    int v = integers[i], seven = v & 31, old = i + 10;
    switch (v % 9) {
    case 0:
        return v * 3;
    case 1:
        return v + integers[i + 1];
    case 2:
        return old ^ n;
    case 3:
        return v / (n & 7);
    case 4:
        return -v;
    case 5:
        return v << 2;
    case 6: {
        int count = 0;
        for (; v; v &= v - 1)
            count++;
        return count;
    }
    case 7:
        return old + integers[seven];
    default:
        return 1;
    }
}

KERNEL_TEST(branches)
{
    enum { N = 256 };
    static int steps[N];
    int n = 77;
    fill_integers(integers, N + 1, 1000);
    for (int i = 0; i < N; i++) {
        integers_out[i] = i + 10;
        steps[i] = -1;
    }
    LAUNCH(d, ((extent){ .grid = { 2 }, .block = { N / 2 } }), OUT(integers_out, N), OUT_ALL(steps),
           IN(integers, (N + 1)), &n);
    for (int i = 0; i < N; i++) {
        unsigned at = (unsigned)integers[i] + 1;
        int count = 0;
        for (; at != 1 && count <= 100; count++)
            at = at & 1 ? 3 * at + 1 : at / 2;
        expect_equal("results", integers_out[i], branch_of(i, n), i);
        expect_equal("steps", steps[i], count > 100 ? -1 : count, i);
    }
}

KERNEL_TEST(local_array)
{
    struct {
        int a;
        float b[5];
        long long c;
    } s = { 1, { 1, 2, 3, 4, 5 }, 2 };
    static const float table[] = { 1, 2, 3, 4 }, other_table[] = { 5, 6, 7, 8 };
    int n = 3, launches;
    uint64_t address;
    size_t size;
    uint64_t to = output(d, floats_out, 32 * sizeof(float));
    for (int round = 0; round < 2; round++) {
        const float *t = round ? other_table : table;
        LAUNCH(d, ((extent){ .block = { 32 } }), &to, &s, &n);
        for (int i = 0; i < 32; i++) {
            int at = 0;
            while (((at * 3 + n) & 7) != ((i + n) & 7))
                at++;
            expect_near("to", (double)floats_out[i],
                        (double)((float)at * s.b[at % 5] + t[i & 3] + 3), 1e-6, i);
        }
        assert_true(emu_variable(d->memory, d->module, "table", &address, &size));
        assert_int_equal(size, sizeof table);
        assert_true(emu_write(d->memory, address, other_table, sizeof other_table));
    }
    assert_true(emu_variable(d->memory, d->module, "launches", &address, &size));
    assert_true(emu_read(d->memory, address, &launches, sizeof launches));
    expect_equal("launches", launches, 9, 0);
}

static unsigned count_ones(uint64_t v)
{
    unsigned count = 0;
    for (; v; v &= v - 1)
        count++;
    return count;
}

/* Returns the upper half of a 128-bit product of numbers below 2^63. */
static int64_t high_product(uint64_t a, uint64_t b)
{
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), middle = (a >> 32) * (b & UINT32_MAX);
    uint64_t other = (a & UINT32_MAX) * (b >> 32), high = (a >> 32) * (b >> 32);
    uint64_t carry = ((low >> 32) + (middle & UINT32_MAX) + (other & UINT32_MAX)) >> 32;
    return (int64_t)(high + (middle >> 32) + (other >> 32) + carry);
}

static uint64_t wide_result(int64_t v, int i, int n)
{
    uint64_t u = (uint64_t)v, reversed = 0, both = u << 32 >> 32 | (uint64_t)(unsigned)n << 32;
    unsigned highest = 0, lowest = 0, bytes = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        reversed |= (u >> bit & 1) << (63 - bit);
        highest = u >> bit & 1 ? bit + 1 : highest;
        lowest = !lowest && u >> bit & 1 ? bit + 1 : lowest;
    }
    uint64_t r = (uint64_t)(v / (i + 3)) + (uint64_t)(v % (i + 5)) * (uint64_t)high_product(u, u);
    r += 64 - highest + count_ones(u) + reversed + (uint64_t)(v >> (i & 63));
    r ^= u / (unsigned)n + (unsigned)((unsigned)n << 5 | (unsigned)i >> 27);
    static const unsigned selector[] = { 2, 7, 1, 6 };
    for (int k = 0; k < 4; k++)
        bytes |= (unsigned)(both >> 8 * selector[k] & 0xff) << 8 * k;
    r += (unsigned)(both >> (i < 32 ? i : 32)) + (uint64_t)bytes + lowest;
    return r + (u < r ? u : r);
}

KERNEL_TEST(wide_integers)
{
    enum { N = 64 };
    static int64_t from[N], to[N];
    int n = 12345;
    for (uint32_t i = 0; i < N; i++)
        from[i] = (int64_t)((uint64_t)noise(i) << 32 | noise(i + N)) >> (1 + i % 40) & INT64_MAX;
    LAUNCH(d, ((extent){ .block = { N } }), OUT_ALL(to), IN_ALL(from), &n);
    for (int i = 0; i < N; i++)
        expect_equal("to", to[i], (int64_t)wide_result(from[i], i, n), i);
}

/* Adds a * b to a 128-bit sum, lower half first. */
static void add_product(uint64_t sum[2], uint64_t a, uint64_t b)
{
    uint64_t low = a * b;
    sum[0] += low;
    sum[1] += (uint64_t)high_product(a, b) + (sum[0] < low);
}

KERNEL_TEST(divide_wide)
{
    enum { N = 64 };
    static uint64_t from[3 * N], to[3 * N], expected[3 * N];
    for (uint32_t i = 0; i < N; i++) {
        uint64_t divisor = ((uint64_t)noise(i) << 32 | noise(i + N)) >> i % 60 | 1;
        uint64_t quotient[2] = { ~((uint64_t)noise(i + 2 * N) << i % 32), 0 };
        uint64_t rest = i % 2 ? divisor - 1 : divisor / 3, whole[2] = { rest, 0 };
        add_product(whole, divisor, quotient[0]);
        if (i % 3)
            quotient[1] = (UINT64_MAX - whole[1]) / divisor;
        whole[1] += divisor * quotient[1];
        memcpy(&from[3 * i], (uint64_t[]){ whole[0], whole[1], divisor }, 3 * sizeof *from);
        memcpy(&expected[3 * i], (uint64_t[]){ quotient[0], quotient[1], rest }, 3 * sizeof *from);
    }
    LAUNCH(d, ((extent){ .block = { N } }), OUT_ALL(to), IN_ALL(from));
    for (int i = 0; i < 3 * N; i++)
        expect_equal("to", (int64_t)to[i], (int64_t)expected[i], i);
}

KERNEL_TEST(double_math)
{
    enum { N = 64 };
    static double from[N], to[N];
    for (int i = 0; i < N; i++)
        from[i] = i * 0.1 + 0.01;
    LAUNCH(d, ((extent){ .block = { N } }), OUT_ALL(to), IN_ALL(from));
    for (int i = 0; i < N; i++) {
        double v = from[i];
        expect_near("to", to[i],
                    sqrt(v) * log(v) + exp(-v) / (1 + v) + nearbyint(v * 3) + fma(v, v, -v) +
                        cbrt(v),
                    1e-14, i);
    }
}

KERNEL_TEST(single_math)
{
    enum { N = 128 };
    static float fast[N];
    fill_floats(floats_a, N, 0, 4);
    LAUNCH(d, ((extent){ .block = { N } }), OUT(floats_out, N), OUT_ALL(fast), IN(floats_a, N));
    for (int i = 0; i < N; i++) {
        double v = (double)floats_a[i];
        expect_near("exact", (double)floats_out[i],
                    exp(v) + log(v + 1) + sin((double)(floats_a[i] * 40000)) + pow(v + 0.5, 1.7) +
                        tanh(v) + erf(v) + 1 / sqrt(v + 1) + (double)fmodf(floats_a[i], 0.7f) +
                        (double)roundf(floats_a[i] * 3),
                    1e-6, i);
        expect_near("fast", (double)fast[i],
                    sin(v) + cos(v) + log(v + 1) + pow(v + 0.5, 1.7) + 1 / (v + 1) + sqrt(v) +
                        fmin(fmax(v - 1, 0), 1) + 1 / sqrt(v + 1),
                    1e-6, i);
    }
}

KERNEL_TEST(device_calls)
{
    enum { N = 32 };
    double sum = 0, a[N], b[N];
    fill_floats(floats_a, N, -1, 1);
    LAUNCH(d, ((extent){ .block = { N } }), OUT(floats_out, N), OUT(integers_out, N),
           IN(floats_a, N));
    for (int i = 0; i < N; i++) {
        double v = (double)floats_a[i];
        a[i] = v < 0 ? v : i * v;
        b[i] = v < 0 ? i : v * v;
        if (i % 3 == 0) {
            double first = a[i];
            a[i] = 2 * b[i];
            b[i] = 2 * first;
        }
        sum += a[i];
    }
    for (int i = 0; i < N; i++) {
        int digits = 0;
        for (int v = i * i * i * 31; v; v /= 10)
            digits += v % 10;
        expect_equal("digit_sums", integers_out[i], digits, i);
        expect_near("to", (double)floats_out[i], sum + b[i], 1e-5, i);
    }
}

static int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void pile(int *to, int n)
{
    int own[4], sum = 0;
    for (int i = 0; i < 4; i++)
        own[i] = n * 10 + i;
    if (n > 0)
        pile(own, n - 1);
    for (int i = 0; i < 4; i++)
        sum += own[i];
    to[n & 3] += sum;
}

typedef struct triple {
    int a, b, c;
} triple;

static triple descend(triple t)
{
    if (t.a <= 0)
        return t;
    triple below = descend((triple){ t.a - 1, t.b + t.a, t.c });
    below.c += t.a * t.b;
    return below;
}

KERNEL_TEST(recursion)
{
    enum { N = 64 };
    LAUNCH(d, ((extent){ .block = { N } }), OUT(integers_out, 4 * N));
    for (int i = 0; i < N; i++) {
        int top[4] = { 1, 2, 3, 4 };
        pile(top, i % 5);
        triple t = descend((triple){ i % 7, 1, 0 });
        expect_equal("fibonacci, is_even", integers_out[4 * i],
                     fibonacci(i % 12) * 2 + (i % 2 == 0), i);
        expect_equal("pile", integers_out[4 * i + 1],
                     top[0] + 10 * top[1] + 100 * top[2] + 1000 * top[3], i);
        expect_equal("descend", integers_out[4 * i + 2], t.a + 100 * t.b, i);
        expect_equal("descend's c", integers_out[4 * i + 3], t.c, i);
    }
}

KERNEL_TEST(any_length)
{
    enum { N = 64 };
    int length = 40;
    LAUNCH(d, ((extent){ .block = { N } }), OUT(integers_out, N), &length);
    for (int i = 0; i < N; i++) {
        int n = length + i % 3, sum = 0;
        for (int j = 0; j < n; j++)
            sum += (j * 7 % n) * (j * 7 % n) * j;
        expect_equal("to", integers_out[i], sum, i);
    }
}

static int part_of(unsigned word, int bits, int which, bool is_signed)
{
    unsigned part = word >> bits * which & ((1u << bits) - 1);
    return (int)part - (is_signed && part >> (bits - 1) ? 1 << bits : 0);
}

static int greatest(int a, int b)
{
    return a > b ? a : b;
}

KERNEL_TEST(parts_of_words)
{
    enum { N = 32, COUNT = 11 };
    static unsigned words[N + 1], out[N][COUNT];
    for (unsigned i = 0; i <= N; i++)
        words[i] = noise(i) ^ noise(i + 1000) << 16;
    LAUNCH(d, ((extent){ .block = { N } }), OUT_ALL(out), IN_ALL(words), &(int){ COUNT });
    for (int i = 0; i < N; i++) {
        unsigned a = words[i], b = words[i + 1], expected[COUNT] = { 0 };
        for (int p = 0; p < 4; p++) {
            int x = part_of(a, 8, p, false), y = part_of(b, 8, p, false);
            unsigned apart = (unsigned)abs(x - y), sum = x + y > 255 ? 255 : (unsigned)(x + y);
            expected[0] |= apart << 8 * p;
            expected[1] += apart;
            expected[6] |= sum << 8 * p;
            expected[7] |= (part_of(a, 8, p, true) > part_of(b, 8, p, true) ? 0xffu : 0) << 8 * p;
            expected[8] |= (unsigned)((x + y + 1) / 2) << 8 * p;
        }
        for (int p = 0; p < 2; p++) {
            int x = part_of(a, 16, p, false), y = part_of(b, 16, p, false);
            int high = greatest(part_of(a, 16, p, true), part_of(b, 16, p, true));
            expected[2] += (unsigned)abs(x - y);
            expected[3] |= ((unsigned)high & 0xffff) << 16 * p;
            expected[4] |= (unsigned)(x < y ? x : y) << 16 * p;
            expected[5] |= (unsigned)greatest(high, 0) << 16 * p;
        }
        expected[9] = 0xffffffff;
        for (int at = i, left = 3; at < 32 && left; at++)
            if (a >> at & 1 && --left == 0)
                expected[9] = (unsigned)at;
        expected[10] = (unsigned)greatest((int)a < (int)b ? (int)a : (int)b, 0);
        for (int k = 0; k < COUNT; k++)
            expect_equal(arena_format(d->arena, "thread %d: own", i), out[i][k], expected[k], k);
    }
}

/* Rounds to nearest with `bits` fraction bits, saturating at the largest value. */
static double nearest(double value, int bits, int lowest_exponent, double largest)
{
    int exponent;
    frexp(value, &exponent);
    exponent = exponent - 1 < lowest_exponent ? lowest_exponent : exponent - 1;
    double rounded = ldexp(nearbyint(ldexp(value, bits - exponent)), exponent - bits);
    return rounded > largest ? largest : rounded < -largest ? -largest : rounded;
}

KERNEL_TEST(eighths)
{
    enum { N = 32 };
    for (int i = 0; i < 2 * N; i++)
        floats_a[i] = ldexpf((float)(noise((uint32_t)i) % 4096) - 2048, i % 24 - 18);
    LAUNCH(d, ((extent){ .block = { N } }), OUT(floats_out, 4 * N), IN(floats_a, 2 * N));
    for (int i = 0; i < 2 * N; i++) {
        double value = (double)floats_a[i];
        expect_near("e4m3", (double)floats_out[i / 2 * 4 + i % 2], nearest(value, 3, -6, 448), 0,
                    i);
        expect_near("e5m2", (double)floats_out[i / 2 * 4 + 2 + i % 2],
                    nearest(value, 2, -14, 57344), 0, i);
    }
}

KERNEL_TEST(common_bits)
{
    enum { WORDS = 32 };
    static unsigned a[WORDS], b[WORDS];
    for (unsigned i = 0; i < WORDS; i++) {
        a[i] = noise(i) ^ noise(i + 1000) << 16;
        b[i] = noise(i + 2000) ^ noise(i + 3000) << 16;
    }
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT(integers_out, 64), IN_ALL(a), IN_ALL(b));
    for (int i = 0; i < 64; i++) {
        int count = 0;
        for (int bit = 0; bit < 128; bit++)
            count += (int)(a[i / 8 * 4 + bit / 32] >> bit % 32 &
                           b[i % 8 * 4 + bit / 32] >> bit % 32 & 1);
        expect_equal("c", integers_out[i], count, i);
    }
}

KERNEL_TEST(async_copy)
{
    enum { TILES = 7, TILE = 256, BLOCKS = 2 };
    fill_floats(floats_a, BLOCKS * TILES * TILE, -1, 1);
    LAUNCH(d, ((extent){ .grid = { BLOCKS }, .block = { 64 } }), OUT(floats_out, BLOCKS * 64),
           IN(floats_a, BLOCKS * TILES * TILE), &(int){ TILES });
    for (int i = 0; i < BLOCKS * 64; i++) {
        double sum = 0;
        for (int tile = 0; tile < TILES; tile++)
            for (int j = 0; j < 4; j++)
                sum += (double)floats_a[(i / 64 * TILES + tile) * TILE + (63 - i % 64) * 4 + j];
        expect_near("sums", (double)floats_out[i], sum, 1e-6, i);
    }
}

/* Multiples of 1/8 up to 4 are exact in f16 and bf16, and so are sums of 96 products. */
KERNEL_TEST(matrix_multiply)
{
    enum { ROWS = 64, COLUMNS = 24, DEPTH = 96 };
    int n = COLUMNS, k = DEPTH;
    for (int i = 0; i < ROWS * DEPTH; i++)
        floats_a[i] = (float)(noise((uint32_t)i) % 65) / 8 - 4;
    for (int i = 0; i < COLUMNS * DEPTH; i++)
        floats_b[i] = (float)(noise((uint32_t)i + MAX_ELEMENTS) % 65) / 8 - 4;
    LAUNCH(d, ((extent){ .grid = { COLUMNS / 8, ROWS / 32 }, .block = { 32, 2 } }),
           OUT(floats_out, ROWS * COLUMNS), IN(floats_a, ROWS * DEPTH),
           IN(floats_b, COLUMNS * DEPTH), &n, &k);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        double sum = 0;
        for (int j = 0; j < DEPTH; j++)
            sum += (double)floats_a[i / COLUMNS * DEPTH + j] *
                   (double)floats_b[i % COLUMNS * DEPTH + j];
        expect_near("product", (double)floats_out[i], sum, 0, i);
    }
}

enum { DEPTH = 64 };
static int left[32 * DEPTH], right[32 * DEPTH], products[32 * 32];

/* Fills A [m, DEPTH] and B by columns [n, DEPTH] with small integers. */
static void fill_matrices(int below)
{
    for (int i = 0; i < 32 * DEPTH; i++) {
        left[i] = (int)(noise((uint32_t)i) % (uint32_t)below) - below / 2;
        right[i] = (int)(noise((uint32_t)i + 9999) % (uint32_t)below) - below / 2;
    }
}

/* Returns the expected result for a C of ones: twice the sum with the products. */
static int twice_product(int m, int n)
{
    int sum = 1;
    for (int k = 0; k < DEPTH; k++)
        sum += left[m * DEPTH + k] * right[n * DEPTH + k];
    return 2 * sum;
}

static uint16_t bfloat(int value)
{
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)(bits >> 16);
}

TEST(wmma)
{
    static const struct {
        const char *kernel;
        int m, n, below;
        char type;
    } cases[] = { { "wmma_halves", 16, 16, 16, 'h' },
                  { "wmma_bfloats", 32, 8, 16, 'b' },
                  { "wmma_bytes", 8, 32, 256, 's' } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static uint16_t a16[32 * DEPTH], b16[32 * DEPTH];
        static int8_t a8[32 * DEPTH], b8[32 * DEPTH];
        device d = open_device(cases[i].kernel);
        int depth = DEPTH, m = cases[i].m, n = cases[i].n;
        bool bytes = cases[i].type == 's';
        fill_matrices(cases[i].below);
        for (int j = 0; j < 32 * DEPTH; j++) {
            a16[j] = cases[i].type == 'h' ? half_from_float((float)left[j]) : bfloat(left[j]);
            b16[j] = cases[i].type == 'h' ? half_from_float((float)right[j]) : bfloat(right[j]);
            a8[j] = (int8_t)left[j];
            b8[j] = (int8_t)right[j];
        }
        for (int j = 0; j < m * n; j++) {
            floats_out[j] = 1;
            products[j] = 1;
        }
        uint64_t c = bytes ? output(&d, products, sizeof products)
                           : output(&d, floats_out, sizeof floats_out);
        uint64_t a = bytes ? input(&d, a8, sizeof a8) : input(&d, a16, sizeof a16);
        uint64_t b = bytes ? input(&d, b8, sizeof b8) : input(&d, b16, sizeof b16);
        LAUNCH(&d, ((extent){ .block = { 32 } }), &c, &a, &b, &depth);
        for (int j = 0; j < m * n; j++)
            expect_equal(cases[i].kernel, bytes ? products[j] : (long long)floats_out[j],
                         twice_product(j / n, j % n), j);
        close_device(&d);
    }
}

KERNEL_TEST_OF(wmma_from_padded_shared_memory, "wmma_from_shared")
{
    static uint16_t a16[256], b16[256];
    fill_matrices(16);
    for (int i = 0; i < 256; i++) {
        a16[i] = half_from_float((float)left[i]);
        b16[i] = half_from_float((float)right[i]);
    }
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT(floats_out, 256), IN_ALL(a16), IN_ALL(b16));
    for (int i = 0; i < 256; i++) {
        int sum = 1;
        for (int k = 0; k < 16; k++)
            sum += left[i % 16 * 16 + k] * right[k * 16 + i / 16];
        expect_equal("c", (long long)floats_out[i], sum, i);
    }
}

KERNEL_TEST_OF(matrices_are_transposed, "turn_matrices")
{
    static uint16_t words[64], turned[64], matrix[256], square[256];
    for (int i = 0; i < 256; i++) {
        matrix[i] = (uint16_t)i;
        words[i % 64] = (uint16_t)(3 * (i % 64));
    }
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT_ALL(turned), IN_ALL(words), OUT_ALL(square),
           IN_ALL(matrix));
    for (int i = 0; i < 64; i++)
        expect_equal("turned", turned[i], words[i % 8 * 8 + i / 8], i);
    for (int i = 0; i < 256; i++)
        expect_equal("square", square[i], matrix[i % 16 * 16 + i / 16], i);
}

KERNEL_TEST_OF(mma_of_bytes, "mma_bytes")
{
    static int8_t a[16 * 32], b[8 * 32];
    for (int i = 0; i < 16 * 32; i++) {
        a[i] = (int8_t)noise((uint32_t)i);
        b[i % 256] = (int8_t)noise((uint32_t)i + 999);
    }
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT(products, 128), IN_ALL(a), IN_ALL(b));
    for (int i = 0; i < 128; i++) {
        int sum = 0;
        for (int k = 0; k < 32; k++)
            sum += a[i / 8 * 32 + k] * b[i % 8 * 32 + k];
        expect_equal("c", products[i], sum, i);
    }
}

KERNEL_TEST_OF(mma_of_unsigned_bytes_and_of_16_bytes, "mma_kinds_of_bytes")
{
    static int8_t a[16 * 32], b[8 * 32];
    for (int i = 0; i < 16 * 32; i++) {
        a[i] = (int8_t)noise((uint32_t)i + 77);
        b[i % 256] = (int8_t)noise((uint32_t)i + 555);
    }
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT(products, 3 * 128), IN_ALL(a), IN_ALL(b));
    for (int i = 0; i < 3 * 128; i++) {
        int kind = i / 128, row = i % 128 / 8, column = i % 8;
        int sum = kind ? 0 : 1 + column % 2 + row / 8 * 2; /* C */
        for (int k = kind == 2 ? 16 : 0; k < (kind == 1 ? 16 : 32); k++)
            sum += (kind == 1 ? a[row * 32 + k] : (uint8_t)a[row * 32 + k]) * b[column * 32 + k];
        expect_equal("c", products[i], sum, i);
    }
}

/* Eighths up to 4 are exact in tf32. */
KERNEL_TEST_OF(mma_of_tf32, "mma_singles")
{
    static float a[16 * 8], b[8 * 8];
    for (int i = 0; i < 16 * 8; i++) {
        a[i] = (float)(noise((uint32_t)i) % 65) / 8 - 4;
        b[i % 64] = (float)(noise((uint32_t)i + 99) % 65) / 8 - 4;
    }
    LAUNCH(d, ((extent){ .block = { 32 } }), OUT(floats_out, 128), IN_ALL(a), IN_ALL(b));
    for (int i = 0; i < 128; i++) {
        double sum = 0;
        for (int k = 0; k < 8; k++)
            sum += (double)a[i / 8 * 8 + k] * (double)b[i % 8 * 8 + k];
        expect_near("c", (double)floats_out[i], sum, 0, i);
    }
}

KERNEL_TEST_OF(copies_complete_at_a_barrier, "reverse_at_barrier")
{
    fill_integers(integers, 768, 1000);
    LAUNCH(d, ((extent){ .block = { 256 } }), OUT(integers_out, 768), IN(integers, 768));
    for (int i = 0; i < 768; i++)
        expect_equal("to", integers_out[i], integers[i / 256 * 256 + 255 - i % 256], i);
}

/* Checks the sums over tiles of the mirrored element of each thread. */
static void expect_sums(const int *sums, int tiles)
{
    for (int i = 0; i < 256; i++) {
        int sum = 0;
        for (int tile = 0; tile < tiles; tile++)
            sum += integers[tile * 256 + 255 - i];
        expect_equal("sum", sums[i], sum, i);
    }
}

KERNEL_TEST_OF(a_pipeline_has_two_stages, "add_up_stages")
{
    int tiles = 9;
    fill_integers(integers, tiles * 256, 1000);
    LAUNCH(d, ((extent){ .block = { 256 } }), OUT(integers_out, 256), IN(integers, tiles * 256),
           &tiles);
    expect_sums(integers_out, tiles);
}

/* Runs a kernel that adds up tiles as they arrive. */
static bool run_bulk(const char *kernel, emu_report *report, char message[256])
{
    int tiles = 10;
    device d = open_device(kernel);
    fill_integers(integers, tiles * 256, 1000);
    uint64_t to = output(&d, integers_out, 256 * sizeof(int));
    uint64_t from = input(&d, integers, (size_t)tiles * 256 * sizeof(int));
    const void *params[] = { &to, &from, &tiles };
    bool good = try_launch(&d, (extent){ .block = { 256 + 32 } }, params, 3, report);
    snprintf(message, 256, "%s", report->message);
    if (good)
        expect_sums(integers_out, tiles);
    close_device(&d);
    return good;
}

static bool run_increment(const char *kernel, emu_report *report, char message[256])
{
    device d = open_device(kernel);
    fill_integers(integers, 3 * 1024, 1000);
    uint64_t to = output(&d, integers_out, 3 * 1024 * sizeof(int));
    uint64_t from = input(&d, integers, 3 * 1024 * sizeof(int));
    const void *params[] = { &to, &from };
    bool good = try_launch(&d, (extent){ .grid = { 3 }, .block = { 128 } }, params, 2, report);
    snprintf(message, 256, "%s", report->message);
    for (int i = 0; good && i < 3 * 1024; i++)
        expect_equal("to", integers_out[i], integers[i] + 1, i);
    close_device(&d);
    return good;
}

TEST(bulk_copies_and_what_is_forgotten_around_them)
{
    static const struct {
        const char *kernel;
        bool (*run)(const char *kernel, emu_report *report, char message[256]);
        emu_fault fault;
        const char *message;
    } cases[] = {
        { "bulk_stages", run_bulk, EMU_OK, "" },
        { "bulk_increment", run_increment, EMU_OK, "" },
        { "bulk_overwrites", run_bulk, EMU_RACE, "which thread 287 of the block read" },
        { "bulk_reads_early", run_bulk, EMU_UNINITIALISED, "reads bytes that were never written" },
        { "bulk_never_empties", run_bulk, EMU_BARRIER, "nothing makes progress" },
        { "bulk_without_init_fence", run_bulk, EMU_RACE, "no fence.mbarrier_init" },
        { "bulk_without_fence", run_increment, EMU_RACE, "no fence.proxy.async in between" },
        { "bulk_without_wait", run_increment, EMU_RACE, "wait with cp.async.bulk.wait_group" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        emu_report report;
        char message[256];
        cases[i].run(cases[i].kernel, &report, message);
        if (report.fault != cases[i].fault || !strstr(message, cases[i].message))
            fail_msg("%s: %s, line %u, thread %u: %s", cases[i].kernel,
                     emu_fault_name(report.fault), report.line, report.thread[0], message);
    }
}
