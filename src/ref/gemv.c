#include <math.h>
#include <stdbool.h>

#include "ref/quant.h"
#include "ref/reference.h"

void ref_add(const problem *p, unsigned input, uint64_t element, ref_value *sum)
{
    double value = problem_read_one(p, input, element);
    sum->value += value;
    sum->magnitude += fabs(value);
}

/* c tanh(y / c). Its slope is 1 - tanh^2, and the slope's own at most 0.77 / c: with an error of e
 * in y, of a magnitude M = e / t, the result is wrong by t times
 *
 *   (1 - tanh^2) M + 0.385 / c t M^2
 *
 * at most, for t <= 2^-19, and by the errors of tanh and of y / c. Of an infinite y the cap would
 * make a number: that is NaN. */
static ref_value capped(ref_value y, double c)
{
    static const double largest_error = 0x1p-19, of_tanh = 2;
    if (!isfinite(y.value))
        return (ref_value){ NAN, NAN };
    double t = tanh(y.value / c);
    return (ref_value){ c * t, (1 - t * t) * y.magnitude +
                                   0.385 / c * largest_error * y.magnitude * y.magnitude +
                                   of_tanh * fabs(c * t) + ref_lost(c * t) };
}

/* Multiplies a sum by the only value of an input. */
static void multiply_by(const problem *p, unsigned input, ref_value *sum)
{
    double factor = problem_read_one(p, input, 0);
    sum->value *= factor;
    sum->magnitude = sum->magnitude * fabs(factor) + ref_lost(sum->value);
}

/* What follows the product: the inputs behind W, x and gamma, and the options. */
static void finish(const problem *p, uint64_t element, ref_value *sum)
{
    enum { FIRST_ADDED = 2 };
    unsigned input = FIRST_ADDED + ref_beside_x(p);
    if (p->options.scaled)
        multiply_by(p, input++, sum);
    if (p->options.bias)
        ref_add(p, input++, element % (uint64_t)p->shape.n, sum);
    if (p->options.scale > 0) {
        sum->value *= p->options.scale;
        sum->magnitude = sum->magnitude * p->options.scale + ref_lost(sum->value);
    }
    if (p->options.residual)
        ref_add(p, input, element, sum);
    if (p->options.softcap > 0)
        *sum = capped(*sum, p->options.softcap);
}

void ref_gemv(const problem *p, unsigned output, uint64_t first, uint64_t count, ref_value *values)
{
    (void)output;
    uint64_t n = (uint64_t)p->shape.n;
    for (uint64_t i = 0; i < count; i++) {
        values[i] = ref_dot_row(p, 0, (first + i) % n, 1, (first + i) / n);
        finish(p, first + i, &values[i]);
    }
}

enum { Q, K, V, QKV_MATRICES }; /* inputs of Q, K and V; without V x is there */

/* A value of Y, whose rows are those of Q, of K, of V. */
static ref_value value_of_qkv(const problem *p, uint64_t element)
{
    const uint64_t rows[QKV_MATRICES] = { (uint64_t)p->shape.n, (uint64_t)p->shape.n_kv,
                                          (uint64_t)p->shape.n_v };
    uint64_t all = rows[Q] + rows[K] + rows[V], row = element % all, vector = element / all;
    unsigned matrix = Q, x = rows[V] ? QKV_MATRICES : V;
    while (row >= rows[matrix])
        row -= rows[matrix++];
    ref_value sum = ref_dot_row(p, matrix, row, x, vector);
    unsigned input = x + 1 + ref_beside_x(p);
    if (p->options.scaled)
        multiply_by(p, input + matrix, &sum);
    if (p->options.bias)
        ref_add(p, input + (p->options.scaled ? x : 0) + matrix, row, &sum);
    return sum;
}

void ref_qkv(const problem *p, unsigned output, uint64_t first, uint64_t count, ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++)
        values[i] = value_of_qkv(p, first + i);
}

enum { FIRST, SECOND, VECTOR }; /* inputs of what has two matrices */

void ref_gemv_pair(const problem *p, unsigned output, uint64_t first, uint64_t count,
                   ref_value *values)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = ref_dot_row(p, output, first + i, VECTOR, 0);
}

double ref_activation(int64_t activation, double g)
{
    switch (activation) {
    case ACTIVATION_GELU:
        return g / (1 + exp(-sqrt(8 / acos(-1)) * (g + 0.044715 * g * g * g))); /* by tanh */
    case ACTIVATION_SWIGLU_OAI:
        g = g > 7 ? 7 : g;
        return g / (1 + exp(-1.702 * g));
    default:
        return g / (1 + exp(-g));
    }
}

double ref_gate_factor(int64_t activation, double u)
{
    if (activation != ACTIVATION_SWIGLU_OAI)
        return u;
    return (u > 7 ? 7 : u < -7 ? -7 : u) + 1;
}

/* Results with a relative error of e in the sums of g and u, that is |dg| <= e G and |du| <= e U
 * with their magnitudes G and U, give
 *
 *   |a(g + dg) (u + du) - a(g) u| <= S e G (|u| + e U) + |a(g)| e U
 *
 * where S bounds the slope of the activation a: 1.0998 of silu and swiglu_oai, 1.129 of gelu. The
 * magnitude is that bound by e, for e <= 2^-19. */
ref_value ref_gated(const problem *p, ref_value g, ref_value u)
{
    static const double largest_error = 0x1p-19;
    double steepest = p->options.activation == ACTIVATION_GELU ? 1.13 : 1.0999;
    double a = ref_activation(p->options.activation, g.value);
    double factor = ref_gate_factor(p->options.activation, u.value);
    if (p->options.activation == ACTIVATION_SWIGLU_OAI && !(isfinite(g.value) && isfinite(u.value)))
        return (ref_value){ NAN, NAN }; /* the limits would make numbers of infinities */
    return (ref_value){ a * factor,
                        steepest * g.magnitude * (fabs(factor) + largest_error * u.magnitude) +
                            fabs(a) * u.magnitude + ref_lost(a * factor) };
}

static ref_value gated_value(const problem *p, uint64_t element)
{
    uint64_t row = element % (uint64_t)p->shape.n, vector = element / (uint64_t)p->shape.n;
    ref_value sums[VECTOR];
    for (unsigned i = FIRST; i < VECTOR; i++) {
        sums[i] = ref_dot_row(p, i, row, VECTOR, vector);
        unsigned input = VECTOR + 1 + ref_beside_x(p);
        if (p->options.scaled)
            multiply_by(p, input + i, &sums[i]);
        if (p->options.bias)
            ref_add(p, input + (p->options.scaled ? VECTOR : 0) + i, row, &sums[i]);
    }
    return ref_gated(p, sums[FIRST], sums[SECOND]);
}

void ref_gate_up_swiglu(const problem *p, unsigned output, uint64_t first, uint64_t count,
                        ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++)
        values[i] = gated_value(p, first + i);
}

void ref_rmsnorm_gemv(const problem *p, unsigned output, uint64_t first, uint64_t count,
                      ref_value *values)
{
    problem normed = *p;
    normed.options.norm = NORM_RMS;
    ref_gemv(&normed, output, first, count, values);
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
