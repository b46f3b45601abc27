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
    uint32_t seed[2], biases, masked;
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
    way by_sequence[ROWS];
    for (int i = 0; i < ROWS; i++)
        by_sequence[all->trial.sequences[i]] = ways[i];
    put_input(&all->trial, SAMPLING, by_sequence);
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

/* A row's penalties, as the kernel reads them. */
typedef struct row_penalties {
    float repetition, frequency, presence;
    uint32_t last;
} row_penalties;

typedef struct bias_pair {
    uint32_t token;
    float bias;
} bias_pair;

/* Returns a parameter's content, to be changed. */
static void *content_of(launched *s, const char *name)
{
    return suite_param(&s->trial, name)->content.bytes;
}

/* A row of 9001 tokens, in two parts, or of fewer. Tokens 5 and n - 2 have the largest logits. */
static const int few_sizes[] = { 31, 1000, 9001 };
enum { FEW_SIZES = sizeof few_sizes / sizeof *few_sizes };

static launched *of_history(arena *a, int n, float logit, float second)
{
    launched *s = suite_launched(a, "sample", arena_format(a, "n=%d history=8", n));
    float *logits = content_of(s, "logits");
    for (int i = 0; i < n; i++)
        logits[i] = i == 5 ? logit : i == n - 2 ? second : -100;
    put_input(&s->trial, SAMPLING, &GREEDY);
    memset(content_of(s, "history"), 0, 8 * sizeof(uint32_t));
    return s;
}

/* Token 5 is at one position before the row's, and everywhere in what the row has not written. */
ARENA_TEST(penalties_count_the_last_tokens)
{
    enum { HISTORY = 8 };
    static const uint32_t positions[] = { 0, 3, 7, 8, 1001, UINT32_MAX - 1 };
    launched *s = of_history(a, 40, 10, 9.5f);
    uint32_t *history = content_of(s, "history"), *position = content_of(s, "positions");
    row_penalties *penalties = content_of(s, "penalties");
    *penalties = (row_penalties){ .repetition = 1, .presence = 1 };
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
        for (uint32_t back = 0; back < HISTORY && back <= positions[i]; back++)
            for (penalties->last = 0; penalties->last <= HISTORY + 1; penalties->last++) {
                *position = positions[i];
                for (uint32_t slot = 0; slot < HISTORY; slot++)
                    history[slot] = slot > positions[i] ? 5 : 7;
                history[(positions[i] - back) % HISTORY] = 5;
                const uint32_t *token = suite_output(a, s);
                assert_int_equal(*token, back < penalties->last ? 38 : 5);
            }
}

/* Frequency counts a token's occurrences, presence does not; a token outside of the vocabulary has
 * no effect. Repetition divides a positive logit and multiplies a negative one. */
ARENA_TEST(penalties_lower_logits_by_their_rules)
{
    static const struct {
        float logit, second;
        row_penalties penalties;
        uint32_t count; /* occurrences from which on the second token is drawn */
    } cases[] = {
        { 10, 7.5f, { 1, 1, 0, 8 }, 3 },        { 10, 7.5f, { 1, 0, 3, 8 }, 1 },
        { 10, 7.5f, { 1, 0, 2, 8 }, 99 },       { 10, 7.5f, { 1, 0.5f, 0.9f, 8 }, 4 },
        { 10, 8.1f, { 1.25f, 0, 0, 8 }, 1 },    { 10, 7.9f, { 1.25f, 0, 0, 8 }, 99 },
        { -1, -1.4f, { 1.5f, 0, 0, 8 }, 1 },    { -1, -1.6f, { 1.5f, 0, 0, 8 }, 99 },
        { 10, 7.5f, { 1.25f, 0.2f, 0, 8 }, 3 }, { 10, 10.5f, { 1, -0.2f, 0, 8 }, 0 },
        { 0, -0.1f, { 2, 0, 0, 8 }, 99 },       { 10, 7.5f, { 1, 1, 0, 2 }, 99 },
    };
    for (size_t n = 0; n < FEW_SIZES; n++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            int size = few_sizes[n];
            launched *s = of_history(a, size, cases[i].logit, cases[i].second);
            uint32_t *history = content_of(s, "history");
            *(uint32_t *)content_of(s, "positions") = 21;
            *(row_penalties *)content_of(s, "penalties") = cases[i].penalties;
            for (uint32_t count = 0; count <= 8; count++) {
                for (uint32_t at = 0; at < 8; at++)
                    history[(21 - at) % 8] = at < count ? 5 : at % 2 ? UINT32_MAX : (uint32_t)size;
                bool is_second =
                    cases[i].second > cases[i].logit ? count < 3 : count >= cases[i].count;
                const uint32_t *token = suite_output(a, s);
                assert_int_equal(*token, is_second ? size - 2 : 5);
            }
        }
}

ARENA_TEST(biases_are_added_and_ban_tokens)
{
    for (size_t i = 0; i < FEW_SIZES; i++) {
        uint32_t n = (uint32_t)few_sizes[i];
        const struct {
            bias_pair pairs[4];
            uint32_t count, token;
        } cases[] = {
            { { { 5, -1 }, { 3, 90 }, { n, 1000 }, { UINT32_MAX, 1000 } }, 4, n - 2 },
            { { { 5, -1 } }, 0, 5 },
            { { { 5, -0.2f }, { 5, -0.2f }, { 5, -0.2f } }, 2, 5 },
            { { { 5, -0.2f }, { 5, -0.2f }, { 5, -0.2f } }, 3, n - 2 },
            { { { 5, -INFINITY }, { 5, 1e9f }, { n - 2, -INFINITY }, { n - 1, 1 } }, 4, n - 1 },
            { { { 5, -1 }, { n - 1, 1000 }, { n - 1, -1000 }, { 0, 111 } }, UINT32_MAX, 0 },
        };
        launched *s = suite_launched(a, "sample", arena_format(a, "n=%u biases=4", n));
        float *logits = content_of(s, "logits");
        for (uint32_t at = 0; at < n; at++)
            logits[at] = at == 5 ? 10 : at == n - 2 ? 9.5f : -100;
        *(uint32_t *)content_of(s, "positions") = 3;
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            way w = GREEDY;
            w.biases = cases[c].count;
            put_input(&s->trial, SAMPLING, &w);
            memcpy(content_of(s, "biases"), cases[c].pairs, sizeof cases[c].pairs);
            assert_int_equal(*(const uint32_t *)suite_output(a, s), cases[c].token);
        }
    }
}

static uint32_t first_of(const float *logits, int n)
{
    uint32_t first = 0;
    for (int i = 1; i < n; i++)
        first = logits[i] > logits[first] ? (uint32_t)i : first;
    return first;
}

/* A row has no token if the mask allows none, or if any logit is NaN. */
ARENA_TEST(only_allowed_tokens_are_drawn)
{
    static const int all_sizes[] = { 2, 31, 33, 1000, 9001 };
    for (size_t i = 0; i < sizeof all_sizes / sizeof *all_sizes; i++) {
        int n = all_sizes[i];
        launched *s = suite_launched(a, "sample", arena_format(a, "n=%d mask=bits", n));
        float *logits = content_of(s, "logits");
        uint32_t *mask = content_of(s, "mask"), words = ((uint32_t)n + 31) / 32;
        way greedy = GREEDY, plain = PLAIN;
        *(uint32_t *)content_of(s, "positions") = 77;
        for (int masked = 1; masked >= 0; masked--) {
            greedy.masked = plain.masked = (uint32_t)masked;
            for (int at = 0; at < n; at += 1 + n / 5) {
                memset(mask, 0, words * sizeof *mask);
                mask[at / 32] = 1u << at % 32;
                uint32_t token = token_of(a, s, logits, plain);
                assert_true(masked ? token == (uint32_t)at : token < (uint32_t)n);
                token = token_of(a, s, logits, greedy);
                assert_int_equal(token, masked ? (uint32_t)at : first_of(logits, n));
                float before = logits[n - 1 - at];
                logits[n - 1 - at] = INFINITY;
                assert_int_equal(token_of(a, s, logits, plain), masked ? at : n - 1 - at);
                logits[n - 1 - at] = NAN;
                assert_int_equal(token_of(a, s, logits, plain), UINT32_MAX);
                logits[n - 1 - at] = before;
            }
            memset(mask, 0, words * sizeof *mask);
            mask[words - 1] |= n % 32 ? ~0u << n % 32 : 0;
            assert_int_equal(token_of(a, s, logits, plain) == UINT32_MAX, masked);
            assert_int_equal(token_of(a, s, logits, greedy) == UINT32_MAX, masked);
        }
        uint32_t token = token_of(a, s, logits, plain);
        plain.masked = 1;
        memset(mask, 0xff, words * sizeof *mask);
        assert_int_equal(token_of(a, s, logits, plain), token);
    }
}

/* Log-probabilities are of the model's logits, whatever the settings; equal logits rank by number.
 */
ARENA_TEST(log_probabilities_are_of_the_model)
{
    enum { RANKS = 5 };
    static const int all_sizes[] = { 3, 31, 1000, 9001, 20000 };
    for (size_t i = 0; i < sizeof all_sizes / sizeof *all_sizes; i++)
        for (int some = 0; some < 3; some++) {
            int n = all_sizes[i];
            launched *s = suite_launched(
                a, "sample",
                arena_format(a, "n=%d logprobs=%d %s", n, RANKS, some ? "mask=bits" : ""));
            float *logits = content_of(s, "logits");
            uint32_t *mask = some ? content_of(s, "mask") : NULL;
            for (int at = 0; at < n; at++)
                logits[at] = (float)(at * 7919 % 1009) * 0.01f - (at % 2 ? 5 : 0);
            if (some)
                memset(mask, some == 1 ? 0x55 : 0, (size_t)(n + 31) / 32 * sizeof *mask);
            way w = { .temperature = 1.5f, .top_p = 1, .seed = { 3 }, .masked = 1 };
            put_input(&s->trial, SAMPLING, &w);
            *(uint32_t *)content_of(s, "positions") = (uint32_t)n;
            const void *outputs[MAX_PARAMS];
            device d = device_emulator(a);
            expect_right(suite_launch_all(a, &d, &s->kernel, &s->trial, outputs));
            d.close(&d);
            uint32_t token = *(const uint32_t *)outputs[0];
            const float *logprobs = outputs[3];
            const uint32_t *best = outputs[4];
            assert_true(some < 2 ? token < (uint32_t)n && (!some || token % 2 == 0)
                                 : token == UINT32_MAX);
            double sum = 0, before = HUGE_VAL;
            for (int at = 0; at < n; at++)
                sum += exp((double)logits[at]);
            for (int rank = 0; rank <= RANKS; rank++) {
                uint32_t of = rank ? best[rank - 1] : token;
                if (some == 2 || rank > n) {
                    assert_true(isnan(logprobs[rank]) && of == UINT32_MAX);
                    continue;
                }
                double exact = (double)logits[of] - log(sum);
                assert_true(fabs((double)logprobs[rank] - exact) < 1e-5);
                for (int at = 0; rank && at < n; at++) /* none is between this and the last one */
                    assert_false(
                        ((double)logits[at] < before ||
                         ((double)logits[at] == before && (uint32_t)at > best[rank - 2])) &&
                        (logits[at] > logits[of] || (logits[at] == logits[of] && at < (int)of)));
                before = rank ? (double)logits[of] : before;
            }
        }
}

/* All keys, over the inputs of --verify: each adjustment with some settings and arrangements. */
EMULATOR_TEST(adjusted_rows_are_right_on_random_logits)
{
    static const char *const texts[] = {
        "n=31 m=3 history=5 biases=3 mask=bits logprobs=4",
        "n=1001 m=5 history=64 logprobs=20",
        "n=1000 m=4 biases=9",
        "n=1000 m=3 mask=bits",
        "n=9001 m=3 history=300 biases=30 mask=bits",
        "n=500 m=3 scale=0.125 history=9 logprobs=1",
        "n=500 m=3 softcap=20 biases=2 logprobs=3",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (uint64_t turn = 0; turn < 13; turn++) {
            launched *s = suite_launched(a, "sample", texts[i]);
            trial_setup setup = { .shape = s->in.shape, .sm_count = 1, .seed = turn, .turn = turn };
            s->trial = trial_prepare(a, &s->in, &setup);
            expect_runs_right(a, d, s);
        }
}

/* Gives a trial of one row the inputs of a row of another trial. */
static void put_row(launched *one, const launched *all, size_t row)
{
    static const char *const of_rows[] = { "positions", "logits", "mask" };
    for (size_t p = 0; p < one->trial.param_count; p++) {
        const trial_param *to = &one->trial.params[p];
        if (to->param.kind != PARAM_IN || !strcmp(to->param.name, "sequences"))
            continue;
        size_t entry = all->trial.sequences[row];
        for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
            entry = strcmp(to->param.name, of_rows[i]) ? entry : row;
        memcpy(to->content.bytes, (char *)all->trial.params[p].content.bytes + entry * to->size,
               to->size);
    }
}

/* A row's results are the same alone and in any order of rows. */
ARENA_TEST(adjusted_rows_do_not_depend_on_the_others)
{
    enum { ROWS = 4 };
    static const char *const keys = "history=20 biases=6 mask=bits logprobs=3";
    for (size_t i = 0; i < FEW_SIZES; i++) {
        launched *all = suite_launched(a, "sample",
                                       arena_format(a, "n=%d m=%d %s", few_sizes[i], ROWS, keys)),
                 *one = suite_launched(a, "sample", arena_format(a, "n=%d %s", few_sizes[i], keys));
        const void *together[MAX_PARAMS], *alone[MAX_PARAMS];
        device d = device_emulator(a);
        for (uint64_t turn = 0; turn < 3; turn++) {
            trial_setup setup = { .shape = all->in.shape, .sm_count = 1, .seed = 5, .turn = turn };
            all->trial = trial_prepare(a, &all->in, &setup);
            expect_right(suite_launch_all(a, &d, &all->kernel, &all->trial, together));
            for (size_t row = 0; row < ROWS; row++) {
                put_row(one, all, row);
                expect_right(suite_launch_all(a, &d, &one->kernel, &one->trial, alone));
                for (size_t p = 0; p < one->trial.param_count; p++)
                    if (one->trial.params[p].param.kind == PARAM_OUT) {
                        size_t bytes = one->trial.params[p].size;
                        expect_same_bits(one->in.name, "a row alone", alone[p],
                                         (const char *)together[p] + row * bytes, bytes);
                    }
            }
        }
        d.close(&d);
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

ARENA_TEST(faults_in_adjustments_are_found)
{
    static const line_edit adjusted[] = {
        { "min.u32", " 9;", 1, "min.u32 $1, $2, 8;" }, /* last_n off by one */
        { "rem.u32", " 9;", 1, "rem.u32 $1, $2, 8;" }, /* slot of a position */
        { "sub.u32", "", 1, "add.u32 $1, $2, $3;" },   /* direction of the history */
        { "st.shared.u32", " 0;", 1, "" },             /* cleared counts */
        { "atom.shared.add.u32", " 1;", 1, "$0 atom.shared.add.u32 $1, $2, 1;" }, /* twice */
        { "atom.shared.add.u32", " 1;", 1, "st.shared.u32 $2, 1;" }, /* a race, and no frequency */
        { "bar.sync", "", 1, "" },                                   /* before counting */
        { "bar.sync", "", 2, "" },                                   /* after counting */
        { "bar.sync", "", 3, "" },                                   /* before biases */
        { "bar.sync", "", 4, "" },                                   /* after the adjustments */
        { "div.rn.f32", "", 1, "mul.rn.f32 $1, $2, $3;" },           /* repetition */
        { "shr.u32", " 5;", 2, "shr.u32 $1, $2, 6;" },               /* word of the mask */
        { "and.b32", " 31;", 2, "and.b32 $1, $2, 15;" },             /* bit of the mask */
        { "st.global.f32", " 0fFF800000;", 1, "" },                  /* the mask */
        { "mul.wide.u32", " 40;", 1, "mul.wide.u32 $1, $2, 36;" },   /* a row's biases */
    };
    static const line_edit ranked[] = {
        { "shl.b64", " 1;", 1, "mov.b64 $1, $2;" }, /* sum of a part */
        { "st.global.u64", "", 1, "" },             /* the same */
        { "rem.u32", " 3;", 1, "mov.u32 $1, 0;" },  /* rank of a part */
        { "st.global.v2.u32", "", 1, "" },          /* the part's tokens */
    };
    expect_edits_found(a, "sample", "n=200 m=5 history=9 biases=5 mask=bits logprobs=3", adjusted,
                       sizeof adjusted / sizeof *adjusted);
    expect_edits_found(a, "sample", "n=9001 m=5 logprobs=3", ranked,
                       sizeof ranked / sizeof *ranked);
}
