/* Short convolutions, see ref_short_conv in reference.h. */
#include <float.h>
#include <math.h>

#include "ref/recurrent.h"
#include "ref/reference.h"

enum { X, CONV, POSITIONS, BIAS }; /* inputs */
enum { OUTPUT_Y, OUTPUT_CONVS };

/* Returns v = b u or u of a row's channel. */
static double product_of(const recurrence *r, uint64_t row, uint64_t channel)
{
    uint64_t b = row * r->columns + channel;
    if (r->p->options.conv_form != CONV_GATED)
        return problem_read_one(r->p, X, b);
    return problem_read_one(r->p, X, b) * problem_read_one(r->p, X, b + 2 * r->channels);
}

static ref_value convolved(const recurrence *r, uint64_t row, uint64_t channel)
{
    uint64_t position = recurrence_position(r, row), start = recurrence_first_row(r, row);
    ref_value sum = { 0, 0 };
    for (uint64_t back = 0; back < r->taps; back++) {
        double w = problem_read_one(r->p, CONV, channel * r->taps + r->taps - 1 - back), v = 0;
        if (back <= row - start)
            v = product_of(r, row - back, channel);
        else if (back <= position)
            v = recurrence_before(
                r, OUTPUT_CONVS,
                (ref_sequence(r->p, row) * DELTA_RING + (position - back) % DELTA_RING) *
                        r->channels +
                    channel);
        sum.value += w * v;
        sum.magnitude += 2 * fabs(w * v); /* v and the sum are rounded */
    }
    return sum;
}

static ref_value y_value(const recurrence *r, uint64_t element)
{
    uint64_t row = element / r->channels, channel = element % r->channels;
    double c = problem_read_one(r->p, X, row * r->columns + r->channels + channel);
    if (!recurrence_uses(r, row))
        return (ref_value){ 0, 0 };
    ref_value w = convolved(r, row, channel);
    if (r->p->options.conv_form != CONV_GATED) {
        double bias = problem_read_one(r->p, BIAS, channel);
        return ref_silu(ref_sum(w, (ref_value){ bias, fabs(bias) }));
    }
    return (ref_value){ c * w.value, fabs(c) * w.magnitude + fabs(c * w.value) + FLT_MIN };
}

/* A slot has the f32 product of the last row at its position, else what it had. */
static ref_value ring_value(const recurrence *r, uint64_t element)
{
    uint64_t of_ring = DELTA_RING * r->channels, sequence = element / of_ring;
    uint64_t slot = element % of_ring / r->channels, channel = element % r->channels;
    double value = recurrence_before(r, OUTPUT_CONVS, element);
    for (uint64_t row = 0; row < (uint64_t)r->p->shape.m; row++)
        if (ref_sequence(r->p, row) == sequence && recurrence_uses(r, row) &&
            recurrence_position(r, row) % DELTA_RING == slot)
            value = (double)(float)product_of(r, row, channel);
    return (ref_value){ value, 0 };
}

void ref_short_conv(const problem *p, unsigned output, uint64_t first, uint64_t count,
                    ref_value *values)
{
    uint64_t n = (uint64_t)p->shape.n;
    recurrence r = { .p = p,
                     .positions = POSITIONS,
                     .x = X,
                     .conv = CONV,
                     .convs = OUTPUT_CONVS,
                     .columns = (p->options.conv_form == CONV_GATED ? 3 : 2) * n,
                     .channels = n,
                     .taps = (uint64_t)p->shape.conv_kernel };
    for (uint64_t i = 0; i < count; i++)
        values[i] = output == OUTPUT_Y ? y_value(&r, first + i) : ring_value(&r, first + i);
}
