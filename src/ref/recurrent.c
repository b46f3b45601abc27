#include "ref/recurrent.h"

#include <math.h>

#include "ref/reference.h"

static const double STEEPEST_SILU = 1.0999;

/* A softplus or decay this small may be 0, which matters if a or the state is huge. */
static const double LOST = 1.7e-38, LEAST_TOLERANCE = 2e-7;

/* The largest tolerance of the families, for the product of two errors. */
static const double MOST_TOLERANCE = 5e-7;

uint32_t recurrence_position(const recurrence *r, uint64_t row)
{
    return ((const uint32_t *)r->p->inputs[r->positions])[row];
}

bool recurrence_uses(const recurrence *r, uint64_t row)
{
    return recurrence_position(r, row) < r->p->shape.max_seq_len;
}

uint64_t recurrence_first_row(const recurrence *r, uint64_t row)
{
    while (row && recurrence_uses(r, row) &&
           ref_sequence(r->p, row) == ref_sequence(r->p, row - 1) &&
           recurrence_position(r, row) == recurrence_position(r, row - 1) + UINT64_C(1))
        row--;
    return row;
}

bool recurrence_last_row(const recurrence *r, uint64_t sequence, uint64_t *row)
{
    for (*row = (uint64_t)r->p->shape.m; *row > 0;)
        if (ref_sequence(r->p, --*row) == sequence && recurrence_uses(r, *row))
            return true;
    return false;
}

double recurrence_before(const recurrence *r, unsigned output, uint64_t element)
{
    return (double)((const float *)r->p->before[output])[element];
}

ref_value recurrence_state(const recurrence *r, uint64_t row, uint64_t count, uint64_t element)
{
    bool fresh = recurrence_position(r, row) == 0;
    element += ref_sequence(r->p, row) * count;
    return (ref_value){ fresh ? 0 : recurrence_before(r, r->states, element), 0 };
}

/* Returns a channel's convolution input, `back` positions before a row's. */
static double input_of(const recurrence *r, uint64_t start, uint64_t row, uint64_t back,
                       uint64_t channel)
{
    uint64_t position = recurrence_position(r, row);
    if (position < back)
        return 0;
    if (row - start >= back)
        return problem_read_one(r->p, r->x, (row - back) * r->columns + r->first + channel);
    uint64_t slot = ref_sequence(r->p, row) * DELTA_RING + (position - back) % DELTA_RING;
    return recurrence_before(r, r->convs, slot * r->channels + channel);
}

ref_value recurrence_convolved(const recurrence *r, uint64_t start, uint64_t row, uint64_t channel)
{
    double bias = r->p->options.bias ? problem_read_one(r->p, r->bias, channel) : 0;
    ref_value sum = { bias, fabs(bias) };
    for (uint64_t back = 0; back < r->taps; back++) {
        double w = problem_read_one(r->p, r->conv, channel * r->taps + r->taps - 1 - back);
        double term = w * input_of(r, start, row, back, channel);
        sum.value += term;
        sum.magnitude += fabs(term);
    }
    return ref_silu(sum);
}

void recurrence_rings(const recurrence *r, uint64_t first, uint64_t count, ref_value *values)
{
    uint64_t of_ring = DELTA_RING * r->channels;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t sequence = (first + i) / of_ring, within = (first + i) % of_ring;
        values[i] = (ref_value){ recurrence_before(r, r->convs, first + i), 0 };
        for (uint64_t row = 0; row < (uint64_t)r->p->shape.m; row++)
            if (ref_sequence(r->p, row) == sequence && recurrence_uses(r, row) &&
                recurrence_position(r, row) % DELTA_RING == within / r->channels)
                values[i].value = problem_read_one(
                    r->p, r->x, row * r->columns + r->first + within % r->channels);
    }
}

ref_value ref_silu(ref_value x)
{
    double y = x.value / (1 + exp(-x.value));
    return (ref_value){ isinf(x.value) ? NAN : y, STEEPEST_SILU * x.magnitude +
                                                      ROUNDINGS * fabs(y) +
                                                      (1 + fabs(x.value)) * LOST_SIGMOID };
}

/* Returns the change of softplus(alpha + dt) by a rounding of the sum. */
static double softplus_error(double alpha, double dt)
{
    return (fabs(alpha) + fabs(dt)) / (1 + exp(-(alpha + dt)));
}

ref_value ref_softplus(double alpha, double dt)
{
    double t = alpha + dt, soft = fmax(t, 0) + log1p(exp(-fabs(t)));
    if (!isfinite(t))
        return (ref_value){ NAN, NAN };
    return (ref_value){ soft,
                        softplus_error(alpha, dt) + ROUNDINGS * soft + LOST / LEAST_TOLERANCE };
}

ref_value ref_decay(double alpha, double dt, double a)
{
    double soft = ref_softplus(alpha, dt).value, decay = exp(a * soft);
    double error = fabs(a) * softplus_error(alpha, dt) + ROUNDINGS * fabs(a * soft);
    if (!isfinite(soft) || !isfinite(a))
        return (ref_value){ NAN, NAN };
    double without = exp(a * (soft - fmin(soft, LOST)));
    return (ref_value){ decay, decay * (error + ROUNDINGS) +
                                   (fabs(without - decay) + LOST) / LEAST_TOLERANCE };
}

ref_value ref_product(ref_value a, ref_value b)
{
    double value = a.value * b.value, both = MOST_TOLERANCE * a.magnitude * b.magnitude;
    return (ref_value){ value, fabs(value) + fabs(a.value) * b.magnitude +
                                   a.magnitude * fabs(b.value) + both };
}

ref_value ref_sum(ref_value a, ref_value b)
{
    return (ref_value){ a.value + b.value, a.magnitude + b.magnitude };
}

ref_value ref_dot_product(const ref_value *a, const ref_value *b, uint64_t count)
{
    ref_value sum = { 0, 0 };
    for (uint64_t i = 0; i < count; i++)
        sum = ref_sum(sum, ref_product(a[i], b[i]));
    return sum;
}
