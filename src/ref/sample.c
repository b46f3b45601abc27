/* Sampling in double, by sorting all tokens. Results depend on comparisons of sums and of adjusted
 * logits. If float arithmetic may decide one differently, the magnitude is infinite. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref/random.h"
#include "ref/reference.h"

enum { LOGITS, POSITIONS, SAMPLING, HISTORY, PENALTIES, BIASES, MASK, INPUTS };
enum { TOKEN, NEXT_POSITION, LENGTH, LOGPROBS, BEST, WORD_BITS = 32 }; /* outputs; of a mask */

/* Relative errors of a sum of exponentials, from the rounding of logits, and of capped logits. */
static const double DOUBT = 2e-6, DOUBT_OF_CAP = 2e-5;

/* Error of an adjusted logit, relative to the largest number of the row. */
static const double ROUNDING = 1e-6;

/* Returns the words of a row of an input; 0: the kernel does not have it. */
static uint64_t width_of(const problem *p, int input)
{
    const problem_options *o = &p->options;
    const int64_t widths[INPUTS] = { p->shape.n,
                                     1,
                                     SAMPLING_WORDS,
                                     o->history,
                                     o->history ? PENALTY_WORDS : 0,
                                     2 * o->biases,
                                     o->mask ? (p->shape.n + WORD_BITS - 1) / WORD_BITS : 0 };
    return (uint64_t)widths[input];
}

/* Returns the number of an input among those that the kernel has. */
static unsigned number_of(const problem *p, int input)
{
    unsigned number = 0;
    for (int i = 0; i < input; i++)
        number += width_of(p, i) > 0;
    return number;
}

static bool has_adjusted(const problem *p)
{
    return number_of(p, INPUTS) > HISTORY;
}

/* Returns the index of a row's entry in an input: its sequence's number in settings. */
static uint64_t entry_of(const problem *p, int input, uint64_t row)
{
    return input >= SAMPLING && input < MASK ? ref_sequence(p, row) : row;
}

static const uint32_t *words_of(const problem *p, int input, uint64_t row)
{
    return (const uint32_t *)p->inputs[number_of(p, input)] +
           entry_of(p, input, row) * width_of(p, input);
}

static float float_of(uint32_t word)
{
    float number;
    memcpy(&number, &word, sizeof number);
    return number;
}

uint32_t ref_philox(uint32_t counter, uint32_t key_low, uint32_t key_high)
{
    enum { ROUNDS = 10 };
    uint32_t c[4] = { counter, 0, 0, 0 };
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t first = UINT64_C(0xd2511f53) * c[0], second = UINT64_C(0xcd9e8d57) * c[2];
        c[0] = (uint32_t)(second >> 32) ^ c[1] ^ key_low;
        c[1] = (uint32_t)second;
        c[2] = (uint32_t)(first >> 32) ^ c[3] ^ key_high;
        c[3] = (uint32_t)first;
        key_low += 0x9e3779b9;
        key_high += 0xbb67ae85;
    }
    return c[0];
}

/* A token: the logit that ranks it, and the one that weighs it. */
typedef struct candidate {
    double logit, scaled, weight;
    uint32_t token;
} candidate;

typedef struct way {
    float temperature, top_p, min_p;
    uint32_t top_k, seed_low, seed_high;
    double error; /* of logits, if adjusted */
} way;

static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->logit > y->logit || x->logit < y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

static double transformed_logit(const problem *p, double logit)
{
    double t = logit * (p->options.scale > 0 ? p->options.scale : 1);
    double cap = p->options.softcap;
    return cap > 0 ? cap * tanh(t / cap) : t;
}

/* Computes the weights of the first count candidates. Returns their sum. */
static double weigh(candidate *c, uint64_t count, double temperature)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        c[i].weight = exp((c[i].scaled - c[0].scaled) / temperature);
        sum += c[i].weight;
    }
    return sum;
}

/* Returns true if another token may be in the place of one, by an error of logits. */
static bool may_swap(const candidate *c, uint64_t n, uint64_t at, double error)
{
    bool may = false;
    for (uint64_t i = 0; i < n; i++)
        may |= c[i].logit < c[at].logit
                   ? c[at].logit - c[i].logit <= error
                   : c[i].logit > c[at].logit && c[i].logit - c[at].logit <= error;
    return may;
}

/* Draws a token from those that top_k, top_p and min_p keep. */
static ref_value draw(const problem *p, const way *w, uint32_t position, candidate *c, uint64_t n)
{
    bool doubt = false;
    uint64_t count = w->top_k && w->top_k < n ? w->top_k : n, left = 0, i = 0;
    double off = p->options.softcap > 0 || has_adjusted(p) ? DOUBT_OF_CAP : DOUBT;
    double least = (double)w->min_p;
    off += 2 * w->error / fmin(1, (double)w->temperature);
    double sum = weigh(c, count, 1), goal = (double)w->top_p * sum, upto = 0;
    if (w->top_p < 1) { /* the shortest prefix with a share top_p of the sum */
        for (; i < count && (i == 0 || upto < goal); i++) {
            doubt |= i > 0 && fabs(upto - goal) <= off * sum;
            upto += c[i].weight;
        }
        doubt |= i < count && fabs(upto - goal) <= off * sum;
        count = i;
    }
    for (i = 0; i < count; i++) {
        doubt |= least > 0 && fabs(c[i].weight - least) <= off * least;
        left += c[i].weight >= fmin(least, 1);
    }
    sum = weigh(c, left, (double)w->temperature);
    double u = ref_philox(position, w->seed_low, w->seed_high) * 0x1p-32;
    for (i = 0, upto = 0; i + 1 < left; i++) {
        upto += c[i].weight;
        doubt |= fabs(upto - u * sum) <= off * sum;
        if (upto > u * sum)
            break;
    }
    return (ref_value){ c[i].token, doubt || may_swap(c, n, i, w->error) ? HUGE_VAL : 0 };
}

/* Returns a row's tokens by number. Sets *any_nan if a logit is NaN. */
static candidate *tokens_of_row(arena *a, const problem *p, uint64_t row, bool *any_nan)
{
    uint64_t n = (uint64_t)p->shape.n;
    candidate *c = arena_zalloc(a, n * sizeof *c);
    for (uint64_t i = 0; i < n; i++) {
        c[i].logit = problem_read_one(p, LOGITS, row * n + i);
        c[i].scaled = transformed_logit(p, c[i].logit);
        c[i].token = (uint32_t)i;
        *any_nan |= isnan(c[i].logit);
    }
    return c;
}

/* Applies penalties, biases and a mask to scaled and capped logits. Returns their error, or NaN if
 * one is NaN. */
static double adjust(arena *a, const problem *p, uint64_t row, uint32_t position, candidate *c)
{
    const problem_options *o = &p->options;
    const uint32_t *settings = words_of(p, SAMPLING, row);
    uint64_t n = (uint64_t)p->shape.n, last = 0, *counts = arena_zalloc(a, n * sizeof *counts);
    double repetition = 1, frequency = 0, presence = 0, largest = o->softcap;
    if (o->history) {
        const uint32_t *words = words_of(p, PENALTIES, row);
        repetition = (double)float_of(words[PENALTY_REPETITION]);
        frequency = (double)float_of(words[PENALTY_FREQUENCY]);
        presence = (double)float_of(words[PENALTY_PRESENCE]);
        last = words[PENALTY_LAST];
    }
    for (uint64_t i = 0; i < last && i < (uint64_t)o->history && i <= position; i++) {
        uint32_t token = words_of(p, HISTORY, row)[(position - i) % (uint64_t)o->history];
        if (token < n)
            counts[token]++;
    }
    for (uint64_t i = 0; i < n; i++) {
        double l = isfinite(c[i].logit) ? c[i].scaled : c[i].logit;
        double less = (double)counts[i] * frequency + presence;
        if (isfinite(l))
            largest = fmax(largest, fmax(fabs(l), fabs(less)));
        c[i].logit = counts[i] ? (l > 0 ? l / repetition : l * repetition) - less : l;
    }
    for (int64_t i = 0; i < o->biases && i < settings[SAMPLING_BIASES]; i++) {
        const uint32_t *pair = words_of(p, BIASES, row) + 2 * i;
        if (pair[0] < n)
            c[pair[0]].logit += (double)float_of(pair[1]);
    }
    for (uint64_t i = 0; i < n; i++) {
        bool allowed = !o->mask || !settings[SAMPLING_MASKED] ||
                       words_of(p, MASK, row)[i / WORD_BITS] >> i % WORD_BITS & 1;
        if (isnan(c[i].logit))
            return NAN;
        c[i].scaled = c[i].logit = allowed ? c[i].logit : -HUGE_VAL;
    }
    return ROUNDING * largest;
}

static ref_value token_of_row(const problem *p, uint64_t row)
{
    uint64_t n = (uint64_t)p->shape.n;
    uint32_t position = *words_of(p, POSITIONS, row);
    const uint32_t *words = words_of(p, SAMPLING, row);
    arena *a = arena_new();
    ref_value none = { UINT32_MAX, 0 }, token = none;
    bool any_nan = false;
    candidate *c = tokens_of_row(a, p, row, &any_nan);
    way w = { .temperature = float_of(words[SAMPLING_TEMPERATURE]),
              .top_p = float_of(words[SAMPLING_TOP_P]),
              .min_p = float_of(words[SAMPLING_MIN_P]),
              .top_k = words[SAMPLING_TOP_K],
              .seed_low = words[SAMPLING_SEED_LOW],
              .seed_high = words[SAMPLING_SEED_HIGH],
              .error = has_adjusted(p) ? adjust(a, p, row, position, c) : 0 };
    if (!any_nan && !isnan(w.error) && position != UINT32_MAX) {
        qsort(c, n, sizeof *c, compare_candidates);
        if (!(w.temperature > 0) || isinf(c[0].logit))
            token = c[0].logit < -(double)FLT_MAX
                        ? none
                        : (ref_value){ c[0].token, may_swap(c, n, 0, w.error) ? HUGE_VAL : 0 };
        else
            token = draw(p, &w, position, c, n);
    }
    arena_free(a);
    return token;
}

/* Computes the log-probabilities or the best tokens of a row. */
static void rank_row(const problem *p, unsigned output, uint64_t row, ref_value *values)
{
    const candidate none = { .logit = NAN, .token = UINT32_MAX };
    uint64_t n = (uint64_t)p->shape.n;
    ref_value token = token_of_row(p, row);
    arena *a = arena_new();
    bool any_nan = false, known = token.value < (double)n;
    candidate *c = tokens_of_row(a, p, row, &any_nan), chosen = c[known ? (int64_t)token.value : 0];
    if (known)
        qsort(c, n, sizeof *c, compare_candidates);
    known &= isfinite(c[0].logit);
    double sum = weigh(c, n, 1), most = fabs(c[0].scaled) + p->options.softcap;
    for (uint64_t i = 0, at = output == LOGPROBS; i < (uint64_t)p->options.logprobs + at; i++) {
        const candidate *of = !known ? &none : i < at ? &chosen : i - at < n ? &c[i - at] : &none;
        double t = isfinite(of->logit) ? of->scaled : of->logit;
        values[i] = (ref_value){ of->token, 0 };
        if (output == LOGPROBS)
            values[i] =
                (ref_value){ t - c[0].scaled - log(sum), 2 + fabs(t) + most + (double)n * 2.5e-4 +
                                                             (i < at ? token.magnitude : 0) };
    }
    arena_free(a);
}

void ref_sample(const problem *p, unsigned output, uint64_t first, uint64_t count,
                ref_value *values)
{
    uint64_t width = (uint64_t)p->options.logprobs + (output == LOGPROBS);
    if (output >= LOGPROBS) {
        ref_by_rows(p, output, width, first, count, values, rank_row);
        return;
    }
    for (uint64_t row = first; row < first + count; row++) {
        uint32_t position = *words_of(p, POSITIONS, row);
        uint32_t unused = output == NEXT_POSITION ? UINT32_MAX : 0;
        values[row - first] =
            (ref_value){ position == UINT32_MAX ? unused : position + (uint32_t)output, 0 };
        if (output == TOKEN)
            values[row - first] = token_of_row(p, row);
    }
}

typedef enum masking { UNMASKED, ANY_TOKENS, ONE_TOKEN, NO_TOKEN, EVERY_TOKEN } masking;

/* Adjustments of a row, taken in turn like the settings below. */
typedef struct adjusted_row {
    float repetition, frequency, presence;
    uint32_t last, biases;
    masking masking;
} adjusted_row;
static const adjusted_row adjusted_rows[] = {
    { 1, 0.4f, 0.7f, UINT32_MAX, UINT32_MAX, ANY_TOKENS },
    { 1.3f, 0, 0, 64, 0, UNMASKED },
    { 1, 0, 0, 0, 0, UNMASKED },
    { 1.1f, 0.5f, 0.3f, 4, 3, UNMASKED },
    { 1.5f, 0.25f, 0, 1, UINT32_MAX, EVERY_TOKEN },
    { 0.8f, -0.3f, 0.1f, 7, 1, UNMASKED },
    { 1.2f, 0, 0, 9, 2, ONE_TOKEN },
    { 1, 0, 0, 0, 3, NO_TOKEN },
};
/* The first FEW tokens are the likeliest, and most of those in histories and biases. */
enum { ADJUSTED_ROWS = sizeof adjusted_rows / sizeof *adjusted_rows, FEW = 24 };

static void fit_adjustments(const problem *p, int input, uint64_t row, uint32_t *words)
{
    enum { MOST_BIAS = 400 };
    const adjusted_row *of = &adjusted_rows[(p->turn * (uint64_t)p->shape.m + row) % ADJUSTED_ROWS];
    random_source r = { row + p->turn + (uint64_t)input };
    uint64_t n = (uint64_t)p->shape.n, width = width_of(p, input);
    const float penalties[] = { of->repetition, of->frequency, of->presence };
    if (input == SAMPLING) {
        words[SAMPLING_BIASES] = of->biases;
        words[SAMPLING_MASKED] = of->masking != UNMASKED;
    }
    if (input == PENALTIES) {
        memcpy(words, penalties, sizeof penalties);
        words[PENALTY_LAST] = of->last;
    }
    for (uint64_t i = 0; input == HISTORY && i < width; i++)
        words[i] = i % 3 == 1 ? words[i - 1]
                              : (uint32_t)random_below(&r, i % 4 == 3 || n < FEW ? n + 2 : FEW);
    for (uint64_t i = 0; input == BIASES && i < width / 2; i++) {
        float bias = i % 5 == 4 ? -INFINITY : (float)random_below(&r, 2 * MOST_BIAS) - MOST_BIAS;
        bias /= 100;
        words[2 * i] = i % 3 == 2 ? words[2 * i - 2]
                                  : (uint32_t)random_below(&r, i % 2 || n < FEW ? n + 2 : FEW);
        memcpy(&words[2 * i + 1], &bias, sizeof bias);
    }
    if (input == MASK && of->masking > ANY_TOKENS)
        memset(words, of->masking == EVERY_TOKEN ? 0xff : 0, width * sizeof *words);
    uint64_t allowed = random_below(&r, n);
    if (input == MASK && of->masking == ONE_TOKEN)
        words[allowed / WORD_BITS] |= 1u << allowed % WORD_BITS;
}

typedef enum arrangement {
    AS_THEY_ARE,
    LAST_ALONE,     /* the last token's is by far the largest */
    FIRST_AND_LAST, /* the first and last token's are equal and largest */
    TWO_EQUAL,      /* two random tokens' are equal and largest */
    ALL_LOW,        /* all are very negative */
    MANY_EQUAL,     /* few values: most tokens tie with many others */
    MANY_SECOND,    /* like MANY_EQUAL, below a single largest token */
} arrangement;

/* Sampling settings. */
enum { GREEDY, ALL, FORTY, TWO_HUNDRED, UP_TO_A_SUM, UP_TO_A_WEIGHT };
static const way ways[] = {
    [GREEDY] = { .temperature = 0, .top_p = 1 },
    [ALL] = { .temperature = 1, .top_p = 1 },
    [FORTY] = { .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f },
    [TWO_HUNDRED] = { .temperature = 1.3f, .top_k = 200, .top_p = 0.7f },
    [UP_TO_A_SUM] = { .temperature = 1.3f, .top_p = 0.7f },
    [UP_TO_A_WEIGHT] = { .temperature = 1.3f, .top_p = 1, .min_p = 0.2f },
};

/* A row's settings, taken in turn over launches. Position 1 means any position. */
typedef struct sampled_row {
    int way;
    arrangement arrangement;
    uint32_t position;
} sampled_row;
static const sampled_row sampled_rows[] = {
    { FORTY, AS_THEY_ARE, 1 },
    { GREEDY, LAST_ALONE, 0 },
    { GREEDY, TWO_EQUAL, UINT32_MAX },
    { TWO_HUNDRED, AS_THEY_ARE, 1 << 20 },
    { GREEDY, ALL_LOW, 1 },
    { ALL, AS_THEY_ARE, UINT32_MAX - 3 },
    { UP_TO_A_SUM, MANY_SECOND, 1 },
    { GREEDY, TWO_EQUAL, 1 },
    { GREEDY, FIRST_AND_LAST, 1 },
    { FORTY, MANY_EQUAL, 1 },
    { ALL, LAST_ALONE, 1 },
    { GREEDY, MANY_EQUAL, 1 },
    { UP_TO_A_WEIGHT, MANY_SECOND, 1 },
};
enum { SAMPLED_ROWS = sizeof sampled_rows / sizeof *sampled_rows };

static const sampled_row *sampled_row_of(const problem *p, uint64_t row)
{
    return &sampled_rows[(p->turn * (uint64_t)p->shape.m + row) % SAMPLED_ROWS];
}

uint64_t ref_sampling_turns(const problem_shape *s)
{
    uint64_t m = (uint64_t)s->m;
    return (SAMPLED_ROWS + m - 1) / m;
}

static void arrange_logits(const problem *p, float *logits, uint64_t values)
{
    const float LARGEST = 30, LOW = 20000; /* above, and below, all random logits */
    uint64_t n = (uint64_t)p->shape.n;
    for (uint64_t row = 0; row < values / n; row++, logits += n) {
        random_source r = { row + p->turn };
        arrangement is = sampled_row_of(p, row)->arrangement;
        for (uint64_t i = 0; i < FEW && i < n && has_adjusted(p); i++)
            logits[i] += 3;
        for (uint64_t i = 0; i < n; i++)
            logits[i] = is == ALL_LOW       ? logits[i] - LOW
                        : is == MANY_EQUAL  ? fminf(roundf(logits[i]), 1)
                        : is == MANY_SECOND ? fminf(roundf(logits[i]), 0)
                                            : logits[i];
        if (is == FIRST_AND_LAST)
            logits[0] = LARGEST;
        if (is == FIRST_AND_LAST || is == LAST_ALONE)
            logits[n - 1] = LARGEST;
        for (int i = 0; is == TWO_EQUAL && i < 2; i++)
            logits[random_below(&r, n)] = LARGEST;
        if (is == MANY_SECOND)
            logits[random_below(&r, n)] = 1;
    }
}

void ref_fit_sampling(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    uint32_t *words = bytes;
    for (int i = SAMPLING; i <= MASK; i++)
        for (uint64_t row = 0;
             width_of(p, i) && number_of(p, i) == input && row < values / width_of(p, i); row++)
            fit_adjustments(p, i, row, words + entry_of(p, i, row) * width_of(p, i));
    if (input == LOGITS)
        arrange_logits(p, bytes, values);
    for (uint64_t i = 0; input == POSITIONS && i < values; i++) {
        uint32_t position = sampled_row_of(p, i)->position;
        words[i] = position == 1 ? words[i] % (1 << 20) : position;
    }
    for (uint64_t row = 0; input == SAMPLING && row < values / SAMPLING_WORDS; row++) {
        const way *w = &ways[sampled_row_of(p, row)->way];
        uint32_t *own = words + entry_of(p, SAMPLING, row) * SAMPLING_WORDS;
        memcpy(&own[SAMPLING_TEMPERATURE], &w->temperature, sizeof *own);
        memcpy(&own[SAMPLING_TOP_P], &w->top_p, sizeof *own);
        memcpy(&own[SAMPLING_MIN_P], &w->min_p, sizeof *own);
        own[SAMPLING_TOP_K] = w->top_k;
    }
}
