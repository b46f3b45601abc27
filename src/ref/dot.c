/* Dot products, the innermost loop of most references. Each row of weights meets each vector. So
 * rows are decoded once, and vectors are normed and rounded once, if a cache is available: see
 * ref_kept_new. */
#include <math.h>
#include <string.h>

#include "ref/quant.h"
#include "ref/reference.h"

enum {
    LANES = 8,      /* independent sums, which the compiler vectorizes */
    CHUNK = 256,    /* values read at once: whole blocks of every format */
    BUCKETS = 1024, /* of the hash table of rows */
    VECTOR_SLOTS = 64,
    MOST_KEPT = 64 << 20, /* bytes of decoded rows */
    SEGMENT = 32,         /* weights with a common minimum, at most; at least 16 */
};

/* The magnitude that covers, at 2e-7, the smallest tolerance of a family, half the smallest
 * subnormal float, 2^-150: the most that each nonzero term of a sum may lose. */
static const double LOST = 0x1p-150 / 2e-7;

double ref_lost(double value)
{
    return value != 0 ? LOST : 0;
}

typedef struct kept_row {
    struct kept_row *next; /* next row in the hash bucket */
    ref_run run;
    uint64_t count;
    float *values;
    double *largest; /* largest magnitude per segment, for weights with minima */
} kept_row;

/* A vector as multiplied: times gamma with a norm, or rounded to 8 bits. */
typedef struct kept_vector {
    ref_run run;
    uint64_t count, room;
    bool rounded;
    double *x;
    double *sizes;  /* sum of magnitudes per segment */
    uint64_t *tied; /* rounded: indices of values near a tie */
    double *ties;   /* per tie: magnitude per |w| that covers rounding either way */
    uint64_t tied_count;
    double factor; /* factor of the norm, or row factor */
} kept_vector;

struct ref_kept {
    arena *arena;
    uint64_t bytes;
    kept_row *rows[BUCKETS], spare; /* spare: a row that does not fit */
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

static uint64_t segments(uint64_t count)
{
    return (count + SEGMENT - 1) / SEGMENT;
}

static const kept_row *decoded_row(const problem *p, ref_run run, uint64_t count, bool rounded,
                                   bool minima)
{
    ref_kept *kept = p->kept;
    kept_row **at = &kept->rows[hash(run) % BUCKETS], *row = &kept->spare;
    uint64_t bytes = count * sizeof(float);
    while (*at && !is_run((*at)->run, (*at)->count, run, count))
        at = &(*at)->next;
    if (*at)
        return *at;
    if (kept->bytes + bytes <= MOST_KEPT) {
        kept->bytes += bytes;
        row = *at = arena_zalloc(kept->arena, sizeof *row);
    }
    if (row->count < count) {
        row->values = arena_alloc(kept->arena, bytes);
        row->largest = arena_alloc(kept->arena, segments(count) * sizeof *row->largest);
    }
    row->run = run;
    row->count = count;
    (rounded ? problem_read_rounded : problem_read)(p, run.input, run.first, count, row->values);
    for (uint64_t segment = 0; minima && segment < segments(count); segment++) {
        float largest = 0;
        for (uint64_t i = segment * SEGMENT; i < (segment + 1) * SEGMENT && i < count; i++)
            largest = fabsf(row->values[i]) > largest ? fabsf(row->values[i]) : largest;
        row->largest[segment] = (double)largest;
    }
    return row;
}

/* Error of x / d: roundings of amax / 127, 1 / d and their product, and of x gamma. */
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

/* Reads the values, times gamma with a norm, and the factor of the products. */
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
        v->tied = arena_alloc(kept->arena, count * sizeof *v->tied);
        v->sizes = arena_alloc(kept->arena, segments(count) * sizeof *v->sizes);
    }
    v->run = run;
    v->count = count;
    v->rounded = rounded;
    read_vector(p, v);
    v->tied_count = 0;
    memset(v->sizes, 0, segments(count) * sizeof *v->sizes);
    for (uint64_t first = 0; rounded && first < count; first += Q8_1_VALUES) {
        double q[Q8_1_VALUES], *x = v->x + first, d = ref_round_to_8_bits(x, q);
        for (unsigned i = 0; i < Q8_1_VALUES; i++) {
            if (fabs(x[i] / d - q[i]) > 0.5 - QUANT_ERROR) {
                v->tied[v->tied_count] = first + i;
                v->ties[v->tied_count++] = d / REF_QUANTIZING_TOLERANCE;
            }
            x[i] = d * q[i];
        }
    }
    for (uint64_t i = 0; i < count; i++)
        v->sizes[i / SEGMENT] += fabs(v->x[i]);
    return v;
}

#if defined(__GNUC__)
typedef double doubles __attribute__((vector_size(4 * sizeof(double))));
typedef float floats __attribute__((vector_size(4 * sizeof(float))));
typedef int64_t masks __attribute__((vector_size(4 * sizeof(int64_t))));

/* Adds products, LANES at a time. Returns their number. */
static inline __attribute__((always_inline)) uint64_t add_vectors(const float *w, const double *x,
                                                                  uint64_t count,
                                                                  double sums[LANES],
                                                                  double magnitudes[LANES])
{
    enum { VECTORS = LANES * sizeof(double) / sizeof(doubles), SIZE = LANES / VECTORS };
    doubles sum[VECTORS] = { 0 }, size[VECTORS] = { 0 }, lost = LOST - (doubles){ 0 };
    uint64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        for (unsigned i = 0; i < VECTORS; i++) {
            floats weights;
            doubles term;
            memcpy(&weights, w + at + i * SIZE, sizeof weights);
            memcpy(&term, x + at + i * SIZE, sizeof term);
            term *= __builtin_convertvector(weights, doubles);
            masks sizes = (masks)term & INT64_MAX, any = (doubles)sizes > 0;
            sum[i] += term;
            size[i] += (doubles)sizes + (doubles)(any & (masks)lost);
        }
    memcpy(sums, sum, sizeof sum);
    memcpy(magnitudes, size, sizeof size);
    return at;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t add_vectors_avx2(const float *w, const double *x,
                                                                 uint64_t count, double sums[LANES],
                                                                 double magnitudes[LANES])
{
    return add_vectors(w, x, count, sums, magnitudes);
}
#endif
#endif

static ref_value add_products(const float *w, const kept_vector *v)
{
    double sums[LANES] = { 0 }, magnitudes[LANES] = { 0 };
    uint64_t at = 0;
#if defined(__GNUC__) && defined(__x86_64__)
    at = __builtin_cpu_supports("avx2") ? add_vectors_avx2(w, v->x, v->count, sums, magnitudes)
                                        : add_vectors(w, v->x, v->count, sums, magnitudes);
#elif defined(__GNUC__)
    at = add_vectors(w, v->x, v->count, sums, magnitudes);
#endif
    for (; at < v->count; at++) {
        double term = (double)w[at] * v->x[at];
        sums[0] += term;
        magnitudes[0] += fabs(term) + ref_lost(term);
    }
    for (uint64_t i = 0; i < v->tied_count; i++)
        magnitudes[0] += fabs((double)w[v->tied[i]]) * v->ties[i];
    ref_value sum = { 0, 0 };
    for (int i = 0; i < LANES; i++) {
        sum.value += sums[i];
        sum.magnitude += magnitudes[i];
    }
    return sum;
}

/* The norm's factor has errors from a sum of squares and a reciprocal root. */
enum { NORM_MAGNITUDE = 3 };

/* Products with float weights do not round x. With weight blocks, x is rounded to 8 bits unless it
 * is 8-bit already. The weights are rounded if their format does so. */
static ref_value dot(const problem *p, ref_run weights, ref_run x, uint64_t k)
{
    bool blocks = formats[p->input_formats[weights.input]].block_values > 1;
    bool rounded = p->quantizes && blocks;
    bool integers = rounded || (blocks && formats[p->input_formats[x.input]].block_values > 1);
    const kept_vector *v = vector_of(p, x, k, rounded);
    bool minima = integers && ref_has_minima(p->input_formats[weights.input]);
    const kept_row *w = decoded_row(p, weights, k, integers, minima);
    ref_value sum = add_products(w->values, v);
    /* Each term of a weight d q - m may be far larger than the weight, and is rounded. Together
     * they are at most |w| + 2 m, and m is about the largest of 32 weights. */
    for (uint64_t i = 0; minima && i < segments(v->count); i++)
        sum.magnitude += 2 * w->largest[i] * v->sizes[i];
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
