/* RoPE with optional norms of q, k and v, and the K and V rows of caches.
 *
 * Angles are in turns, of which only the fraction matters, in long double: with 64 bits of
 * mantissa, position 2^32 is accurate to 2^-32 of a turn. YaRN follows llama.cpp: Peng et al.,
 * "YaRN: Efficient Context Window Extension of Large Language Models".
 *
 * Error bounds. An angle error of e moves a pair (a, b) by at most e (|a| + |b|). The magnitude is
 * |a| + |b| times that of cos and sin and the temperature. Kernel frequencies are doubles, or have
 * 47 bits if divided by factors: e grows with the position from 2^28, or 2^24, on. A norm after RoPE
 * divides by a root whose relative error is at most the mean of the values' errors, weighted by the
 * values. Gates, and V without a norm, are copied, so their magnitude is 0. */
#include <math.h>
#include <stdbool.h>

#include "ref/quant.h"
#include "ref/reference.h"

enum { OUTPUT_Q, OUTPUT_K, OUTPUT_V, OUTPUT_GATE };
enum { QKV, K_ROWS = QKV, V_ROWS }; /* inputs; positions, norm weights and factors follow */
static const long double TWO_PI = 6.283185307179586476925286766559005768L;
static const double LEAST_RAMP = 0.001;
static const double EXACT_POSITIONS = 0x1p28, EXACT_DIVIDED_POSITIONS = 0x1p24;
static const float LARGEST_FACTOR = 64, NO_TURN_FACTOR = 1e30f;

/* Returns the pair that makes b turns over the original context. */
static double pair_of_turns(const rope_options *o, double b)
{
    return (double)o->dims * log(o->original_context / ((double)TWO_PI * b)) / (2 * log(o->base));
}

static double scaling_of(const rope_options *o, uint64_t pair)
{
    if (o->scaling == ROPE_UNSCALED)
        return 1;
    if (o->scaling == ROPE_LINEAR)
        return 1 / o->factor;
    double low = fmax(0, floor(pair_of_turns(o, o->beta_fast)));
    double high = fmin((double)o->dims - 1, ceil(pair_of_turns(o, o->beta_slow)));
    double ramp = ((double)pair - low) / fmax(LEAST_RAMP, high - low);
    double mix = (1 - fmin(fmax(ramp, 0), 1)) * o->extension;
    return (1 - mix) / o->factor + mix;
}

rope_angle ref_rope_angle(const rope_options *o, uint64_t pair, double divisor, uint64_t position)
{
    long double turns = powl((long double)o->base, -2 * (long double)pair / (long double)o->dims);
    turns *= (long double)scaling_of(o, pair) / TWO_PI / (long double)divisor;
    if (o->sections[0] + o->sections[1] + o->sections[2] &&
        pair / ROPE_AXES >= (uint64_t)o->sections[pair % ROPE_AXES])
        turns = 0;
    turns *= (long double)position;
    turns -= roundl(turns);
    double magnitude = o->magnitude > 0 ? o->magnitude : 1;
    if (!isfinite(divisor))
        return (rope_angle){ NAN, NAN };
    return (rope_angle){ magnitude * (double)cosl(turns * TWO_PI),
                         magnitude * (double)sinl(turns * TWO_PI) };
}

double ref_rope_temperature(const rope_options *o, uint64_t position)
{
    if (!(o->temperature_length > 0))
        return 1;
    return 1 + o->temperature_scale * log(1 + floor((double)position / o->temperature_length));
}

static uint32_t position_of(const problem *p, unsigned positions, uint64_t row)
{
    return ((const uint32_t *)p->inputs[positions])[row];
}

bool ref_row_at(const problem *p, unsigned positions, uint64_t cache_row, uint64_t *row,
                uint64_t *head)
{
    *head = cache_row / ref_page_rows(p) % (uint64_t)problem_cache_heads(&p->shape);
    for (*row = 0; *row < (uint64_t)p->shape.m; ++*row) {
        uint32_t position = position_of(p, positions, *row);
        if (position < (uint64_t)p->shape.max_seq_len &&
            ref_cache_row(p, ref_sequence(p, *row), *head, position) == cache_row)
            return true;
    }
    return false;
}

/* Returns true if K and V are separate inputs, without q. */
static bool is_kv_only(const problem *p)
{
    return p->shape.num_heads == 0;
}

static unsigned positions_of(const problem *p)
{
    return is_kv_only(p) && !p->options.v_from_k ? V_ROWS + 1 : QKV + 1;
}

/* Returns the input of the norm weights of q (output 0) or of k. */
static unsigned norm_of(const problem *p, unsigned output)
{
    return positions_of(p) + (output == OUTPUT_Q || is_kv_only(p) ? 1 : 2);
}

/* Reads a head of q, K or V, or a gate. A gated head of q is followed by its gate. */
static void read_head(const problem *p, unsigned output, uint64_t row, uint64_t head,
                      ref_value *values)
{
    const problem_options *o = &p->options;
    uint64_t dim = (uint64_t)p->shape.head_dim, pitch = o->gated ? 2 : 1;
    uint64_t q_heads = (uint64_t)p->shape.num_heads * pitch;
    uint64_t kv_heads = o->q_alone ? 0 : (uint64_t)p->shape.num_kv_heads;
    uint64_t v_after = o->v_from_k ? 0 : kv_heads; /* from a head of K to that of V */
    unsigned input = QKV;
    uint64_t place = row * (q_heads + kv_heads + v_after);
    if (is_kv_only(p)) {
        input = output == OUTPUT_V && !o->v_from_k ? V_ROWS : K_ROWS;
        place = row * kv_heads + head;
    } else if (output == OUTPUT_Q || output == OUTPUT_GATE) {
        place += head * pitch + (output == OUTPUT_GATE);
    } else {
        place += q_heads + head + (output == OUTPUT_V ? v_after : 0);
    }
    ref_read(p, input, place * dim, dim, values);
}

static double squares_of(const problem *p, const ref_value *x)
{
    double squares = 0;
    for (int64_t d = 0; d < p->shape.head_dim; d++)
        squares += x[d].value * x[d].value;
    return squares;
}

/* Applies the norm of q, K or V to a head, or that of all heads of its row. */
static void norm_head(const problem *p, unsigned output, uint64_t row, uint64_t head, ref_value *x)
{
    uint64_t dim = (uint64_t)p->shape.head_dim, count = 1, first = 0;
    bool is_v = output == OUTPUT_V, after = !is_v && p->options.qk_norm == HEADS_NORM_AFTER;
    double squares = squares_of(p, x), errors = 0;
    if (!is_v && p->options.qk_norm == HEADS_NORM_ROW) {
        count = (uint64_t)(output == OUTPUT_Q ? p->shape.num_heads : p->shape.num_kv_heads);
        first = head * dim;
        squares = 0;
        for (uint64_t other = 0; other < count; other++) {
            ref_value values[PROBLEM_MOST_HEAD_DIM];
            read_head(p, output, row, other, values);
            squares += squares_of(p, values);
        }
    }
    for (uint64_t d = 0; d < dim; d++)
        errors += fabs(x[d].value) * x[d].magnitude;
    double root = sqrt(squares / (double)(count * dim) + p->options.epsilon);
    for (uint64_t d = 0; d < dim; d++) {
        double weight = is_v ? 1 : problem_read_one(p, norm_of(p, output), first + d);
        double value = x[d].value / root * weight, magnitude = fabs(value);
        if (after && !isfinite(squares))
            value = NAN;
        else if (after && squares > 0)
            magnitude =
                (x[d].magnitude + fabs(x[d].value) * errors / squares) / root * fabs(weight);
        x[d] = (ref_value){ value, magnitude };
    }
}

void ref_turn(const problem *p, const rope_options *o, unsigned factors, uint64_t position,
              ref_value *values)
{
    bool norm = o->style == ROPE_NORM;
    double exact = o->factors ? EXACT_DIVIDED_POSITIONS : EXACT_POSITIONS;
    for (uint64_t pair = 0; o->style != ROPE_NONE && pair < (uint64_t)o->dims / 2; pair++) {
        uint64_t first = norm ? 2 * pair : pair;
        uint64_t second = norm ? first + 1 : pair + (uint64_t)o->dims / 2;
        double divisor = o->factors ? problem_read_one(p, factors, pair) : 1;
        rope_angle by = ref_rope_angle(o, pair, divisor, position);
        double error = fmax(1, (double)position / exact) * hypot(by.cos, by.sin);
        ref_value a = values[first], b = values[second];
        double size = (a.magnitude + b.magnitude) * error;
        values[first] = (ref_value){ a.value * by.cos - b.value * by.sin, size };
        values[second] = (ref_value){ a.value * by.sin + b.value * by.cos, size };
    }
}

/* Multiplies a head of q (output 0) by its temperature. */
static void warm_head(const problem *p, unsigned output, uint64_t position, ref_value *values)
{
    double temperature = output == OUTPUT_Q ? ref_rope_temperature(&p->options.rope, position) : 1;
    for (int64_t d = 0; d < p->shape.head_dim; d++) {
        values[d].value *= temperature;
        values[d].magnitude *= temperature;
    }
}

/* Computes head_dim values of an output from a head of a row of the input. */
static void head_values(const problem *p, unsigned output, uint64_t number, ref_value *values)
{
    const problem_options *o = &p->options;
    uint64_t row, head;
    unsigned positions = positions_of(p);
    if (o->q_alone && output)
        output = OUTPUT_GATE;
    bool turns = output == OUTPUT_Q || output == OUTPUT_K, is_written;
    if (output == OUTPUT_Q || output == OUTPUT_GATE) {
        row = number / (uint64_t)p->shape.num_heads;
        head = number % (uint64_t)p->shape.num_heads;
        is_written = position_of(p, positions, row) != UINT32_MAX;
    } else {
        is_written = ref_row_at(p, positions, number, &row, &head);
    }
    for (int64_t d = 0; d < p->shape.head_dim; d++)
        values[d] = (ref_value){ 0, HUGE_VAL };
    if (!is_written)
        return;
    read_head(p, output, row, head, values);
    if (!turns) {
        for (int64_t d = 0; d < p->shape.head_dim; d++)
            values[d].magnitude = 0;
        if (output == OUTPUT_V && o->v_norm)
            norm_head(p, output, row, head, values);
        return;
    }
    uint32_t position = position_of(p, positions, row);
    if (o->qk_norm && o->qk_norm != HEADS_NORM_AFTER)
        norm_head(p, output, row, head, values);
    /* Factors follow the norm weights. */
    unsigned before = o->qk_norm ? norm_of(p, o->q_alone ? OUTPUT_Q : OUTPUT_K) : positions_of(p);
    ref_turn(p, &o->rope, before + 1, position, values);
    if (o->qk_norm == HEADS_NORM_AFTER)
        norm_head(p, output, row, head, values);
    warm_head(p, output, position, values);
}

REF_BY_ROWS(ref_rope_kv_write, p->shape.head_dim, head_values)

void ref_kv_write(const problem *p, unsigned output, uint64_t first, uint64_t count,
                  ref_value *values)
{
    ref_rope_kv_write(p, OUTPUT_K + output, first, count, values);
}

/* Makes factors nonzero, and some of them so large that their pairs are not rotated. */
static void fit_factors(const problem *p, float *factors, uint64_t values)
{
    for (uint64_t i = 3; i < values; i += 5)
        factors[i] = NO_TURN_FACTOR;
    for (uint64_t i = 0; i < values; i++)
        if (isfinite(factors[i]) && factors[i] != NO_TURN_FACTOR &&
            !(factors[i] >= 1 && factors[i] < LARGEST_FACTOR))
            factors[i] = 1 + fmodf(fabsf(factors[i]), LARGEST_FACTOR - 1);
    if (p->strange)
        ref_spoil_either(factors, values);
}

void ref_fit_rope(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    uint32_t *positions = bytes;
    if (p->input_formats[input] == FORMAT_F32)
        fit_factors(p, bytes, values);
    else
        for (uint64_t i = 0; i < values; i++)
            positions[i] = p->seq_lens[i] - 1;
}

void ref_fit_turns(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    static const uint32_t limits[] = { 1 << 13, 1, 1 << 20, 0 };
    uint32_t *positions = bytes;
    if (p->input_formats[input] == FORMAT_F32)
        fit_factors(p, bytes, values);
    else
        for (uint64_t i = 0; i < values; i++)
            positions[i] = limits[i % 4] ? positions[i] % limits[i % 4] : positions[i];
}

/* Computes a head of q (output 0) or k without a norm. */
static void rotated_values(const problem *p, unsigned output, uint64_t head, ref_value *values)
{
    unsigned positions = p->shape.num_kv_heads ? 2 : 1;
    uint64_t dim = (uint64_t)p->shape.head_dim;
    uint64_t heads = (uint64_t)(output ? p->shape.num_kv_heads : p->shape.num_heads);
    ref_read(p, output, head * dim, dim, values);
    uint32_t position = position_of(p, positions, head / heads);
    ref_turn(p, &p->options.rope, positions + 1, position, values);
    warm_head(p, output, position, values);
}

REF_BY_ROWS(ref_rope, p->shape.head_dim, rotated_values)
