/* Attention in one pass over the positions, with a running maximum, in double: a larger score
 * rescales the earlier sums.
 *
 * Error bounds, with u = 2^-24 and A_t = scale * sum |q||k_t|:
 *
 * - A score's dot product has an error e_t of at most a few u A_t. To first order it moves o by
 *   sum p_t (e_t - e) v_t, where e is the p-weighted mean of e_t.
 * - So the magnitude is the larger of sum p|v| and sum p|v| (A_t + A) / UNIT_LOGIT_TERMS, with A
 *   the mean of A_t. For q and k of N(0, 1), A_t is about 0.64 sqrt(head_dim), at most 11: the
 *   first term is larger.
 * - A chunk's sums are relative to one position, whose error is not averaged: UNIT_CHUNK_TERMS.
 * - A cap's rounding is about u times the score where tanh is linear, u times the cap elsewhere.
 * - A sink is rounded once, and so is its difference to other scores: its terms are twice its size.
 *   This also holds for the maxima of partial rows.
 * - If all other scores are far below the largest, errors of scores do not matter.
 * - If v of the largest p is 0, terms count whose p underflows in f32. Such a p is off by FLT_MIN:
 *   UNDERFLOW_SHARE of a magnitude.
 *
 * If q, rows and p may be rounded to f16, with U = 2^-11:
 *
 * - A product's terms are off by 2 U, independently: e_t of n terms is about 1.4 U A_t / sqrt(n).
 * - Latents have hundreds of terms: 4 U A_t / 24 covers that. For heads, where one position may
 *   face a sink, 4 U A_t / (2/3 sqrt(n)) covers four times as much.
 * - p, normalized after rounding, and v add up to 3 U sum p|v|. Both together are bounded by 4 U:
 *   HALVES_SHARE times a tolerance of 2e-6.
 * - Errors of scores above 1 are not of first order: if the largest two scores are closer than
 *   twice the error, either may have all the weight.
 * - Relative to the largest, a p below 2^-25 becomes 0, and a p below 2^-14 has an absolute
 *   error of 2^-25: HALVES_UNDERFLOW_SHARE of 4 U.
 * - Rounded rows are scaled by a power of two each, and p is multiplied by it before it is rounded.
 *   So the lost part of |v| grows by 2 times the largest value of all rows over that of v's row. */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "ref/quant.h"
#include "ref/reference.h"

enum { QUERY, KEYS, VALUES, BEHIND_CACHES, MAX_HEAD_DIM = 640 };
enum { PARTIALS, BEHIND_PARTIALS };
static const double UNIT_LOGIT_TERMS = 24, UNIT_ROOT_TERMS = 2.0 / 3, UNIT_CHUNK_TERMS = 8,
                    SUMMED_TERMS = 4, STRAIGHT_PART = 0.6, LOG2_E = 1.44269504088896340736,
                    UNDERFLOW_SHARE = 0x1p-106, HALVES_ERROR = 0x1p-9, HALVES_SHARE = 0x1p-9 / 2e-6,
                    HALVES_UNDERFLOW_SHARE = 0x1p-16, FAR_BELOW = 100, MOST_SCORE_ERROR = 0x1p-6;
static const float LOWEST = -20000;  /* largest maximum of very negative partial rows */
static const float FAR_APART = 1000; /* distance of maxima at which one row has all the weight */

/* Running sums of a head. Softmax numerators are relative to exp(largest). */
typedef struct head_result {
    double sum[MAX_HEAD_DIM];
    double magnitude[MAX_HEAD_DIM], weighed[MAX_HEAD_DIM]; /* sums of p|v|, of p|v| A */
    double unweighed[MAX_HEAD_DIM];                        /* sums of |v| */
    bool rounds;                                           /* rows are rounded to f16; only then: */
    double shares[MAX_HEAD_DIM];   /* sums of |v| / largest value of its row */
    double largest_value;          /* largest value of all rows */
    double weight, weighed_weight; /* sums of p, of p A */
    double largest, largest_terms; /* largest score, and its A */
    double second, most_terms;     /* second largest score, and the largest A */
} head_result;

/* Positions [begin, end) of a softmax: the last `window` ones of the clamped seq_len. */
typedef struct position_range {
    uint64_t begin, end;
} position_range;

static position_range positions_of(const problem *p, uint64_t sequence)
{
    const problem_shape *s = &p->shape;
    uint64_t length = p->seq_lens ? p->seq_lens[sequence] : (uint64_t)s->seq_len;
    uint64_t most = (uint64_t)s->max_seq_len, window = (uint64_t)p->options.window;
    uint64_t end = length < most ? length : most;
    return (position_range){ window && window < end ? end - window : 0, end };
}

uint64_t ref_page_rows(const problem *p)
{
    const problem_options *o = &p->options;
    return (uint64_t)(o->page ? o->page : o->ring ? o->ring : p->shape.max_seq_len);
}

uint64_t ref_sequence(const problem *p, uint64_t row)
{
    return p->sequences ? p->sequences[row] : row;
}

uint64_t ref_cache_row(const problem *p, uint64_t sequence, uint64_t kv_head, uint64_t position)
{
    uint64_t rows = ref_page_rows(p), page = sequence;
    if (p->options.page) {
        uint64_t pages = ((uint64_t)p->shape.max_seq_len + rows - 1) / rows;
        page = sequence * pages + position / rows;
        page = p->pages ? p->pages[page] : page;
    }
    return (page * (uint64_t)problem_cache_heads(&p->shape) + kv_head) * rows + position % rows;
}

uint64_t ref_scattered_page(uint64_t entry, uint64_t count)
{
    enum { PRIME = 7919 };
    uint64_t step = PRIME;
    while (count % step == 0)
        step += 2;
    return (entry * step + count / 2) % count;
}

/* Returns the values of a head's result; in latent attention, the first ones of a key. */
static uint64_t value_dim(const problem_shape *s)
{
    return (uint64_t)(s->latent ? s->latent : s->head_dim);
}

/* Adds positions with a common score. v is the sum of their values, number their weight. */
static void add_positions(head_result *r, double number, const float *v, uint64_t dim, double score,
                          double terms)
{
    r->most_terms = fmax(r->most_terms, terms);
    r->second = fmax(r->second, fmin(score, r->largest));
    if (score > r->largest) {
        double factor = exp(r->largest - score);
        for (uint64_t d = 0; d < dim; d++) {
            r->sum[d] *= factor;
            r->magnitude[d] *= factor;
            r->weighed[d] *= factor;
        }
        r->weight *= factor;
        r->weighed_weight *= factor;
        r->largest = score;
        r->largest_terms = terms;
    }
    double weight = exp(score - r->largest);
    r->weight += weight * number;
    r->weighed_weight += weight * number * terms;
    for (uint64_t d = 0; d < dim; d++) {
        double term = weight * (double)v[d];
        r->sum[d] += term;
        r->magnitude[d] += fabs(term);
        r->weighed[d] += fabs(term) * terms;
        r->unweighed[d] += fabs((double)v[d]);
    }
}

/* Returns the sink of a head, or minus infinity without sinks. */
static double sink_of(const problem *p, unsigned input, uint64_t head)
{
    float sink = -HUGE_VALF;
    if (p->options.sinks)
        problem_read(p, input, head % (uint64_t)p->shape.num_heads, 1, &sink);
    return (double)sink;
}

static void add_sink(const problem *p, double sink, double terms, head_result *r)
{
    static const float no_value[MAX_HEAD_DIM];
    if (!(sink <= -HUGE_VAL)) /* true for NaN, too */
        add_positions(r, 1, no_value, value_dim(&p->shape), sink, terms);
}

/* Adds shares of width values that are rounded together. The first dim values are v. */
static void add_shares(head_result *r, const float *row, uint64_t first, uint64_t width,
                       uint64_t dim)
{
    double largest = 0;
    for (uint64_t d = first; d < first + width; d++)
        largest = isfinite(row[d]) ? fmax(largest, fabs((double)row[d])) : largest;
    r->largest_value = fmax(r->largest_value, largest);
    for (uint64_t d = first; d < first + width && d < dim && largest > 0; d++)
        if (isfinite(row[d]))
            r->shares[d] += fabs((double)row[d]) / largest;
}

/* Attends with a query head, numbered across sequences. */
static void attend(const problem *p, uint64_t head, position_range positions, head_result *r)
{
    uint64_t dim = (uint64_t)problem_cache_values(&p->shape), heads = (uint64_t)p->shape.num_heads;
    uint64_t kv_head = head % heads * (uint64_t)problem_cache_heads(&p->shape) / heads;
    uint64_t values = value_dim(&p->shape), sequence = ref_sequence(p, head / heads);
    double scale = p->options.scale > 0 ? p->options.scale : 1 / sqrt((double)dim);
    float q[MAX_HEAD_DIM], k[MAX_HEAD_DIM], v[MAX_HEAD_DIM];

    *r = (head_result){ .largest = -HUGE_VAL,
                        .second = -HUGE_VAL,
                        .rounds = p->options.halves && p->input_formats[KEYS] != FORMAT_F16 };
    problem_read(p, QUERY, head * dim, dim, q);
    for (uint64_t t = positions.begin; t < positions.end; t++) {
        uint64_t row = ref_cache_row(p, sequence, kv_head, t);
        problem_read(p, KEYS, row * dim, dim, k);
        if (!p->shape.latent)
            problem_read(p, VALUES, row * dim, dim, v);
        double score = 0, terms = 0;
        for (uint64_t d = 0; d < dim; d++) {
            double term = scale * (double)q[d] * (double)k[d];
            score += term;
            terms += fabs(term);
        }
        if (p->options.softcap > 0) {
            terms +=
                fabs(score) > STRAIGHT_PART * p->options.softcap ? p->options.softcap : fabs(score);
            score = p->options.softcap * tanh(score / p->options.softcap);
        }
        const float *value = p->shape.latent ? k : v;
        bool split = !p->shape.latent && dim > PROBLEM_SPLIT_HEAD_DIM;
        for (uint64_t at = 0; r->rounds && at < values; at += split ? dim / 2 : dim)
            add_shares(r, value, at, split ? dim / 2 : dim, values);
        if (!(score <= -HUGE_VAL)) /* true for NaN, too */
            add_positions(r, 1, value, values, score, terms);
        for (uint64_t d = 0; d < values && p->shape.latent && score <= -HUGE_VAL; d++)
            r->sum[d] += 0 * (double)value[d]; /* NaN if the value is not finite */
    }
}

/* Returns the magnitude of element d in units of exp(largest); terms: A of the largest score. */
static double magnitude_of(const head_result *r, uint64_t d, double terms, double unit_terms)
{
    return fmax(r->magnitude[d], (r->weighed[d] + terms * r->magnitude[d]) / unit_terms) +
           UNDERFLOW_SHARE * r->unweighed[d];
}

static ref_value softmax_value(const problem *p, const head_result *r, uint64_t d)
{
    if (r->weight <= 0)
        return (ref_value){ 0 * r->sum[d], 0 };
    bool few_terms = p->options.halves && !p->shape.latent;
    double unit = few_terms ? UNIT_ROOT_TERMS * sqrt((double)p->shape.head_dim) : UNIT_LOGIT_TERMS;
    double magnitude = magnitude_of(r, d, r->weighed_weight / r->weight, unit);
    /* One position has all the weight, regardless of errors in the scores. */
    if (r->largest - r->second > fmax(FAR_BELOW, r->most_terms * MOST_SCORE_ERROR))
        magnitude = r->magnitude[d] + UNDERFLOW_SHARE * r->unweighed[d];
    /* Rounded scores may exchange the largest two, so that any value has all the weight. */
    double error = few_terms ? r->most_terms * HALVES_ERROR / unit : 0;
    if (error > 1 && r->largest - r->second < 2 * error)
        magnitude += r->weight * r->unweighed[d] / HALVES_ERROR;
    double lost = r->rounds ? 2 * r->largest_value * r->shares[d] : r->unweighed[d];
    if (p->options.halves)
        magnitude = HALVES_SHARE * (magnitude + HALVES_UNDERFLOW_SHARE * lost);
    return (ref_value){ r->sum[d] / r->weight, magnitude / r->weight };
}

/* Computes a head's result. Its gate may be off by FLT_MIN, like a p. */
static void attend_row(const problem *p, unsigned output, uint64_t head, ref_value *row)
{
    (void)output;
    uint64_t dim = value_dim(&p->shape), heads = (uint64_t)p->shape.num_heads;
    double sink = sink_of(p, BEHIND_CACHES, head);
    int64_t by = p->options.gate;
    bool sigmoid = by == GATE_SIGMOID || by == GATE_SIGMOID_HEAD;
    head_result r;
    attend(p, head, positions_of(p, head / heads), &r);
    add_sink(p, sink, 2 * fabs(sink), &r);
    for (uint64_t d = 0; d < dim; d++) {
        row[d] = softmax_value(p, &r, d);
        if (!by)
            continue;
        uint64_t at = problem_gate_is_of_head(by) ? head : head * dim + d;
        double x = problem_read_one(p, BEHIND_CACHES + (p->options.sinks ? 1 : 0), at);
        double gate = !isfinite(x) ? (double)NAN
                      : sigmoid    ? 1 / (1 + exp(-x))
                                   : fmax(x, 0) + log1p(exp(-fabs(x)));
        double value = row[d].value * gate;
        row[d] =
            (ref_value){ value, row[d].magnitude * (gate + UNDERFLOW_SHARE) + ref_lost(value) };
    }
}
REF_BY_ROWS(ref_attention, value_dim(&p->shape), attend_row)

typedef struct chunk_rows {
    uint64_t row_values, chunks; /* values per row; rows per head */
} chunk_rows;

static chunk_rows rows_of(const problem_shape *s)
{
    uint64_t size = (uint64_t)s->chunk_size;
    return (chunk_rows){ (uint64_t)s->head_dim + PARTIAL_EXTRA,
                         ((uint64_t)s->max_seq_len + size - 1) / size };
}

static position_range chunk_positions(const problem *p, uint64_t row)
{
    chunk_rows c = rows_of(&p->shape);
    uint64_t size = (uint64_t)p->shape.chunk_size, from = row % c.chunks * size;
    position_range all = positions_of(p, row / c.chunks / (uint64_t)p->shape.num_heads);
    uint64_t begin = from > all.begin ? from : all.begin;
    uint64_t end = from + size < all.end ? from + size : all.end;
    return (position_range){ begin, begin < end ? end : begin };
}

/* Offsets in a row after the sums. */
enum { AT_MAX, AT_WEIGHT };

static void attend_chunk(const problem *p, unsigned output, uint64_t number, ref_value *row)
{
    (void)output;
    chunk_rows c = rows_of(&p->shape);
    uint64_t dim = (uint64_t)p->shape.head_dim;
    position_range positions = chunk_positions(p, number);
    head_result r;
    attend(p, number / c.chunks, positions, &r);
    for (uint64_t i = 0; i < c.row_values; i++)
        row[i] = (ref_value){ 0, positions.begin == positions.end ? HUGE_VAL : 0 };
    if (positions.begin == positions.end)
        return;
    for (uint64_t d = 0; d < dim; d++)
        row[d] = (ref_value){ r.sum[d], magnitude_of(&r, d, r.largest_terms, UNIT_CHUNK_TERMS) };
    double unit = fmax(1, LOG2_E * r.largest_terms / SUMMED_TERMS);
    double weighed = (r.weighed_weight + r.largest_terms * r.weight) / UNIT_CHUNK_TERMS;
    row[dim + AT_MAX] = r.largest > -HUGE_VAL ? (ref_value){ r.largest * LOG2_E, unit }
                                              : (ref_value){ (double)-FLT_MAX, 1 };
    row[dim + AT_WEIGHT] = (ref_value){ r.weight, fmax(r.weight, weighed) };
}
REF_BY_ROWS(ref_attention_chunks, rows_of(&p->shape).row_values, attend_chunk)

/* Reads a row and its maximum in natural units. Returns false if its chunk has no positions. */
static bool read_row(const problem *p, uint64_t number, float *row, double *largest)
{
    chunk_rows c = rows_of(&p->shape);
    position_range positions = chunk_positions(p, number);
    if (positions.begin == positions.end)
        return false;
    problem_read(p, PARTIALS, number * c.row_values, c.row_values, row);
    *largest = (double)row[p->shape.head_dim + AT_MAX] / LOG2_E;
    return true;
}

/* Merges the rows of a head that have positions, weighted by their maxima, and its sink. */
static void merge_row(const problem *p, unsigned output, uint64_t head, ref_value *merged)
{
    (void)output;
    uint64_t dim = (uint64_t)p->shape.head_dim, chunks = rows_of(&p->shape).chunks;
    double sink = sink_of(p, BEHIND_PARTIALS, head), largest = sink, score;
    float row[MAX_HEAD_DIM + PARTIAL_EXTRA];
    head_result r = { .largest = -HUGE_VAL, .second = -HUGE_VAL };
    for (uint64_t i = head * chunks; i < (head + 1) * chunks; i++)
        if (read_row(p, i, row, &score))
            largest = fmax(largest, score);
    for (uint64_t i = head * chunks; i < (head + 1) * chunks; i++)
        if (read_row(p, i, row, &score))
            add_positions(&r, (double)row[dim + AT_WEIGHT], row, dim, score, fabs(score - largest));
    add_sink(p, sink, fabs(sink) + fabs(sink - largest), &r);
    for (uint64_t d = 0; d < dim; d++)
        merged[d] = softmax_value(p, &r, d);
}

REF_BY_ROWS(ref_merge_chunks, p->shape.head_dim, merge_row)

void ref_fit_partials(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    chunk_rows c = rows_of(&p->shape);
    uint64_t dim = (uint64_t)p->shape.head_dim;
    uint64_t size = (uint64_t)p->shape.chunk_size, heads = (uint64_t)p->shape.num_heads;
    float *row = bytes;
    for (uint64_t i = 0; i < values / c.row_values; i++, row += c.row_values) {
        row[dim + AT_WEIGHT] = fmaxf(fabsf(row[dim + AT_WEIGHT]), 1);
        if (i / c.chunks % 2)
            row[dim + AT_MAX] = FAR_APART * row[0];
        if (p->negative)
            row[dim + AT_MAX] = LOWEST - fabsf(row[dim + AT_MAX]);
        if (p->periods[input] || i % c.chunks * size < positions_of(p, i / c.chunks / heads).end)
            continue;
        for (uint64_t d = 0; d < c.row_values; d++)
            row[d] = NAN;
    }
}

void ref_fit_gates(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    enum { FAR = 16 };
    static const float far_apart[] = { 3e38f, -3e38f, 90, -60 };
    bool sigmoid = p->options.gate == GATE_SIGMOID || p->options.gate == GATE_SIGMOID_HEAD;
    float *gates = bytes;
    (void)input;
    for (uint64_t i = 0; i < values / FAR; i++)
        gates[i * FAR + i % FAR] = far_apart[i % (sizeof far_apart / sizeof *far_apart)];
    for (uint64_t i = 0; i < values && !sigmoid; i++) /* softplus would make o infinite */
        gates[i] = fmaxf(fminf(gates[i], 1e4f), -3e38f);
    if (p->strange)
        ref_spoil_either(gates, values);
}
