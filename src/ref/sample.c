/* Sampling in double, by sorting all tokens. Results depend on comparisons of sums. If float
 * arithmetic may decide one differently, the magnitude is infinite. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref/random.h"
#include "ref/reference.h"

enum { LOGITS, POSITIONS, SAMPLING }; /* inputs */

/* Relative errors of a sum of exponentials, from the rounding of logits, and of capped logits. */
static const double DOUBT = 2e-6, DOUBT_OF_CAP = 2e-5;

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

typedef struct candidate {
    float logit;
    uint32_t token;
    double weight;
} candidate;

typedef struct way {
    float temperature, top_p, min_p;
    uint32_t top_k, seed_low, seed_high;
} way;

static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->logit > y->logit || x->logit < y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

static double transformed_logit(const problem *p, float logit)
{
    double t = (double)logit * (p->options.scale > 0 ? p->options.scale : 1);
    double cap = p->options.softcap;
    return cap > 0 ? cap * tanh(t / cap) : t;
}

/* Computes the weights of the first count candidates. Returns their sum. */
static double weigh(const problem *p, candidate *c, uint64_t count, double temperature)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        c[i].weight = exp((transformed_logit(p, c[i].logit) - transformed_logit(p, c[0].logit)) /
                          temperature);
        sum += c[i].weight;
    }
    return sum;
}

/* Draws a token from those that top_k, top_p and min_p keep. */
static ref_value draw(const problem *p, const way *w, uint32_t position, candidate *c, uint64_t n)
{
    bool doubt = false;
    uint64_t count = w->top_k && w->top_k < n ? w->top_k : n, left = 0, i = 0;
    double off = p->options.softcap > 0 ? DOUBT_OF_CAP : DOUBT, least = (double)w->min_p;
    double sum = weigh(p, c, count, 1), goal = (double)w->top_p * sum, upto = 0;
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
    sum = weigh(p, c, left, (double)w->temperature);
    double u = ref_philox(position, w->seed_low, w->seed_high) * 0x1p-32;
    for (i = 0, upto = 0; i + 1 < left; i++) {
        upto += c[i].weight;
        doubt |= fabs(upto - u * sum) <= off * sum;
        if (upto > u * sum)
            break;
    }
    return (ref_value){ c[i].token, doubt ? HUGE_VAL : 0 };
}

static ref_value token_of_row(const problem *p, uint64_t row, uint32_t position)
{
    uint64_t n = (uint64_t)p->shape.n;
    arena *a = arena_new();
    candidate *c = arena_alloc(a, n * sizeof *c);
    ref_value none = { UINT32_MAX, 0 }, token = none;
    bool any_nan = false;
    for (uint64_t i = 0; i < n; i++) {
        problem_read(p, LOGITS, row * n + i, 1, &c[i].logit);
        c[i].token = (uint32_t)i;
        any_nan |= isnan(c[i].logit);
    }
    if (!any_nan) {
        const uint32_t *words = (const uint32_t *)p->inputs[SAMPLING] + row * SAMPLING_WORDS;
        way w = { .top_k = words[SAMPLING_TOP_K],
                  .seed_low = words[SAMPLING_SEED_LOW],
                  .seed_high = words[SAMPLING_SEED_HIGH] };
        memcpy(&w.temperature, &words[SAMPLING_TEMPERATURE], sizeof w.temperature);
        memcpy(&w.top_p, &words[SAMPLING_TOP_P], sizeof w.top_p);
        memcpy(&w.min_p, &words[SAMPLING_MIN_P], sizeof w.min_p);
        qsort(c, n, sizeof *c, compare_candidates);
        if (!(w.temperature > 0) || isinf(c[0].logit))
            token = c[0].logit < -FLT_MAX ? none : (ref_value){ c[0].token, 0 };
        else
            token = draw(p, &w, position, c, n);
    }
    arena_free(a);
    return token;
}

void ref_sample(const problem *p, unsigned output, uint64_t first, uint64_t count,
                ref_value *values)
{
    enum { TOKEN, NEXT_POSITION };
    for (uint64_t row = first; row < first + count; row++) {
        uint32_t position = ((const uint32_t *)p->inputs[POSITIONS])[row];
        ref_value *v = &values[row - first];
        if (position == UINT32_MAX)
            *v = (ref_value){ output <= NEXT_POSITION ? UINT32_MAX : 0, 0 };
        else if (output == TOKEN)
            *v = token_of_row(p, row, position);
        else
            *v = (ref_value){ position + (uint32_t)output, 0 };
    }
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
    if (input == LOGITS)
        arrange_logits(p, bytes, values);
    for (uint64_t i = 0; input == POSITIONS && i < values; i++) {
        uint32_t position = sampled_row_of(p, i)->position;
        words[i] = position == 1 ? words[i] % (1 << 20) : position;
    }
    for (uint64_t row = 0; input == SAMPLING && row < values / SAMPLING_WORDS; row++) {
        const way *w = &ways[sampled_row_of(p, row)->way];
        memcpy(&words[SAMPLING_TEMPERATURE], &w->temperature, sizeof *words);
        memcpy(&words[SAMPLING_TOP_P], &w->top_p, sizeof *words);
        memcpy(&words[SAMPLING_MIN_P], &w->min_p, sizeof *words);
        words[SAMPLING_TOP_K] = w->top_k;
        words += SAMPLING_WORDS;
    }
}
