/* What experts give back to the rows that use them, in one step or in two: see reference.h. */
#include <math.h>
#include <string.h>

#include "ref/reference.h"

/* The inputs, by their numbers. */
typedef struct down_inputs {
    unsigned shared, f, bias, residual, weights, list;
} down_inputs;

static down_inputs inputs_of(const problem *p)
{
    down_inputs in = { .shared = 1 };
    in.f = in.shared + (p->shape.n_shared > 0);
    in.bias = in.f + 1;
    in.residual = in.bias + (p->options.bias != 0);
    in.weights = in.residual + (p->options.residual != 0);
    in.list = in.weights + 1;
    return in;
}

/* A row's weight of a slot, or of the shared expert behind them. */
static double weight_of(const problem *p, unsigned weights, uint64_t row, uint64_t slot)
{
    uint64_t of_row = (uint64_t)(p->shape.experts_used + (p->shape.n_shared > 0));
    return problem_read_one(p, weights, row * of_row + slot);
}

static void add_weighted(ref_value *sum, double weight, ref_value term)
{
    double value = weight * term.value;
    sum->value += value;
    sum->magnitude += fabs(weight) * term.magnitude + ref_lost(value);
}

/* The values of a slot of a row, or of the shared expert behind them. */
static ref_run values_of(const problem *p, unsigned f, uint64_t row, uint64_t slot)
{
    uint64_t k = (uint64_t)p->shape.k, used = (uint64_t)p->shape.experts_used;
    return (ref_run){ f, row * (used * k + (uint64_t)p->shape.n_shared) + slot * k };
}

static void add_expert(const problem *p, const down_inputs *in, const uint32_t *entry, uint64_t row,
                       uint64_t column, ref_value *sum)
{
    uint64_t k = (uint64_t)p->shape.k, used = (uint64_t)p->shape.experts_used;
    uint64_t element = (uint64_t)entry[EXPERT_ID] * (uint64_t)p->shape.n + column;
    for (uint32_t i = 0; i < entry[EXPERT_ROWS]; i++) {
        uint32_t word = entry[EXPERT_FIRST_ROW + i];
        if (word / used != row)
            continue;
        if (entry[EXPERT_ID] >= p->shape.experts) {
            *sum = (ref_value){ NAN, NAN };
            continue;
        }
        ref_value dot =
            ref_dot(p, (ref_run){ 0, element * k }, values_of(p, in->f, row, word % used), k);
        if (p->options.bias)
            ref_add(p, in->bias, element, &dot);
        add_weighted(sum, weight_of(p, in->weights, row, word % used), dot);
    }
}

static ref_value down(const problem *p, uint64_t element)
{
    down_inputs in = inputs_of(p);
    uint64_t row = element / (uint64_t)p->shape.n, column = element % (uint64_t)p->shape.n;
    uint64_t shared = (uint64_t)p->shape.n_shared, used = (uint64_t)p->shape.experts_used;
    const uint32_t *list = p->inputs[in.list], *entry = list + EXPERT_LIST_HEAD;
    ref_value sum = { 0, 0 };
    for (uint32_t i = 0; i < list[0]; i++, entry += EXPERT_FIRST_ROW + p->shape.m)
        add_expert(p, &in, entry, row, column, &sum);
    if (shared)
        add_weighted(&sum, weight_of(p, in.weights, row, used),
                     ref_dot(p, (ref_run){ in.shared, column * shared },
                             values_of(p, in.f, row, used), shared));
    if (p->options.scale > 0) {
        sum.value *= p->options.scale;
        sum.magnitude = sum.magnitude * p->options.scale + ref_lost(sum.value);
    }
    if (p->options.residual)
        ref_add(p, in.residual, element, &sum);
    return sum;
}

void ref_expert_down(const problem *p, unsigned output, uint64_t first, uint64_t count,
                     ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++)
        values[i] = down(p, first + i);
}

/* Of inputs W, x, factors and a bias where there are some, and the list. */
static ref_value product(const problem *p, uint64_t element)
{
    uint64_t k = (uint64_t)p->shape.k, n = (uint64_t)p->shape.n;
    uint64_t choice = element / n, column = element % n;
    unsigned bias = 2 + ref_beside_x(p), list = bias + (p->options.bias != 0);
    uint64_t expert = ref_expert_of(p, list, choice);
    if (expert >= (uint64_t)p->shape.experts)
        return (ref_value){ NAN, NAN };
    uint64_t row = expert * (uint64_t)p->shape.plane_rows + column;
    ref_value dot = ref_dot(p, (ref_run){ 0, row * k }, (ref_run){ 1, choice * k }, k);
    if (p->options.bias)
        ref_add(p, bias, expert * n + column, &dot);
    return dot;
}

void ref_expert_product(const problem *p, unsigned output, uint64_t first, uint64_t count,
                        ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++)
        values[i] = product(p, first + i);
}

/* Of inputs x, the shared expert's values and a residual where there are such, and the weights. */
static ref_value weighted_sum(const problem *p, uint64_t element)
{
    uint64_t n = (uint64_t)p->shape.n, used = (uint64_t)p->shape.experts_used;
    uint64_t row = element / n, column = element % n;
    bool shared = p->options.route.shared != SHARED_NONE;
    unsigned residual = 1 + shared, weights = residual + (p->options.residual != 0);
    ref_value sum = { 0, 0 };
    for (uint64_t slot = 0; slot < used + shared; slot++) {
        double weight = problem_read_one(p, weights, row * (used + shared) + slot);
        double value = slot == used ? problem_read_one(p, 1, element)
                                    : problem_read_one(p, 0, (row * used + slot) * n + column);
        add_weighted(&sum, weight, (ref_value){ value, fabs(value) });
    }
    if (p->options.scale > 0) {
        sum.value *= p->options.scale;
        sum.magnitude = sum.magnitude * p->options.scale + ref_lost(sum.value);
    }
    if (p->options.residual)
        ref_add(p, residual, element, &sum);
    return sum;
}

void ref_expert_sum(const problem *p, unsigned output, uint64_t first, uint64_t count,
                    ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++)
        values[i] = weighted_sum(p, first + i);
}
