#include <math.h>
#include <stdbool.h>

#include "ref/reference.h"

/* Largest relative error e of a sum, by which magnitudes cover terms in e^2. */
static const double LARGEST_ERROR = 0x1p-19;

void ref_scale(const problem *p, ref_value *sum)
{
    if (!(p->options.scale > 0))
        return;
    sum->value *= p->options.scale;
    sum->magnitude = sum->magnitude * p->options.scale + ref_lost(sum->value);
}

void ref_add(const problem *p, unsigned input, uint64_t element, ref_value *sum)
{
    double value = problem_read_one(p, input, element);
    sum->value += value;
    sum->magnitude += fabs(value);
}

/* Returns c tanh(y / c). The slope is 1 - tanh^2, and its derivative is at most 0.77 / c. With an
 * error of e in y and magnitude M = e / t, the result is off by at most t times
 *
 *   (1 - tanh^2) M + 0.385 / c t M^2
 *
 * for t <= 2^-19, plus the errors of tanh and of y / c. An infinite y gives NaN, since the cap
 * would make it finite. */
static ref_value capped(ref_value y, double c)
{
    static const double of_tanh = 2;
    if (!isfinite(y.value))
        return (ref_value){ NAN, NAN };
    double t = tanh(y.value / c);
    return (ref_value){ c * t, (1 - t * t) * y.magnitude +
                                   0.385 / c * LARGEST_ERROR * y.magnitude * y.magnitude +
                                   of_tanh * fabs(c * t) + ref_lost(c * t) };
}

/* Multiplies a row with a vector of x. Inputs: matrices, x, gamma, factors, biases. */
static ref_value value_of_row(const problem *p, unsigned matrix, unsigned x, uint64_t row,
                              uint64_t vector)
{
    unsigned factor = x + 1 + ref_beside_x(p), bias = factor + (p->options.scaled ? x : 0);
    ref_value sum = ref_dot_row(p, matrix, row, x, vector);
    if (p->options.scaled) {
        double by = problem_read_one(p, factor + matrix, 0);
        sum.value *= by;
        sum.magnitude = sum.magnitude * fabs(by) + ref_lost(sum.value);
    }
    if (p->options.bias)
        ref_add(p, bias + matrix, row, &sum);
    return sum;
}

/* Computes an element of y, whose rows are Q, K, V. */
static ref_value value_of_qkv(const problem *p, uint64_t element)
{
    enum { Q, K, V, QKV_MATRICES }; /* inputs; x is input V if there is no V */
    const uint64_t rows[QKV_MATRICES] = { (uint64_t)p->shape.n, (uint64_t)p->shape.n_kv,
                                          (uint64_t)p->shape.n_v };
    uint64_t all = rows[Q] + rows[K] + rows[V], row = element % all, vector = element / all;
    unsigned matrix = Q;
    while (row >= rows[matrix])
        row -= rows[matrix++];
    return value_of_row(p, matrix, rows[V] ? QKV_MATRICES : V, row, vector);
}
REF_BY_ELEMENT(ref_qkv, value_of_qkv)

enum { FIRST, SECOND, VECTOR }; /* inputs of two products */

void ref_gemv_pair(const problem *p, unsigned output, uint64_t first, uint64_t count,
                   ref_value *values)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = ref_dot_row(p, output, first + i, VECTOR, 0);
}

double ref_activation(int64_t activation, double g)
{
    double cubic = g + 0.044715 * g * g * g, least = g > 7 ? 7 : g;
    double relu = isinf(g) ? NAN : g < 0 ? 0 : g;
    return activation == ACTIVATION_GELU
               ? g / (1 + exp(-sqrt(8 / acos(-1)) * cubic)) /* tanh approximation */
           : activation == ACTIVATION_SWIGLU_OAI ? least / (1 + exp(-1.702 * least))
           : activation == ACTIVATION_GELU_ERF   ? g * erfc(-g / sqrt(2)) / 2
           : activation == ACTIVATION_RELU       ? relu
           : activation == ACTIVATION_RELU2      ? relu * relu
           : activation == ACTIVATION_XIELU      ? NAN
                                                 : g / (1 + exp(-g));
}

double ref_xielu(const float numbers[XIELU_NUMBERS], double x)
{
    double beta = (double)numbers[XIELU_BETA], least = (double)numbers[XIELU_EPSILON];
    if (x > 0)
        return (double)numbers[XIELU_POSITIVE] * x * x + beta * x;
    return (double)numbers[XIELU_NEGATIVE] * (expm1(x > least ? least : x) - x) + beta * x;
}

double ref_gate_factor(const problem_options *o, double u)
{
    double limit = o->activation == ACTIVATION_SWIGLU_OAI ? 7 : o->limit;
    if (limit > 0)
        u = u > limit ? limit : u < -limit ? -limit : u;
    return o->activation == ACTIVATION_SWIGLU_OAI ? u + 1 : u;
}

double ref_gate(const problem_options *o, double g)
{
    double a = ref_activation(o->activation, g);
    return o->limit > 0 && a > o->limit ? o->limit : a;
}

/* Returns a slope's bound: 1.0998 for silu, swiglu_oai, 1.129 for gelu, 2 g for relu2. */
static double steepest_slope(const problem *p, int64_t activation, ref_value g)
{
    double off = LARGEST_ERROR * g.magnitude, above = fmax(g.value, 0) + off;
    switch (activation) {
    case ACTIVATION_GELU:
    case ACTIVATION_GELU_ERF:
        return 1.13;
    case ACTIVATION_RELU2:
        return 2 * above;
    case ACTIVATION_XIELU:
        return 2 * fabs((double)p->xielu[XIELU_POSITIVE]) * above +
               fabs((double)p->xielu[XIELU_NEGATIVE]) + fabs((double)p->xielu[XIELU_BETA]);
    default:
        return 1.0999;
    }
}

/* Returns the epilogue's activation of y, times the input `times` if there is one. The magnitude
 * covers the error of y, and two of the activation's own value or terms. */
static ref_value activated(const problem *p, unsigned times, uint64_t element, ref_value y)
{
    int64_t activation = p->options.epilogue - 1;
    if (activation < 0)
        return y;
    bool is_xielu = activation == ACTIVATION_XIELU;
    double a = is_xielu ? ref_xielu(p->xielu, y.value) : ref_activation(activation, y.value);
    double slope = steepest_slope(p, activation, y);
    double by = p->options.times ? problem_read_one(p, times, element) : 1;
    double own = 2 * fabs(a) + (is_xielu ? slope * fabs(y.value) : 0);
    return (ref_value){ a * by, (slope * y.magnitude + own) * fabs(by) + ref_lost(a * by) };
}

static ref_value value_of_gemv(const problem *p, uint64_t element)
{
    enum { W, X };
    uint64_t n = (uint64_t)p->shape.n;
    unsigned residual = 2 + ref_beside_x(p) + (p->options.scaled != 0) + (p->options.bias != 0);
    ref_value sum = activated(p, residual + (p->options.residual != 0), element,
                              value_of_row(p, W, X, element % n, element / n));
    ref_scale(p, &sum);
    if (p->options.residual)
        ref_add(p, residual, element, &sum);
    return p->options.softcap > 0 ? capped(sum, p->options.softcap) : sum;
}
REF_BY_ELEMENT(ref_gemv, value_of_gemv)

/* With a relative error of e in the sums g and u, i.e. |dg| <= e G and |du| <= e U for magnitudes G
 * and U,
 *
 *   |a(g + dg) (u + du) - a(g) u| <= S e G (|u| + e U) + |a(g)| e U
 *
 * S is the slope's bound. The magnitude is this bound over e, for e <= 2^-19. */
ref_value ref_gated(const problem *p, ref_value g, ref_value u)
{
    const problem_options *o = &p->options;
    double a = ref_gate(o, g.value), factor = ref_gate_factor(o, u.value);
    bool limited = o->activation == ACTIVATION_SWIGLU_OAI || o->limit > 0;
    if (limited && !(isfinite(g.value) && isfinite(u.value)))
        return (ref_value){ NAN, NAN }; /* clamping would make infinities finite */
    return (ref_value){ a * factor, steepest_slope(p, o->activation, g) * g.magnitude *
                                            (fabs(factor) + LARGEST_ERROR * u.magnitude) +
                                        fabs(a) * u.magnitude + ref_lost(a * factor) };
}

static ref_value gated_value(const problem *p, uint64_t element)
{
    uint64_t row = element % (uint64_t)p->shape.n, vector = element / (uint64_t)p->shape.n;
    return ref_gated(p, value_of_row(p, FIRST, VECTOR, row, vector),
                     value_of_row(p, SECOND, VECTOR, row, vector));
}
REF_BY_ELEMENT(ref_gate_up_swiglu, gated_value)

void ref_rmsnorm_gemv(const problem *p, unsigned output, uint64_t first, uint64_t count,
                      ref_value *values)
{
    problem normed = *p;
    normed.options.norm = NORM_RMS;
    ref_gemv(&normed, output, first, count, values);
}

static ref_value value_to_quantize(const problem *p, uint64_t element)
{
    double x = problem_read_one(p, 0, element);
    return (ref_value){ x, fabs(x) };
}
REF_BY_ELEMENT(ref_q8_1_quantize, value_to_quantize)
