/* Gated short convolutions. Updated rings are judged as outputs. */
#include <math.h>
#include <string.h>

#include "test.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "kernel/problem.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum { OUT_Y, OUT_CONVS, OUTPUTS }; /* parameters */
enum { X, CONV, POSITIONS };        /* inputs */
enum { N = 12, MOST = 64, LEAST_TAPS = 2, MOST_TAPS = 4, RING = DELTA_RING * N };

static void check(const subject *s, const char *text, fill_kind kind)
{
    for (int one_cache = 0; one_cache < 2; one_cache++) {
        arena *a = arena_new();
        instance in = suite_made(a, s->family, "%s", text);
        const int64_t longest = in.shape.max_seq_len,
                      lengths[] = { longest, longest + 1, longest + 3, 17, 3, 2, 1, 0 };
        trial_setup setup = suite_setup(&in, s->device);
        setup.one_cache = one_cache;
        setup.kind = kind;
        trial t = trial_prepare(a, &in, &setup);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            trial_shorten(&t, lengths[i]);
            expect_trial_right(a, s->device, &in, &t);
        }
        arena_free(a);
    }
}

static void is_right_for_sizes(arena *a, const subject *s)
{
    static const int channels[] = { 4, 508, 512, 516, 1028 }, rows[] = { 1, 2, 3, 8, 17, 70 };
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
            for (int taps = LEAST_TAPS; taps <= MOST_TAPS; taps++)
                if (j <= i + 1 || channels[i] == 4)
                    check(s,
                          arena_format(a, "n=%d conv_kernel=%d max_seq_len=%d m=%d", channels[i],
                                       taps, rows[j] + 30, rows[j]),
                          FILL_NORMAL);
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    (void)a;
    for (int kind = 0; kind < FILL_KINDS; kind++)
        check(s, "n=20 conv_kernel=3 max_seq_len=100 m=5 state=settled", (fill_kind)kind);
}

/* Consecutive rows of one sequence. */
typedef struct run {
    int sequence;
    uint32_t first, count;
} run;

enum { SEQUENCES = 4 };
typedef float rings[SEQUENCES][RING];

/* Updates rings by one launch of m rows and returns y. */
static const float *advance(arena *a, const subject *s, int taps, rings q, size_t m,
                            const int *sequences, const uint32_t *positions, const float *x)
{
    instance *in = arena_alloc(a, sizeof *in);
    *in = suite_made(a, s->family, "n=%d conv_kernel=%d max_seq_len=100 m=%d", N, taps, (int)m);
    kernel k = suite_kernel(a, in);
    trial t = suite_trial(a, in, s->device);
    const void *outputs[MAX_PARAMS];
    float conv[N * MOST_TAPS];
    for (int i = 0; i < N * taps; i++)
        conv[i] = (float)(i % 7) - 2.5f;
    put_input(&t, X, x);
    put_input(&t, CONV, conv);
    put_input(&t, POSITIONS, positions);
    const uint32_t *places = suite_put_places(a, &t, sequences);
    for (size_t i = 0; i < m; i++)
        memcpy((float *)t.params[OUT_CONVS].content.bytes + places[i] * RING, q[sequences[i]],
               sizeof q[0]);
    expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
    for (size_t i = 0; i < m; i++)
        memcpy(q[sequences[i]], (const float *)outputs[OUT_CONVS] + places[i] * RING, sizeof q[0]);
    return outputs[OUT_Y];
}

/* Updates sequences by one launch, and copies of them row by row. Both must have the same bits. */
static void check_step(arena *a, const subject *s, int taps, const run *runs, rings together,
                       rings alone, random_source *r)
{
    int sequences[MOST];
    uint32_t positions[MOST];
    float x[MOST * 3 * N];
    size_t m = 0;
    for (; runs->count; runs++)
        for (uint32_t i = 0; i < runs->count; i++, m++) {
            sequences[m] = runs->sequence;
            positions[m] = runs->first + i;
        }
    ref_fill(FORMAT_F32, x, m * 3 * N, FILL_NORMAL, r);
    const float *y = advance(a, s, taps, together, m, sequences, positions, x);
    for (size_t row = 0; row < m; row++) {
        const float *its_y =
            advance(a, s, taps, alone, 1, &sequences[row], &positions[row], x + row * 3 * N);
        expect_same_bits(s->family->name, arena_format(a, "y of row %zu in a batch", row),
                         y + row * N, its_y, N * sizeof(float));
        for (int i = 0; i < N; i++)
            assert_true(isfinite(its_y[i]));
    }
    expect_same_bits(s->family->name, "rings after one launch", together, alone, sizeof(rings));
}

/* The rings start with NaN. Runs that end and start again at an earlier position, as after rejected
 * drafts, may be as long as the ring without the positions still needed. */
static void many_rows_have_the_bits_of_single_rows(arena *a, const subject *s)
{
    static const run steps[][5] = {
        { { 0, 0, 3 }, { 1, 0, 1 }, { 2, 0, 2 } },
        { { 0, 3, 1 }, { 1, 1, 1 }, { 2, 2, 4 }, { 3, UINT32_MAX, 1 } },
        { { 0, 4, 13 }, { 2, 6, 14 } },
        { { 2, 20, 15 }, { 0, 8, 13 }, { 3, 0, 17 } },
        { { 0, 12, 35 }, { 2, 35, 16 } },
        { { 1, 2, 2 }, { 3, 99, 2 } }, /* the last position, and one out of range */
        { { 0, 47, 60 } },             /* positions 100 to 106 are out of range */
    };
    for (int taps = LEAST_TAPS; taps <= MOST_TAPS; taps++) {
        rings together, alone;
        random_source r = { 5 };
        memset(together, 0xff, sizeof together);
        memset(alone, 0xff, sizeof alone);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            check_step(a, s, taps, steps[i], together, alone, &r);
    }
}

/* A NaN or infinity must reach all dependent outputs, and no others: at element i of an input of a
 * single row. The row's position is 0 or 40. */
static void nan_and_infinity_reach_dependent_outputs(arena *a, const subject *s)
{
    static const float none[] = { NAN, INFINITY, -INFINITY };
    static const struct {
        size_t param, element;
        bool shows, stored; /* in y[5], in the ring */
    } places[] = {
        { OUTPUTS + X, 5, true, true },         { OUTPUTS + X, N + 5, true, false },
        { OUTPUTS + X, 2 * N + 5, true, true }, { OUTPUTS + CONV, 3 * 5 + 2, true, false },
        { OUT_CONVS, 7 * N + 5, true, false }, /* position 39 */
        { OUT_CONVS, 6 * N + 5, true, false },  { OUT_CONVS, 5 * N + 5, false, false },
        { OUT_CONVS, 9 * N + 5, false, false },
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t j = 0; j < sizeof none / sizeof *none; j++) {
            instance in = suite_made(a, s->family, "n=%d conv_kernel=3 max_seq_len=100", N);
            kernel k = suite_kernel(a, &in);
            trial t = suite_trial(a, &in, s->device);
            trial_param *p = &t.params[places[i].param];
            const void *outputs[MAX_PARAMS];
            *(uint32_t *)t.params[OUTPUTS + POSITIONS].content.bytes = 40;
            ((float *)p->content.bytes)[places[i].element] = none[j];
            expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
            const float *y = outputs[OUT_Y], *ring = outputs[OUT_CONVS];
            for (int c = 0; c < N; c++)
                assert_int_equal(!isfinite(y[c]), c == 5 && places[i].shows);
            assert_int_equal(!isfinite(ring[8 * N + 5]), places[i].stored);
        }
}

/* The last weight belongs to the newest position, and the thirds of x are b, c and u. */
static void weights_are_in_the_order_of_positions(arena *a, const subject *s)
{
    enum { TAPS = 3 };
    const float conv[N * TAPS] = { 100, 10, 1 };
    float x[3 * N] = { 0 };
    instance in = suite_made(a, s->family, "n=%d conv_kernel=%d max_seq_len=100", N, TAPS);
    kernel k = suite_kernel(a, &in);
    trial t = suite_trial(a, &in, s->device);
    const void *outputs[MAX_PARAMS];
    float *ring = memset(t.params[OUT_CONVS].content.bytes, 0, RING * sizeof(float));
    x[0] = 2;     /* b */
    x[N] = 7;     /* c */
    x[2 * N] = 3; /* u */
    ring[15 * N] = 5;
    ring[14 * N] = 4;
    put_input(&t, X, x);
    put_input(&t, CONV, conv);
    put_input(&t, POSITIONS, &(uint32_t){ 16 });
    expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
    const float *y = outputs[OUT_Y], *stored = outputs[OUT_CONVS];
    assert_true(fabsf(y[0] - 7 * 456) < 1e-3f);
    assert_true(fabsf(stored[0] - 6) < 1e-6f);
}

static void faults_are_found(arena *a, const subject *s)
{
    static const planted_fault faults[] = {
        FAULT("short_conv", "n=12 conv_kernel=3 max_seq_len=100", "and.b32", ", 15;", 1,
              "and.b32 $1, $2, 7;"),
        FAULT("short_conv", "n=12 conv_kernel=3 max_seq_len=100", "setp.ge.u32", ", 2;", 1,
              "setp.gt.u32 $1, $2, 2;"),
        FAULT("short_conv", "n=12 conv_kernel=3 max_seq_len=100 m=20", "max.u32", ", 18;", 1,
              "add.u32 $1, $2, 1;"),
        FAULT("short_conv", "n=12 conv_kernel=4 max_seq_len=100 m=20", "and.pred", "", 4,
              "mov.pred $1, $2;"),
    };
    (void)s;
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}

static bool is_short_conv(const family *f)
{
    return f->op == OP_SHORT_CONV;
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(is_right_for_sizes),
        CHECK(is_right_for_inputs_of_every_kind),
        CHECK(many_rows_have_the_bits_of_single_rows),
        CHECK(nan_and_infinity_reach_dependent_outputs),
        CHECK(weights_are_in_the_order_of_positions),
        CHECK(faults_are_found),
    };
    suite_list(__FILE__, suite_weights, EACH, is_short_conv, checks,
               sizeof checks / sizeof *checks);
}
