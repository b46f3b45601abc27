/* References of elementwise kernels.
 *
 * Magnitudes are the results, since rounding errors are relative to them. An activation x
 * sigmoid(z) also has the error of z, which changes exp(z) by the same relative amount: z is exact
 * for SiLU, a product for swiglu_oai, several products for GELU. Results may be flushed to 0 if
 * they, or their exp, are not normal f32. */
#include <float.h>
#include <math.h>

#include "ref/reference.h"

/* 87 exp(-87) / smallest tolerance. */
static const double FLUSHED = 2e-36 / 1e-7;

static double of_first(const problem *p, uint64_t element)
{
    return problem_read_one(p, 0, element);
}

static double of_second(const problem *p, uint64_t element)
{
    bool one_row = p->options.broadcast == BROADCAST_ROW;
    return problem_read_one(p, 1, one_row ? element % (uint64_t)p->shape.k : element);
}

static ref_value rounded(double value)
{
    return (ref_value){ value, fabs(value) + FLT_MIN };
}

static ref_value activated(int64_t activation, double x)
{
    static const double rounded_once = 0.2; /* 2^-24 / the smallest tolerance, 5e-7, rounded up */
    bool cubed = activation == ACTIVATION_GELU, exact = activation == ACTIVATION_SILU;
    double value = ref_activation(activation, x);
    if (activation > ACTIVATION_SWIGLU_OAI)
        return (ref_value){ value, 1.5 * fabs(value) + FLUSHED };
    double z = fmin(0, (exact ? 1 : 1.702) * x * (1 + (cubed ? 0.044715 * x * x : 0)));
    double off = value == 0 || exact ? 0 : fabs(z) * (cubed ? 1 : rounded_once);
    return (ref_value){ value, fabs(value) * (1 + off) + FLUSHED };
}

static ref_value silu(const problem *p, uint64_t element)
{
    return activated(ACTIVATION_SILU, of_first(p, element));
}

static ref_value gelu(const problem *p, uint64_t element)
{
    bool by_tanh = p->options.approximation == GELU_TANH;
    return activated(by_tanh ? ACTIVATION_GELU : ACTIVATION_GELU_ERF, of_first(p, element));
}

static ref_value relu(const problem *p, uint64_t element)
{
    double x = of_first(p, element);
    return (ref_value){ x < 0 ? 0 : x, 0 };
}

static ref_value scaled(const problem *p, uint64_t element)
{
    return rounded((double)(float)p->options.scale * of_first(p, element));
}

static ref_value swiglu(const problem *p, uint64_t element)
{
    int64_t activation = p->options.activation;
    double g = of_first(p, element), u = of_second(p, element);
    bool limited = activation == ACTIVATION_SWIGLU_OAI || p->options.limit > 0;
    if (limited && !(isfinite(g) && isfinite(u)))
        return (ref_value){ NAN, NAN }; /* clamping would make infinities finite */
    double factor = ref_gate_factor(&p->options, u), value = ref_gate(&p->options, g) * factor;
    return (ref_value){ value, activated(activation, g).magnitude * fabs(factor) + FLT_MIN };
}

static ref_value sum(const problem *p, uint64_t element)
{
    return rounded(of_first(p, element) + of_second(p, element));
}

static ref_value multiplied(const problem *p, uint64_t element)
{
    return rounded(of_first(p, element) * of_second(p, element));
}

REF_BY_ELEMENT(ref_silu_rows, silu)
REF_BY_ELEMENT(ref_gelu_rows, gelu)
REF_BY_ELEMENT(ref_relu_rows, relu)
REF_BY_ELEMENT(ref_scale_rows, scaled)
REF_BY_ELEMENT(ref_swiglu_rows, swiglu)
REF_BY_ELEMENT(ref_add_rows, sum)
REF_BY_ELEMENT(ref_multiply_rows, multiplied)

static void convert_block(const problem *p, unsigned output, uint64_t number, ref_value *block)
{
    float decoded[REF_MOST_OF_ROW];
    uint64_t values = formats[p->input_formats[0]].block_values;
    (void)output;
    problem_read(p, 0, number * values, values, decoded);
    for (uint64_t i = 0; i < values; i++)
        block[i] = (ref_value){ (double)decoded[i], 0 };
}

REF_BY_ROWS(ref_convert, formats[p->input_formats[0]].block_values, convert_block)
