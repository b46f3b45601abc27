/* References that work on rows: embeddings, norms, quantized rows, softmax. */
#include <float.h>
#include <math.h>

#include "ref/reference.h"

enum { BLOCK = 256 }; /* a multiple of every format's block size */

void ref_embed_rows(const problem *p, unsigned output, uint64_t first, uint64_t count,
                    ref_value *values)
{
    enum { W, TOKENS, POSITIONS };
    float weights[BLOCK];
    double scale = (double)(float)p->options.scale;
    uint64_t k = (uint64_t)p->shape.k, size = formats[p->input_formats[W]].block_values;
    for (uint64_t i = 0, length = (uint64_t)p->options.history; output && i < count; i++) {
        uint64_t row = 0, sequence = (first + i) / length, slot = (first + i) % length;
        while (row + 1 < (uint64_t)p->shape.m && ref_sequence(p, row) != sequence)
            row++;
        uint32_t token = ((const uint32_t *)p->inputs[TOKENS])[row];
        uint32_t position = ((const uint32_t *)p->inputs[POSITIONS])[row];
        bool stored = token < p->shape.n && position != UINT32_MAX && position % length == slot;
        values[i] = (ref_value){ token, stored ? 0 : HUGE_VAL };
    }
    for (uint64_t i = 0, run; !output && i < count; i += run) {
        uint64_t column = (first + i) % k, ahead = column % size; /* offset in its block */
        uint32_t token = ((const uint32_t *)p->inputs[TOKENS])[(first + i) / k];
        run = BLOCK - ahead;
        run = k - column < run ? k - column : run;
        run = count - i < run ? count - i : run;
        if (token < p->shape.n)
            problem_read(p, W, token * k + column - ahead, (ahead + run + size - 1) / size * size,
                         weights);
        for (uint64_t j = 0; j < run; j++) {
            double w = token < p->shape.n ? (double)weights[ahead + j] : NAN;
            double value = scale > 0 ? w * scale : w;
            values[i + j] = (ref_value){ value, scale > 0 ? fabs(value) + FLT_MIN : 0 };
        }
    }
}

void ref_fit_tokens(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    if (input == 2) { /* positions */
        ((uint32_t *)bytes)[values / 2] |= values > 1 ? UINT32_MAX : 0;
        return;
    }
    uint32_t *tokens = bytes, n = (uint32_t)p->shape.n;
    for (uint64_t i = 0; i < values; i++)
        tokens[i] %= n;
    if (values > 1)
        tokens[values - 1] = n;
    if (values > 2)
        tokens[1] = UINT32_MAX;
}

/* Numbers of an RMS norm's inputs. */
typedef struct norm_inputs {
    unsigned gamma, next_gamma, x, h, out_scale;
} norm_inputs;

static norm_inputs inputs_of(const problem *p)
{
    bool second = p->options.residual == RESIDUAL_POST_AND_PRE_NORM;
    unsigned next = p->options.gamma == GAMMA_INPUT, x = next + second;
    return (norm_inputs){ .next_gamma = next, .x = x, .h = x + 1, .out_scale = x + 2 };
}

static double gamma_of(const problem *p, uint64_t element)
{
    uint64_t groups = p->shape.num_groups ? (uint64_t)p->shape.num_groups : 1;
    element %= groups * (uint64_t)p->shape.k;
    return p->options.gamma == GAMMA_INPUT ? problem_read_one(p, inputs_of(p).gamma, element) : 1;
}

/* 1 / sqrt(mean(x^2) + epsilon), and its relative error in units of the values' relative errors.
 * For errors m_i of x_i, sum x_i m_i / sum x_i^2 is at most the root of sum m_i^2 / sum x_i^2. */
typedef struct norm_factor {
    double value, doubt;
} norm_factor;

static norm_factor factor_of(const problem *p, double squares, double magnitudes)
{
    double k = (double)p->shape.k, divisor = squares / k + p->options.epsilon;
    if (!(squares <= (double)FLT_MAX))
        return (norm_factor){ NAN, NAN };
    return (norm_factor){ 1 / sqrt(divisor), sqrt(magnitudes / k / divisor) };
}

/* Roundings of a factor, of a scale in it, and of two multiplications by it. */
enum { ROUNDINGS = 4 };

static ref_value times(ref_value x, norm_factor f, double gamma)
{
    double scale = fabs(f.value * gamma);
    return (ref_value){ x.value * f.value * gamma,
                        scale * (x.magnitude + (ROUNDINGS + f.doubt) * fabs(x.value)) + FLT_MIN };
}

static norm_factor factor_of_input(const problem *p, unsigned input, uint64_t row)
{
    float x[BLOCK];
    uint64_t k = (uint64_t)p->shape.k;
    double squares = 0;
    for (uint64_t at = 0, run; at < k; at += run) {
        run = k - at < BLOCK ? k - at : BLOCK;
        problem_read(p, input, row * k + at, run, x);
        for (uint64_t i = 0; i < run; i++)
            squares += (double)x[i] * (double)x[i];
    }
    return factor_of(p, squares, squares);
}

static double scale_of(const problem *p)
{
    return p->options.scale > 0 ? (double)(float)p->options.scale : 1;
}

/* Returns an element of h_out, or of x if there is no h_out. */
static ref_value hidden(const problem *p, norm_factor of_x, uint64_t element)
{
    double value = problem_read_one(p, inputs_of(p).x, element);
    ref_value x = { value, fabs(value) };
    if (p->options.residual == RESIDUAL_NONE)
        return x;
    double h = problem_read_one(p, inputs_of(p).h, element), scale = scale_of(p);
    ref_value sum = { h + scale * value, fabs(h + scale * value) };
    if (p->options.residual != RESIDUAL_ADD) {
        ref_value normed = times(x, of_x, scale * gamma_of(p, element));
        sum = (ref_value){ h + normed.value, fabs(h) + normed.magnitude };
    }
    if (!p->options.out_scale)
        return sum;
    double factor = problem_read_one(p, inputs_of(p).out_scale, 0), product = sum.value * factor;
    return (ref_value){ product, sum.magnitude * fabs(factor) + fabs(product) + FLT_MIN };
}

/* Outputs are y and h_out; with POST_NORM only h_out. */
void ref_rms_norm(const problem *p, unsigned output, uint64_t first, uint64_t count,
                  ref_value *values)
{
    int64_t residual = p->options.residual;
    norm_inputs inputs = inputs_of(p);
    bool is_h_out = output == 1 || residual == RESIDUAL_POST_NORM;
    bool normed_first = residual >= RESIDUAL_POST_NORM;
    uint64_t k = (uint64_t)p->shape.k, row = UINT64_MAX;
    norm_factor of_x = { 1, 0 }, of_hidden = { 1, 0 };
    for (uint64_t i = 0; i < count; i++) {
        if ((first + i) / k != row) {
            row = (first + i) / k;
            of_x = normed_first ? factor_of_input(p, inputs.x, row) : of_x;
            double squares = 0, magnitudes = 0;
            for (uint64_t j = 0; !is_h_out && j < k; j++) {
                ref_value h = hidden(p, of_x, row * k + j);
                squares += h.value * h.value;
                magnitudes += h.magnitude * h.magnitude;
            }
            of_hidden = factor_of(p, squares, magnitudes);
        }
        values[i] = hidden(p, of_x, first + i);
        if (!is_h_out)
            values[i] = times(values[i], of_hidden,
                              normed_first ? problem_read_one(p, inputs.next_gamma, (first + i) % k)
                                           : gamma_of(p, first + i));
    }
}

void ref_per_layer_rows(const problem *p, unsigned output, uint64_t first, uint64_t count,
                        ref_value *values)
{
    enum { W, A, LAYER_GAMMA, TOKENS, MOST_OF_LAYER = 1024 };
    float weights[MOST_OF_LAYER + 2 * BLOCK];
    problem group = *p; /* rows of a are the layers of tokens */
    group.shape.k = p->shape.per_layer;
    uint64_t m = (uint64_t)p->shape.m, k = (uint64_t)p->shape.k, width = (uint64_t)group.shape.k;
    uint64_t size = formats[p->input_formats[W]].block_values, last = UINT64_MAX, ahead = 0;
    double factor = p->options.factor > 0 ? (double)(float)p->options.factor : 1;
    norm_factor norm = { 1, 0 };
    (void)output;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = (first + i) / width, column = (first + i) % width;
        uint64_t layer = number / m, row = number % m, a = row * k + layer * width;
        uint32_t token = ((const uint32_t *)p->inputs[TOKENS])[row];
        if (number != last && token < p->shape.n) {
            ahead = layer * width % size; /* offset of the layer in its block */
            problem_read(p, W, token * k + layer * width - ahead,
                         (ahead + width + size - 1) / size * size, weights);
            norm = factor_of_input(&group, A, a / width);
        }
        last = number;
        double x = problem_read_one(p, A, a + column);
        double w = token < p->shape.n ? scale_of(p) * (double)weights[ahead + column] : NAN;
        ref_value normed =
            times((ref_value){ x, 0 }, norm, problem_read_one(p, LAYER_GAMMA, column));
        double y = (normed.value + w) * factor;
        values[i] = (ref_value){ y, (normed.magnitude + fabs(w)) * factor + fabs(y) + FLT_MIN };
    }
}

void ref_layer_norm(const problem *p, unsigned output, uint64_t first, uint64_t count,
                    ref_value *values)
{
    enum { LAYER_GAMMA, LAYER_BETA };
    (void)output;
    uint64_t k = (uint64_t)p->shape.k, row = UINT64_MAX;
    unsigned input = p->options.bias ? 2 : 1;
    double mean = 0, mean_magnitude = 0;
    norm_factor factor = { 1, 0 }; /* for differences to the mean */
    for (uint64_t i = 0; i < count; i++) {
        if ((first + i) / k != row) {
            double squares = 0, magnitudes = 0;
            row = (first + i) / k;
            mean = mean_magnitude = 0;
            for (uint64_t j = 0; j < k; j++) {
                double x = problem_read_one(p, input, row * k + j);
                mean += x / (double)k;
                mean_magnitude += fabs(x) / (double)k;
            }
            for (uint64_t j = 0; j < k; j++) {
                double x = problem_read_one(p, input, row * k + j);
                squares += (x - mean) * (x - mean);
                magnitudes += (fabs(x) + mean_magnitude) * (fabs(x) + mean_magnitude);
            }
            factor = fabs(mean) * (double)k <= (double)FLT_MAX ? factor_of(p, squares, magnitudes)
                                                               : (norm_factor){ NAN, NAN };
        }
        double x = problem_read_one(p, input, first + i);
        uint64_t column = (first + i) % k;
        ref_value distance = { x - mean, fabs(x) + mean_magnitude };
        values[i] = times(distance, factor, problem_read_one(p, LAYER_GAMMA, column));
        if (p->options.bias) {
            double beta = problem_read_one(p, LAYER_BETA, column);
            values[i].value += beta;
            values[i].magnitude += fabs(beta);
        }
    }
}

/* Inputs of f16 and q8 rows. */
enum { X, GAMMA };

/* Computes up to BLOCK values of a row of x, times gamma with a norm. Returns their number. */
static uint64_t scale_x(const problem *p, uint64_t element, uint64_t count, double *values)
{
    float x[BLOCK], gamma[BLOCK];
    uint64_t column = element % (uint64_t)p->shape.k, left = (uint64_t)p->shape.k - column;
    count = count < left ? count : left;
    count = count < BLOCK ? count : BLOCK;
    problem_read(p, X, element, count, x);
    if (p->options.norm)
        problem_read(p, GAMMA, column, count, gamma);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (double)(p->options.norm ? x[i] * gamma[i] : x[i]);
    return count;
}

/* Returns the power of two that scales a row to f16. Infinity counts as 2^128; NaN: any. */
static double power_of_row(const problem *p, uint64_t row)
{
    enum { LARGEST = 14, LEAST = -112, OF_INFINITY = 128 };
    double largest = 0, scaled[BLOCK];
    uint64_t k = (uint64_t)p->shape.k;
    int exponent;
    for (uint64_t at = 0, run; at < k; at += run) {
        run = scale_x(p, row * k + at, k - at, scaled);
        for (uint64_t i = 0; i < run; i++)
            largest = fabs(scaled[i]) > largest || isnan(scaled[i]) ? fabs(scaled[i]) : largest;
    }
    if (largest >= 1 && largest < 0x1p15)
        return 1;
    if (!isfinite(largest))
        return ldexp(1, LARGEST - OF_INFINITY);
    frexp(largest, &exponent);
    exponent = largest > 0 && exponent - 1 > LEAST ? exponent - 1 : LEAST;
    return ldexp(1, LARGEST - exponent);
}

/* Computes values of rows (output 0) or their factors. */
static void scaled_rows(const problem *p, unsigned output, uint64_t first, uint64_t count,
                        bool halves, ref_value *values)
{
    uint64_t k = output ? 1 : (uint64_t)p->shape.k, last = UINT64_MAX;
    norm_factor factor = { 1, 0 }; /* factor of the norm */
    double power = 1, scaled[BLOCK];
    for (uint64_t at = 0, run; at < count; at += run) {
        run = output ? 1 : scale_x(p, first + at, count - at, scaled);
        if ((first + at) / k != last && (halves || output)) {
            last = (first + at) / k;
            power = halves ? power_of_row(p, last) : 1;
            factor = p->options.norm ? factor_of_input(p, X, last) : factor;
        }
        for (uint64_t i = 0; i < run; i++) {
            double value = output ? factor.value / power : scaled[i] * power;
            values[at + i] = (ref_value){ value, fabs(value) * (1 + factor.doubt) };
        }
    }
}

void ref_f16_rows(const problem *p, unsigned output, uint64_t first, uint64_t count,
                  ref_value *values)
{
    scaled_rows(p, output, first, count, true, values);
}

void ref_q8_rows(const problem *p, unsigned output, uint64_t first, uint64_t count,
                 ref_value *values)
{
    scaled_rows(p, output, first, count, false, values);
}

/* The error of scale x - max is relative, and changes exp and the sum accordingly. */
void ref_softmax(const problem *p, unsigned output, uint64_t first, uint64_t count,
                 ref_value *values)
{
    static const double flushed = 1e-37 / 1e-7; /* for weights that are subnormal in f32 */
    uint64_t k = (uint64_t)p->shape.k, row = UINT64_MAX;
    double scale = scale_of(p), max = 0, sum = 0, distance = 0; /* weighted mean of max - scale x */
    (void)output;
    for (uint64_t i = 0; i < count; i++) {
        if ((first + i) / k != row) {
            row = (first + i) / k;
            max = -HUGE_VAL;
            sum = distance = 0;
            for (uint64_t j = 0; j < k; j++)
                max = fmax(max, problem_read_one(p, 0, row * k + j));
            for (uint64_t j = 0; j < k; j++) {
                double below = scale * (problem_read_one(p, 0, row * k + j) - max);
                double weight = exp(below);
                sum += weight;
                distance -= weight > 0 ? weight * below : 0;
            }
            distance /= sum;
        }
        double below = scale * (problem_read_one(p, 0, first + i) - max);
        double weight = exp(below) / sum, moved = weight > 0 ? weight * fabs(below) : 0;
        values[i] = (ref_value){ weight, weight * (1 + distance) + moved + flushed };
    }
}

static ref_value transposed(const problem *p, uint64_t element)
{
    uint64_t n = (uint64_t)p->shape.n, k = (uint64_t)p->shape.k;
    uint64_t matrix = element / (n * k), column = element / n % k, row = element % n;
    return (ref_value){ problem_read_one(p, 0, matrix * n * k + row * k + column), 0 };
}
REF_BY_ELEMENT(ref_transpose, transposed)
