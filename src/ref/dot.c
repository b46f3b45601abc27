/* Sums of products, the innermost loop of most references. Each row of weights meets each vector,
 * so that rows are decoded once, and vectors normed and rounded once, where there is room to keep
 * them: see ref_kept_new.
 */
#include <math.h>
#include <string.h>

#include "ref/quant.h"
#include "ref/reference.h"

enum {
    LANES = 8,      /* sums that do not wait for one another: the compiler makes vectors of them */
    CHUNK = 256,    /* values that are read at once: whole blocks of every format */
    BUCKETS = 1024, /* of rows */
    VECTOR_SLOTS = 64,
    MOST_KEPT = 64 << 20, /* bytes of rows */
};

/* Where a result is subnormal, rounding takes up to half the smallest subnormal float, 2^-150, off
 * it however small it is. A magnitude that leaves room for that at the smallest tolerance of a
 * family, 2e-7; of a sum each term may lose so much, and none that is 0. */
static const double LOST = 0x1p-150 / 2e-7;

double ref_lost(double value)
{
    return value != 0 ? LOST : 0;
}

typedef struct kept_row {
    struct kept_row *next; /* of the same hash */
    ref_run run;
    uint64_t count;
    float *values;
} kept_row;

/* As it is multiplied: times gamma where there is a norm, or rounded. */
typedef struct kept_vector {
    ref_run run;
    uint64_t count, room;
    bool rounded;
    double *x, *ties; /* ties: for each |w| a magnitude that leaves room for the other rounding */
    double factor;    /* of the norm, or what the input behind x has for the vector */
} kept_vector;

struct ref_kept {
    arena *arena;
    uint64_t bytes;
    kept_row *rows[BUCKETS], spare; /* spare: what there is no room to keep */
    kept_vector vectors[VECTOR_SLOTS];
};

ref_kept *ref_kept_new(arena *a)
{
    ref_kept *kept = arena_zalloc(a, sizeof *kept);
    kept->arena = a;
    return kept;
}

static bool is_run(ref_run a, uint64_t a_count, ref_run b, uint64_t b_count)
{
    return a.input == b.input && a.first == b.first && a_count == b_count;
}

static uint64_t hash(ref_run run)
{
    uint64_t mixed = (run.first * MAX_PARAMS + run.input) * UINT64_C(0x9e3779b97f4a7c15);
    return mixed >> 32;
}

static const float *decoded_row(const problem *p, ref_run run, uint64_t count)
{
    ref_kept *kept = p->kept;
    kept_row **at = &kept->rows[hash(run) % BUCKETS], *row = &kept->spare;
    uint64_t bytes = count * sizeof(float);
    while (*at && !is_run((*at)->run, (*at)->count, run, count))
        at = &(*at)->next;
    if (*at)
        return (*at)->values;
    if (kept->bytes + bytes <= MOST_KEPT) {
        kept->bytes += bytes;
        row = *at = arena_zalloc(kept->arena, sizeof *row);
    }
    if (row->count < count)
        row->values = arena_alloc(kept->arena, bytes);
    row->run = run;
    row->count = count;
    problem_read(p, run.input, run.first, count, row->values);
    return row->values;
}

/* How far x / d may be off: roundings of amax / 127, 1 / d and their product, and of x gamma. */
static const double QUANT_ERROR = Q8_1_LARGEST * 0x1p-21;

double ref_round_to_8_bits(const double *x, double *q)
{
    double largest = REF_LEAST_OF_8_BITS;
    for (int i = 0; i < Q8_1_VALUES; i++)
        largest = fmax(largest, fabs(x[i]));
    double d = largest / Q8_1_LARGEST;
    for (int i = 0; i < Q8_1_VALUES; i++)
        q[i] = nearbyint(x[i] / d);
    return d;
}

static void round_block(double *x, double *ties)
{
    double q[Q8_1_VALUES], d = ref_round_to_8_bits(x, q);
    for (int i = 0; i < Q8_1_VALUES; i++) {
        bool tie = fabs(x[i] / d - q[i]) > 0.5 - QUANT_ERROR;
        ties[i] = tie ? d / REF_QUANTIZING_TOLERANCE : 0;
        x[i] = d * q[i];
    }
}

/* Reads the values, times gamma where there is a norm, and what the products are multiplied by. */
static void read_vector(const problem *p, kept_vector *v)
{
    float x[CHUNK], gamma[CHUNK];
    double squares = 0;
    for (uint64_t at = 0; at < v->count; at += CHUNK) {
        uint64_t count = v->count - at < CHUNK ? v->count - at : CHUNK;
        problem_read(p, v->run.input, v->run.first + at, count, x);
        if (p->options.norm)
            problem_read(p, v->run.input + 1, at, count, gamma);
        for (uint64_t i = 0; i < count; i++) {
            v->x[at + i] = p->options.norm ? (double)x[i] * (double)gamma[i] : (double)x[i];
            squares += (double)x[i] * (double)x[i];
        }
    }
    v->factor = p->options.norm ? 1 / sqrt(squares / (double)v->count + p->options.epsilon) : 1;
    if (p->options.row_factors)
        v->factor = problem_read_one(p, v->run.input + 1, v->run.first / v->count);
}

static const kept_vector *vector_of(const problem *p, ref_run run, uint64_t count, bool rounded)
{
    ref_kept *kept = p->kept;
    kept_vector *v = &kept->vectors[hash(run) % VECTOR_SLOTS];
    if (v->count && is_run(v->run, v->count, run, count) && v->rounded == rounded)
        return v;
    if (v->room < count) {
        v->room = count;
        v->x = arena_alloc(kept->arena, count * sizeof *v->x);
        v->ties = arena_alloc(kept->arena, count * sizeof *v->ties);
    }
    v->run = run;
    v->count = count;
    v->rounded = rounded;
    read_vector(p, v);
    for (uint64_t i = 0; rounded && i < count; i += Q8_1_VALUES)
        round_block(v->x + i, v->ties + i);
    return v;
}

/* Adds products of LANES values. */
static void add_lanes(const float *w, const double *x, double *sums, double *magnitudes)
{
    for (int i = 0; i < LANES; i++) {
        double term = (double)w[i] * x[i], size = fabs(term);
        sums[i] += term;
        magnitudes[i] += size + (size > 0 ? LOST : 0);
    }
}

/* Whether a weight is d q - m: integers are multiplied by its parts, of which each may be far
 * larger than what they leave of it. */
static bool has_minima(format f)
{
    static const struct field {
        format of;
        const char *name;
    } fields[] = {
#define FIELD(id, field, offset) { FORMAT_##id, #field },
#include "format.def"
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].of == f &&
            (strcmp(fields[i].name, "MIN") == 0 || strcmp(fields[i].name, "DMIN") == 0))
            return true;
    return false;
}

/* What is lost of the parts of weights: d q and m are together at most |w| + 2 m, and m is about
 * the largest of 32. */
static double lost_of_parts(const float *w, const kept_vector *v)
{
    enum { SEGMENT = 32 };
    double lost = 0;
    for (uint64_t at = 0; at < v->count; at += SEGMENT) {
        double largest = 0, sizes = 0;
        for (uint64_t i = at; i < at + SEGMENT; i++) {
            largest = fmax(largest, fabs((double)w[i]));
            sizes += fabs(v->x[i]);
        }
        lost += 2 * largest * sizes;
    }
    return lost;
}

static ref_value add_products(const float *w, const kept_vector *v)
{
    double sums[LANES] = { 0 }, magnitudes[LANES] = { 0 };
    uint64_t at = 0;
    for (; at + LANES <= v->count; at += LANES)
        add_lanes(w + at, v->x + at, sums, magnitudes);
    for (; at < v->count; at++) {
        double term = (double)w[at] * v->x[at];
        sums[0] += term;
        magnitudes[0] += fabs(term) + ref_lost(term);
    }
    for (uint64_t i = 0; v->rounded && i < v->count; i++)
        if (v->ties[i] > 0)
            magnitudes[0] += fabs((double)w[i]) * v->ties[i];
    ref_value sum = { 0, 0 };
    for (int i = 0; i < LANES; i++) {
        sum.value += sums[i];
        sum.magnitude += magnitudes[i];
    }
    return sum;
}

/* The factor of a norm has errors of its own: of a sum of squares and of a reciprocal root. */
enum { NORM_MAGNITUDE = 3 };

/* Floats are not multiplied as integers: x stays as it is. */
static ref_value dot(const problem *p, ref_run weights, ref_run x, uint64_t k)
{
    bool rounded = p->quantizes && formats[p->input_formats[weights.input]].block_values > 1;
    const kept_vector *v = vector_of(p, x, k, rounded);
    const float *w = decoded_row(p, weights, k);
    ref_value sum = add_products(w, v);
    if (rounded && has_minima(p->input_formats[weights.input]))
        sum.magnitude += lost_of_parts(w, v);
    sum.value *= v->factor;
    sum.magnitude *= fabs(v->factor) * (p->options.norm ? NORM_MAGNITUDE : 1);
    sum.magnitude += ref_beside_x(p) ? ref_lost(sum.value) : 0;
    return sum;
}

ref_value ref_dot(const problem *p, ref_run weights, ref_run x, uint64_t k)
{
    if (p->kept)
        return dot(p, weights, x, k);
    arena *a = arena_new();
    problem alone = *p;
    alone.kept = ref_kept_new(a);
    ref_value sum = dot(&alone, weights, x, k);
    arena_free(a);
    return sum;
}

unsigned ref_beside_x(const problem *p)
{
    return p->options.norm || p->options.row_factors ? 1 : 0;
}

ref_value ref_dot_row(const problem *p, unsigned matrix, uint64_t row, unsigned vectors,
                      uint64_t vector)
{
    uint64_t k = (uint64_t)p->shape.k;
    return ref_dot(p, (ref_run){ matrix, row * k }, (ref_run){ vectors, vector * k }, k);
}
