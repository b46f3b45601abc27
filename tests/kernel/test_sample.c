/* Sampling of the next token: ties, NaN and infinity, filters, probabilities, and the places of the
 * results. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "check/verify.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "ref/reference.h"

enum { LOGITS, POSITIONS, SAMPLING }; /* inputs */

/* A row's sampling parameters, as the kernel reads them. */
typedef struct way {
    float temperature;
    uint32_t top_k;
    float top_p, min_p;
    uint32_t seed[2], unused[2];
} way;

static const way GREEDY = { .top_p = 1 }, PLAIN = { .temperature = 1, .top_p = 1, .seed = { 7 } };

/* Returns the tokens of rows at positions 0, 1, … */
static const uint32_t *tokens_of(arena *a, launched *s, const float *logits, const way *ways)
{
    uint32_t positions[MAX_VECTORS];
    for (uint32_t i = 0; i < MAX_VECTORS; i++)
        positions[i] = i;
    put_input(&s->trial, LOGITS, logits);
    put_input(&s->trial, POSITIONS, positions);
    put_input(&s->trial, SAMPLING, ways);
    return suite_output(a, s);
}

static uint32_t token_of(arena *a, launched *s, const float *logits, way w)
{
    return *tokens_of(a, s, logits, &w);
}

/* Rows for one warp, for several, unaligned ones, and rows divided among blocks. */
static const int sizes[] = { 2, 31, 33, 1000, 1001, 5000, 9001, 20000 };
enum { SIZES = sizeof sizes / sizeof *sizes, LARGEST = 20000 };

static launched *of_size(arena *a, int n)
{
    return suite_launched(a, "sample", arena_format(a, "n=%d", n));
}

ARENA_TEST(the_largest_logit_wins_wherever_it_is)
{
    float *logits = arena_zalloc(a, LARGEST * sizeof *logits);
    for (size_t i = 0; i < SIZES; i++) {
        launched *s = of_size(a, sizes[i]);
        for (int at = 0; at < sizes[i]; at += 1 + sizes[i] / 7) {
            logits[at] = 1e-30f;
            assert_int_equal(token_of(a, s, logits, GREEDY), at);
            logits[at] = INFINITY;
            assert_int_equal(token_of(a, s, logits, PLAIN), at);
            logits[at] = 0;
        }
    }
}

ARENA_TEST(the_first_of_equal_logits_wins)
{
    float *logits = arena_zalloc(a, LARGEST * sizeof *logits);
    for (size_t i = 0; i < SIZES; i++) {
        launched *s = of_size(a, sizes[i]);
        logits[0] = -0.0f;
        assert_int_equal(token_of(a, s, logits, GREEDY), 0);
        way one = PLAIN;
        one.top_k = 1;
        assert_int_equal(token_of(a, s, logits, one), 0);
        logits[0] = -1;
        assert_int_equal(token_of(a, s, logits, GREEDY), 1);
        assert_int_equal(token_of(a, s, logits, one), 1);
    }
}

/* top_k = 3 must keep the first three of equal logits. */
ARENA_TEST(top_k_of_equal_logits_takes_the_first)
{
    float *logits = arena_zalloc(a, LARGEST * sizeof *logits);
    for (size_t i = 0; i < SIZES; i++) {
        launched *s = of_size(a, sizes[i]);
        way few = PLAIN;
        few.top_k = 3;
        for (few.seed[0] = 0; few.seed[0] < 20; few.seed[0]++)
            assert_true(token_of(a, s, logits, few) < 3);
    }
}

ARENA_TEST(a_nan_gives_no_token)
{
    float *logits = arena_zalloc(a, LARGEST * sizeof *logits);
    for (size_t i = 0; i < SIZES; i++) {
        launched *s = of_size(a, sizes[i]);
        const float nans[] = { NAN, -NAN };
        for (int at = 0; at < sizes[i]; at += 1 + sizes[i] / 3)
            for (int sign = 0; sign < 2; sign++) {
                logits[at] = nans[sign];
                logits[sizes[i] - 1 - at] = at + at < sizes[i] - 1 ? INFINITY : nans[sign];
                assert_int_equal(token_of(a, s, logits, GREEDY), UINT32_MAX);
                assert_int_equal(token_of(a, s, logits, PLAIN), UINT32_MAX);
                logits[at] = logits[sizes[i] - 1 - at] = 0;
            }
    }
}

ARENA_TEST(minus_infinity_is_never_chosen)
{
    float *logits = arena_alloc(a, LARGEST * sizeof *logits);
    for (size_t i = 0; i < SIZES; i++) {
        launched *s = of_size(a, sizes[i]);
        for (int at = 0; at < sizes[i]; at++)
            logits[at] = -INFINITY;
        assert_int_equal(token_of(a, s, logits, GREEDY), UINT32_MAX);
        assert_int_equal(token_of(a, s, logits, PLAIN), UINT32_MAX);
        logits[sizes[i] - 1] = -1e30f;
        way hot = PLAIN;
        hot.temperature = INFINITY;
        assert_int_equal(token_of(a, s, logits, GREEDY), sizes[i] - 1);
        assert_int_equal(token_of(a, s, logits, PLAIN), sizes[i] - 1);
        assert_int_equal(token_of(a, s, logits, hot), sizes[i] - 1);
    }
}

/* Extreme temperatures: subnormal, tiny, negative, NaN. */
ARENA_TEST(small_temperatures_choose_the_largest_logit)
{
    static const float temperatures[] = { 1e-45f, 1e-38f, 1e-3f, -1, NAN };
    float logits[] = { 0.5f, 2, 1.9f, -3, 2 };
    launched *s = of_size(a, 5);
    for (size_t i = 0; i < sizeof temperatures / sizeof *temperatures; i++) {
        way w = { .temperature = temperatures[i], .top_p = 1, .seed = { 1 } };
        uint32_t token = token_of(a, s, logits, w);
        assert_true(token == 1 || (token == 4 && w.temperature > 0));
    }
}

static double chi_square(const unsigned *counts, const double *parts, int n, unsigned draws)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double expected = parts[i] * draws;
        if (expected > 0)
            sum += (counts[i] - expected) * (counts[i] - expected) / expected;
        else
            assert_int_equal(counts[i], 0);
    }
    return sum;
}

/* Draws 2000 tokens, 8 per launch, and checks their frequencies. With 5 degrees of freedom, chi
 * square exceeds 20.5 once in a thousand times. */
static void expect_parts(arena *a, way w, const double parts[6])
{
    enum { N = 6, DRAWS = 2000, ROWS = 8 };
    static const float logits[N] = { 0, 1, 2, 0.5f, -1, 1 };
    launched *s = suite_launched(a, "sample", "n=6 m=8");
    unsigned counts[N] = { 0 };
    way ways[ROWS];
    for (int i = 0; i < ROWS; i++) {
        memcpy((float *)s->trial.params[3].content.bytes + (ptrdiff_t)i * N, logits, sizeof logits);
        ways[i] = w;
    }
    put_input(&s->trial, SAMPLING, ways);
    for (uint32_t first = 0; first < DRAWS; first += ROWS) {
        uint32_t positions[ROWS];
        for (uint32_t i = 0; i < ROWS; i++)
            positions[i] = first + i;
        put_input(&s->trial, POSITIONS, positions);
        const void *tokens;
        suite_count(a, &s->kernel, &s->trial, &tokens);
        for (int i = 0; i < ROWS; i++) {
            assert_true(((const uint32_t *)tokens)[i] < N);
            counts[((const uint32_t *)tokens)[i]]++;
        }
    }
    double chi = chi_square(counts, parts, N, DRAWS);
    if (!(chi < 20.5))
        fail_msg("chi square is %g", chi);
}

/* Checks the frequencies of a set of tokens, given as bits, in proportion to exp(logit /
 * temperature). */
static void expect_tokens(arena *a, way w, unsigned tokens)
{
    static const double logits[6] = { 0, 1, 2, 0.5, -1, 1 };
    double parts[6], sum = 0;
    for (unsigned i = 0; i < 6; i++) {
        parts[i] = tokens >> i & 1 ? exp(logits[i] / (double)w.temperature) : 0;
        sum += parts[i];
    }
    for (int i = 0; i < 6; i++)
        parts[i] /= sum;
    expect_parts(a, w, parts);
}

/* The tokens in order of their logits, with weights exp(logit):
 * - token   2      1      5      3      0  4
 * - weight  7.389  2.718  2.718  1.649  1  0.368
 * - The sum is 15.842; the first three have 12.826 of it.
 */
ARENA_TEST(tokens_are_drawn_with_their_probabilities)
{
    static const struct {
        way way;
        unsigned tokens;
    } cases[] = {
        { { .temperature = 1, .top_p = 1 }, 0x3f },
        { { .temperature = 0.5f, .top_p = 1, .seed = { 3, 9 } }, 0x3f },
        { { .temperature = 4, .top_p = 1, .seed = { 1 } }, 0x3f },
        { { .temperature = 1, .top_k = 3, .top_p = 1 }, 1 << 2 | 1 << 1 | 1 << 5 },
        { { .temperature = 2, .top_k = 2, .top_p = 1 }, 1 << 2 | 1 << 1 },
        { { .temperature = 1, .top_p = 0.46f }, 1 << 2 },
        { { .temperature = 9, .top_p = 0.47f }, 1 << 2 | 1 << 1 },
        { { .temperature = 1, .top_k = 3, .top_p = 0.57f }, 1 << 2 },
        { { .temperature = 1, .top_k = 3, .top_p = 0.58f }, 1 << 2 | 1 << 1 },
        { { .temperature = 1, .top_p = 0 }, 1 << 2 },
        { { .temperature = 3, .top_p = 1, .min_p = 0.2f }, 1 << 2 | 1 << 1 | 1 << 5 | 1 << 3 },
        { { .temperature = 3, .top_p = 1, .min_p = 0.3f }, 1 << 2 | 1 << 1 | 1 << 5 },
        { { .temperature = 3, .top_p = 1, .min_p = 2 }, 1 << 2 },
        { { .temperature = 2, .top_k = 4, .top_p = 0.8f, .min_p = 0.01f },
          1 << 2 | 1 << 1 | 1 << 5 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_tokens(a, cases[i].way, cases[i].tokens);
}

/* The published result for a counter and a key of zeros. */
ARENA_TEST(the_generator_is_philox)
{
    assert_int_equal(ref_philox(0, 0, 0), 0x6627e8d5);
}

/* All filters, with candidates that fit in a block's shared memory and with more. */
EMULATOR_TEST(any_number_of_candidates_is_right)
{
    enum { N = 3000 };
    static const way ways[] = {
        { .temperature = 1, .top_k = 40, .top_p = 1 },
        { .temperature = 0.7f, .top_k = 600, .top_p = 0.9f },
        { .temperature = 1, .top_p = 0.95f, .min_p = 0.05f },
        { .temperature = 2, .top_k = 2900, .top_p = 1, .min_p = 0.02f },
        { .temperature = 1.5f, .top_p = 1 },
    };
    launched *s = of_size(a, N);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (uint32_t seed = 0; seed < 8; seed++) {
            way w = ways[i];
            w.seed[0] = seed;
            put_input(&s->trial, SAMPLING, &w);
            expect_right(suite_run(a, d, &s->kernel, &s->trial, NULL, NULL));
        }
}

/* A row is divided into three parts. The largest logits are spread over all parts, within one part,
 * and over the places of one warp. The last parameters have more candidates than fit in a part's
 * buffer. */
EMULATOR_TEST(the_first_tokens_are_found_in_any_part_of_a_row)
{
    enum { N = 20000, LARGE = 320, STRIDES = 3 };
    static const way ways[] = {
        { .temperature = 1, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f },
        { .temperature = 1.3f, .top_k = 300, .top_p = 1 },
        { .temperature = 2, .top_k = 513, .top_p = 0.9f },
    };
    static const int strides[STRIDES] = { 62, 1, 16 };
    float *logits = arena_alloc(a, N * sizeof *logits);
    launched *s = of_size(a, N);
    for (size_t i = 0; i < STRIDES; i++) {
        for (int at = 0; at < N; at++)
            logits[at] = (float)(at % 977) * 1e-3f;
        for (int at = 0; at < LARGE; at++)
            logits[100 + at * strides[i]] = 5 + (float)(at * 7 % LARGE) * 0.01f;
        put_input(&s->trial, LOGITS, logits);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
            for (uint32_t seed = 0; seed < (w < 2 ? 4 : 1); seed++) {
                way seeded = ways[w];
                seeded.seed[0] = seed;
                put_input(&s->trial, SAMPLING, &seeded);
                expect_right(suite_run(a, d, &s->kernel, &s->trial, NULL, NULL));
            }
    }
}

/* A row must get the same token alone and in a batch, whatever its index. */
ARENA_TEST(a_row_does_not_depend_on_the_others)
{
    enum { N = 1001, ROWS = 3 };
    launched *all = suite_launched(a, "sample", "n=1001 m=3"),
             *one = suite_launched(a, "sample", "n=1001");
    const float *logits = all->trial.params[3].content.bytes;
    const way ways[] = { PLAIN, { .temperature = 2, .top_k = 50, .top_p = 1 }, GREEDY };
    const uint32_t positions[] = { 5, 1 << 20, 9 };
    put_input(&all->trial, POSITIONS, positions);
    put_input(&all->trial, SAMPLING, ways);
    const void *together, *alone;
    suite_count(a, &all->kernel, &all->trial, &together);
    uint32_t tokens[ROWS];
    memcpy(tokens, together, sizeof tokens);
    for (int i = 0; i < ROWS; i++) {
        put_input(&one->trial, LOGITS, logits + (ptrdiff_t)i * N);
        put_input(&one->trial, POSITIONS, &positions[i]);
        put_input(&one->trial, SAMPLING, &ways[i]);
        suite_count(a, &one->kernel, &one->trial, &alone);
        assert_int_equal(*(const uint32_t *)alone, tokens[i]);
    }
}

EMULATOR_TEST(positions_advance_in_place)
{
    static const char *const texts[] = { "n=40 m=8", "n=1001 m=8", "n=2000", "n=9001 m=8" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        launched *s = suite_launched(a, "sample", texts[i]);
        expect_right(suite_run_in_place(a, d, &s->kernel, &s->trial, "next_position", "positions"));
    }
}

ARENA_TEST(faults_in_sampling_are_found)
{
    static const planted_fault faults[] = {
        FAULT("sample", "n=200 m=3", "bar.sync", "", 1, ""),
        FAULT("sample", "n=200 m=3", "bar.sync", "", 2, ""),
        FAULT("sample", "n=200 m=5", "atom.shared.add.u32", "", 0, "ld.shared.u32 $1, $2;"),
        FAULT("sample", "n=200 m=5", "xor.b32", "", 20, "mov.b32 $1, $2;"),
        FAULT("sample", "n=200 m=5", "cvt.rzi.u32.f32", "", 0, "mov.b32 $1, 0;"),
        FAULT("sample", "n=200 m=5", "setp.eq.u32", "0xFFFFFFFF;", 0, "setp.eq.u32 $1, 1, 2;"),
        FAULT("sample", "n=200 m=5", "st.global.u32", "", 3, ""),
        FAULT("sample", "n=200 m=5 softcap=2", "div.rn.f32", "", 0, "mov.f32 $1, 0f00000000;"),
        FAULT("sample", "n=3000 m=5", "shl.b64", "", 0, "mov.u64 $1, $2;"),
        FAULT("sample", "n=9001 m=5", "bar.sync", "", 1, ""),
        FAULT("sample", "n=9001 m=5", "bar.sync", "", 2, ""),
        FAULT("sample", "n=9001 m=5", "st.global.v2.u32", "", 0, ""),
        FAULT("sample", "n=9001 m=5", "st.global.v2.u32", "", 1, ""),
        FAULT("sample", "n=9001 m=5", "atom.acq_rel.gpu.global.inc.u32", "", 0, "mov.u32 $1, 1;"),
    };
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}
