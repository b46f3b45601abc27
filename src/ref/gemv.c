#include <math.h>
#include <stdbool.h>

#include "ref/quant.h"
#include "ref/reference.h"

enum { CHUNK = 256 }; /* a whole number of blocks in every format */

/* A row of the matrix that is input number matrix, times a vector of the input number vectors. */
static ref_value dot(const problem *p, unsigned matrix, uint64_t row, unsigned vectors,
                     uint64_t vector)
{
    uint64_t k = (uint64_t)p->shape.k;
    float w[CHUNK], x[CHUNK];
    ref_value sum = { 0, 0 };
    for (uint64_t at = 0; at < k; at += CHUNK) {
        uint64_t count = k - at < CHUNK ? k - at : CHUNK;
        problem_read(p, matrix, row * k + at, count, w);
        problem_read(p, vectors, vector * k + at, count, x);
        for (uint64_t i = 0; i < count; i++) {
            double term = (double)w[i] * (double)x[i];
            sum.value += term;
            sum.magnitude += fabs(term);
        }
    }
    return sum;
}

static void add_value(const problem *p, unsigned input, uint64_t element, ref_value *sum)
{
    float value;
    problem_read(p, input, element, 1, &value);
    sum->value += (double)value;
    sum->magnitude += fabs((double)value);
}

/* The inputs behind W and x. */
static void add_bias_and_residual(const problem *p, uint64_t element, ref_value *sum)
{
    enum { FIRST_ADDED = 2 };
    unsigned input = FIRST_ADDED;
    if (p->bias)
        add_value(p, input++, element % (uint64_t)p->shape.n, sum);
    if (p->residual)
        add_value(p, input, element, sum);
}

void ref_gemv(const problem *p, unsigned output, uint64_t first, uint64_t count, ref_value *values)
{
    (void)output;
    uint64_t n = (uint64_t)p->shape.n;
    for (uint64_t i = 0; i < count; i++) {
        values[i] = dot(p, 0, (first + i) % n, 1, (first + i) / n);
        add_bias_and_residual(p, first + i, &values[i]);
    }
}

/* How far x / d may be off: roundings of amax / 127, 1 / d and their product. */
static const double QUANT_ERROR = Q8_1_LARGEST * 0x1p-21;

static void add_quantized(const float *w, const float *x, ref_value *sum)
{
    double largest = 1e-30;
    for (int i = 0; i < Q8_1_VALUES; i++)
        largest = fmax(largest, fabs((double)x[i]));
    double d = largest / Q8_1_LARGEST;
    for (int i = 0; i < Q8_1_VALUES; i++) {
        double exact = (double)x[i] / d, q = nearbyint(exact), term = (double)w[i] * d * q;
        bool tie = fabs(exact - q) > 0.5 - QUANT_ERROR;
        sum->value += term;
        sum->magnitude +=
            fabs(term) + (tie ? fabs((double)w[i]) * d / REF_QUANTIZING_TOLERANCE : 0);
    }
}

/* As dot, with a vector that is quantized on the way. */
static ref_value dot_quantizing(const problem *p, unsigned matrix, uint64_t row, unsigned vectors,
                                uint64_t vector)
{
    uint64_t k = (uint64_t)p->shape.k;
    float w[CHUNK], x[CHUNK];
    ref_value sum = { 0, 0 };
    for (uint64_t at = 0; at < k; at += CHUNK) {
        uint64_t count = k - at < CHUNK ? k - at : CHUNK;
        problem_read(p, matrix, row * k + at, count, w);
        problem_read(p, vectors, vector * k + at, count, x);
        for (unsigned j = 0; j < count; j += Q8_1_VALUES)
            add_quantized(w + j, x + j, &sum);
    }
    return sum;
}

void ref_gemv_quantizing(const problem *p, unsigned output, uint64_t first, uint64_t count,
                         ref_value *values)
{
    (void)output;
    uint64_t n = (uint64_t)p->shape.n;
    for (uint64_t i = 0; i < count; i++) {
        values[i] = dot_quantizing(p, 0, (first + i) % n, 1, (first + i) / n);
        add_bias_and_residual(p, first + i, &values[i]);
    }
}

enum { FIRST, SECOND, VECTOR }; /* inputs of what has two matrices */

void ref_gemv_pair(const problem *p, unsigned output, uint64_t first, uint64_t count,
                   ref_value *values)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = dot(p, output, first + i, VECTOR, 0);
}

/* Results with a relative error of e in the sums of g and u, that is |dg| <= e G and |du| <= e U
 * with their magnitudes G and U, give
 *
 *   |silu(g + dg) (u + du) - silu(g) u| <= S e G (|u| + e U) + |silu(g)| e U
 *
 * where S = 1.0998 bounds the slope of silu. The magnitude is that bound by e, for e <= 2^-19. */
static ref_value swiglu(ref_value g, ref_value u)
{
    static const double steepest = 1.0999, largest_error = 0x1p-19;
    double silu = g.value / (1 + exp(-g.value));
    return (ref_value){ silu * u.value,
                        steepest * g.magnitude * (fabs(u.value) + largest_error * u.magnitude) +
                            fabs(silu) * u.magnitude };
}

void ref_gate_up_swiglu(const problem *p, unsigned output, uint64_t first, uint64_t count,
                        ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++)
        values[i] =
            swiglu(dot(p, FIRST, first + i, VECTOR, 0), dot(p, SECOND, first + i, VECTOR, 0));
}

void ref_gate_up_swiglu_quantizing(const problem *p, unsigned output, uint64_t first,
                                   uint64_t count, ref_value *values)
{
    (void)output;
    uint64_t n = (uint64_t)p->shape.n;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t row = (first + i) % n, vector = (first + i) / n;
        values[i] = swiglu(dot_quantizing(p, FIRST, row, VECTOR, vector),
                           dot_quantizing(p, SECOND, row, VECTOR, vector));
    }
}

void ref_rmsnorm_gemv(const problem *p, unsigned output, uint64_t first, uint64_t count,
                      ref_value *values)
{
    enum { W, X, GAMMA };
    (void)output;
    uint64_t k = (uint64_t)p->shape.k;
    double squares = 0;
    float w[CHUNK], x[CHUNK], gamma[CHUNK];
    for (uint64_t at = 0; at < k; at += CHUNK) {
        problem_read(p, X, at, CHUNK, x);
        for (uint64_t i = 0; i < CHUNK; i++)
            squares += (double)x[i] * (double)x[i];
    }
    double scale = 1 / sqrt(squares / (double)k + p->epsilon);
    for (uint64_t row = 0; row < count; row++) {
        ref_value sum = { 0, 0 };
        for (uint64_t at = 0; at < k; at += CHUNK) {
            problem_read(p, W, (first + row) * k + at, CHUNK, w);
            problem_read(p, X, at, CHUNK, x);
            problem_read(p, GAMMA, at, CHUNK, gamma);
            for (uint64_t i = 0; i < CHUNK; i++) {
                double term = (double)w[i] * (double)x[i] * (double)gamma[i] * scale;
                sum.value += term;
                sum.magnitude += fabs(term);
            }
        }
        values[row] = sum;
    }
}

void ref_q8_1_quantize(const problem *p, unsigned output, uint64_t first, uint64_t count,
                       ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++) {
        float x;
        problem_read(p, 0, first + i, 1, &x);
        values[i] = (ref_value){ (double)x, fabs((double)x) };
    }
}
